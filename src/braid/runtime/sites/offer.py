"""Derived streams that running deployments offer to later queries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from braid.model.advertisement import Advertisement, subquery
from braid.model.window import FOREVER
from braid.runtime.sites.work import SiteWork


@dataclass(frozen=True)
class OfferedStream:
    """A derived stream on a channel: what is advertised of it, and what its channel holds.

    All parts of its rows start at or after `since`. What is older than `keep` microseconds of event time may be gone.
    """

    advertisement: Advertisement
    channel: str
    since: int
    keep: int


def offered_streams(work: Mapping[str, SiteWork]) -> Iterator[OfferedStream]:
    """What the sites of a plan offer.

    A plan that a query has changed to left out rows that had ended when it began. Whoever reads its joins must begin
    then or later: the rows of the time before are not all there.
    """
    first = max((part.alive_at for part in work.values()), default=-FOREVER)
    for site, part in work.items():
        for outlet, parts, columns in part.offered():
            joined = subquery(part.query, frozenset(parts))
            advertisement = Advertisement(joined, site, columns=columns)
            yield OfferedStream(advertisement, outlet.channel, max(part.since, first), outlet.keep)


def channel_of(advertisement: Advertisement, offers: Iterable[OfferedStream]) -> str | None:
    """The channel of an advertised stream. All deployments that advertise the same join have the same rows."""
    return next((offer.channel for offer in offers if offer.advertisement == advertisement), None)
