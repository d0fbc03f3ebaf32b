"""A deployment as its sites and later programs find it announced: what each site runs, and what was planned."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from braid.errors import BraidError
from braid.model.query import Query
from braid.model.stream import Stream
from braid.model.window import FOREVER
from braid.planning.cost.bill import Bill, Charge
from braid.planning.deployment import Deployment
from braid.runtime.sites.compiling import compile_deployment
from braid.runtime.sites.offer import OfferedStream, offered_streams
from braid.runtime.sites.site_spec import SiteSpec

KIND = "deployment"
"""The kind of document that announces a deployment."""

FORMAT = 2
"""The format of these documents; others are refused."""


@dataclass(frozen=True)
class Deployed:
    """A deployment that runs. `explanation` is the plan as text, `bill` what it was expected to cost.

    One that `is_dropped` has no results any more: what is left of it runs for other deployments.
    """

    name: str
    text: str
    sites: Mapping[str, SiteSpec]
    explanation: str
    bill: Bill
    is_dropped: bool = False

    @classmethod
    def of(
        cls,
        name: str,
        text: str,
        streams: Iterable[Stream],
        deployment: Deployment,
        origins: Mapping[str, str],
        *,
        event_time: str,
        shards: int,
        since: int = -FOREVER,
        offers: Sequence[OfferedStream] = (),
        shared: bool = False,
    ) -> Deployed:
        """What a planned deployment runs; `origins` tells at which site each stream of the query starts, by alias.

        See `compile_deployment` for the rest.
        """
        declared = tuple(streams)
        work = compile_deployment(name, deployment, origins, since=since, offers=offers, shared=shared)
        sites = {
            site: SiteSpec(name, site, text, declared, part, event_time, shards)
            for site, part in work.items()
            if part.fragments
        }
        return cls(name, text, sites, deployment.explain(), deployment.bill)

    @property
    def query(self) -> Query:
        return next(iter(self.sites.values())).query

    @property
    def results(self) -> list[str]:
        """The names of the channels that carry results."""
        channels = []
        for spec in self.sites.values():
            finals = spec.work.finals
            channels += [outlet.channel for outlet in spec.work.outlets if outlet.fragment in finals]
        return channels

    def subscriptions(self) -> Iterator[tuple[str, str]]:
        """Every channel that a site reads, and who reads it."""
        for spec in self.sites.values():
            for channel in spec.work.arriving:
                yield channel, spec.subscriber
        for channel in self.results:
            yield channel, self.reader
        for spec in self.sites.values():
            for outlet in spec.work.outlets:
                if outlet.is_offered and not outlet.readers:
                    # Somebody must release what nobody reads, so that the channel does not grow.
                    yield outlet.channel, spec.subscriber

    @property
    def published(self) -> frozenset[str]:
        """Every channel that a site publishes on."""
        return frozenset(outlet.channel for spec in self.sites.values() for outlet in spec.work.outlets)

    def dropped(self, used: Collection[str]) -> Deployed | None:
        """What must go on if the query is dropped while others use some of its channels; None if nothing must.

        A site goes on with all its work if it publishes what others use, or what such a site reads.
        """
        needed = frozenset(used) & self.published
        sites: dict[str, SiteSpec] = {}
        while True:
            going_on = {site: spec for site, spec in self.sites.items() if spec.publishes(needed)}
            if len(going_on) == len(sites):
                break
            sites = going_on
            needed |= {channel for spec in sites.values() for channel in spec.work.arriving}
        if not sites:
            return None
        kept = {site: spec.publishing(needed, sites) for site, spec in sites.items()}
        return replace(self, sites=kept, is_dropped=True)

    @property
    def offers(self) -> list[OfferedStream]:
        """The derived streams that later queries may use."""
        return list(offered_streams({site: spec.work for site, spec in self.sites.items()}))

    @property
    def reader(self) -> str:
        """The name under which results are read."""
        return f"results of {self.name}"

    def to_json(self) -> dict[str, Any]:
        charges = [asdict(charge) | {"streams": sorted(charge.streams)} for charge in self.bill.charges]
        return {
            "format": FORMAT,
            "name": self.name,
            "text": self.text,
            "sites": {site: spec.to_json() for site, spec in self.sites.items()},
            "explanation": self.explanation,
            "bill": {"unit": self.bill.unit, "charges": charges},
            "is_dropped": self.is_dropped,
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Deployed:
        if content.get("format") != FORMAT:
            raise BraidError(
                f"a deployment was announced in format {content.get('format')}, and this is a Braid that reads format "
                f"{FORMAT}; run it with the Braid that deployed it, or deploy it under another name"
            )
        bill = content["bill"]
        charges = [Charge(**{**charge, "streams": frozenset(charge["streams"])}) for charge in bill["charges"]]
        return cls(
            content["name"],
            content["text"],
            {site: SiteSpec.from_json(spec) for site, spec in content["sites"].items()},
            content["explanation"],
            Bill(bill["unit"], tuple(charges)),
            content["is_dropped"],
        )
