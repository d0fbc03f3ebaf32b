"""Intakes: where the streams of a query enter it, once, whatever plans the query has.

The intake of a stream runs at the site where the stream starts. It drops late rows and those that do not meet the
conditions on the stream alone, takes the columns that the rest of the query needs, and publishes them on a channel.
Every join of the query reads the stream there. So it is decided once which rows are late, and a new plan fills its
windows by reading the channel from further back: it keeps as much as the window of the stream holds.
"""

from __future__ import annotations

from collections.abc import Mapping

from braid.model.query import Query
from braid.model.window import FOREVER
from braid.runtime.sites.fragment import Fragment
from braid.runtime.sites.wire import WireStream
from braid.runtime.sites.work import Outlet, SiteWork


def intake_channels(name: str, origins: Mapping[str, str]) -> dict[str, str]:
    """The channel by which each stream of a query called `name` comes, by alias."""
    return {alias: f"{name}: {alias} at {site}" for alias, site in origins.items()}


def compile_intakes(name: str, query: Query, origins: Mapping[str, str], since: int = -FOREVER) -> dict[str, SiteWork]:
    """The work of every site where streams of a query start. `origins` tells where, by alias.

    All rows of combinations start at or after `since`.
    """
    channels = intake_channels(name, origins)
    work = {}
    for site in dict.fromkeys(origins.values()):
        own = tuple(alias for alias in query.aliases if origins[alias] == site)
        outlets = tuple(Outlet(channels[alias], alias, keep=_kept(query, alias)) for alias in own)
        work[site] = SiteWork(query, own, {alias: _intake(query, alias, since) for alias in own}, {}, outlets, since)
    return work


def _intake(query: Query, alias: str, since: int) -> Fragment:
    entering = WireStream(query, alias, (alias,), at_origin=True, since=since)
    return Fragment(query, (entering,), WireStream(query, alias, (alias,)))


def _kept(query: Query, alias: str) -> int:
    """How long rows must stay for a new plan. Windows that count rows cannot be filled from any moment on."""
    lifetime = query.source(alias).window.lifetime
    return 0 if lifetime is None else lifetime
