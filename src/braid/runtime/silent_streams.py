"""Silent streams: which streams bring nothing while others go on and something waits for them."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from braid.model.query import Query
from braid.runtime.report import StreamProgress

SILENT_BATCHES = 5
"""A stream is silent if it brings nothing in this many micro-batches in which another stream brings rows."""

SILENT_SECONDS = 30.0
"""A stream of a network is silent if another one brings rows for so many seconds, and this one brings none."""


def waited_for(query: Query) -> frozenset[str]:
    """The aliases of the streams whose watermarks results wait for; none if every result comes at once."""
    if query.counts_rows or query.grouping is not None or query.ranking is not None:
        return frozenset(source.alias for source in query.inputs)
    tested = frozenset(existence.source.alias for existence in query.existences)
    for join in query.fixed_joins:
        tested |= {join.source.alias}
        if join.kind.preserves_right:
            tested |= frozenset(source.alias for source in query.sources)
    return tested


class SilenceWatch:
    """Finds streams that are silent while something waits for them, and tells of each only once."""

    def __init__(self, waited_for: Collection[str]) -> None:
        self._silent_batches = dict.fromkeys(waited_for, 0)
        self._told: set[str] = set()

    def update(self, progress: Mapping[str, StreamProgress], waiting: int) -> list[str]:
        """Take in a micro-batch after which `waiting` rows or results wait; returns the streams to tell of, by alias.

        A micro-batch without any rows says nothing about one of the streams.
        """
        if not any(stream.active for stream in progress.values()):
            return []
        for alias in self._silent_batches:
            self._silent_batches[alias] = 0 if progress[alias].active else self._silent_batches[alias] + 1
        if not waiting:
            return []
        silent = [alias for alias, batches in self._silent_batches.items() if batches >= SILENT_BATCHES]
        new = [alias for alias in silent if alias not in self._told]
        self._told.update(new)
        return new


class SilentSources:
    """Finds the streams of a network that bring nothing while others go on, and tells of each only once."""

    def __init__(self, aliases: Collection[str], time: float) -> None:
        self._moved = dict.fromkeys(aliases, time)
        """When each stream has last brought something, in seconds."""
        self._told: set[str] = set()

    def moved(self, alias: str, time: float) -> None:
        """A stream has brought something."""
        self._moved[alias] = time

    def news(self) -> list[str]:
        """The streams to tell of, by alias: another one has gone on for `SILENT_SECONDS` without them."""
        newest = max(self._moved.values(), default=0.0)
        silent = [alias for alias, time in self._moved.items() if newest - time >= SILENT_SECONDS]
        new = [alias for alias in silent if alias not in self._told]
        self._told.update(new)
        return new


def silence_text(query: str, stream: str, site: str) -> str:
    """What to tell people of a silent stream of a query in a network."""
    return (
        f"stream '{stream}' brings no rows at site '{site}' while other streams of query '{query}' do, so that windows "
        "keep their rows, and groups, rows of [ROWS n] and plan changes wait for it; a network has no idle_timeout: "
        f"start what feeds '{stream}', or join it on one Spark by Session.sql(.., idle_timeout=..)"
    )
