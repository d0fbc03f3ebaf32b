"""Intakes: where the streams of a query enter it, once, whatever plans the query has.

The intake of a stream runs at the site where the stream starts. It drops late rows and those that do not meet the
conditions on the stream alone, takes the columns that the rest of the query needs, and publishes them on a channel.
Every join of the query reads the stream there. So it is decided once which rows are late, and a new plan fills its
windows by reading the channel from further back: it keeps as much as the window of the stream holds.

An intake of a deployment that shares its joins also publishes all rows in time, before the conditions on the stream
alone are checked, on a second channel. Nobody reads it until a later query needs a join with weaker filters: see
`weaker_join.py`. It crosses no link, and keeps as much as the first one.
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


def compile_intakes(
    name: str, query: Query, origins: Mapping[str, str], since: int = -FOREVER, *, shared: bool = False
) -> dict[str, SiteWork]:
    """The work of every site where streams of a query start. `origins` tells where, by alias.

    All rows of combinations start at or after `since`. If the query is `shared`, filtered streams are published whole,
    too.
    """
    channels = intake_channels(name, origins)
    work = {}
    for site in dict.fromkeys(origins.values()):
        own = tuple(alias for alias in query.aliases if origins[alias] == site)
        fragments = {alias: _intake(query, alias, since) for alias in own}
        outlets = [Outlet(channels[alias], alias, keep=_kept(query, alias)) for alias in own]
        for alias in own:
            if shared and _is_filtered(query, alias):
                fragments[unfiltered(alias)] = _intake(query, alias, since, is_filtered=False)
                outlets.append(Outlet(f"{channels[alias]}, all rows", unfiltered(alias), keep=_kept(query, alias)))
        work[site] = SiteWork(query, own, fragments, {}, tuple(outlets), since)
    return work


def unfiltered(alias: str) -> str:
    """What the fragment is called that publishes a stream before the conditions on it alone are checked."""
    return f"{alias}, all rows"


def _is_filtered(query: Query, alias: str) -> bool:
    return bool(query.graph.selections_of(alias)) and query.source(alias).window.lifetime is not None


def _intake(query: Query, alias: str, since: int, *, is_filtered: bool = True) -> Fragment:
    entering = WireStream(query, alias, (alias,), at_origin=True, since=since)
    return Fragment(query, (entering,), WireStream(query, alias, (alias,), at_origin=not is_filtered))


def _kept(query: Query, alias: str) -> int:
    """How long rows must stay for a new plan. Windows that count rows cannot be filled from any moment on."""
    lifetime = query.source(alias).window.lifetime
    return 0 if lifetime is None else lifetime
