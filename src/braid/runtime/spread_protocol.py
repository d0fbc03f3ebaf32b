"""The steps by which keys are spread and gathered again, so that every combination still meets in exactly one shard."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from braid.engine.input.lifetime import lifetimes
from braid.errors import BraidError
from braid.model.query import Query
from braid.model.window import FOREVER
from braid.runtime.routing import Dimension, Router
from braid.runtime.spread_table import Phase, SpreadKey, SpreadTable


def can_spread(query: Query, dimension: Dimension) -> bool:
    """Whether keys of a dimension can be spread: rows of all its streams must end by event time alone.

    In an outer, semi or anti join, one shard must see all partners of a row to know that it has none.
    """
    windows = [source.window for source in query.inputs if source.alias in dimension.streams]
    ends = all(window.lifetime is not None and window.lifetime < FOREVER for window in windows)
    counts = any(source.window.counts_rows for source in query.inputs)
    return (
        dimension.attribute_class is not None and dimension.share > 1 and ends and not counts and not query.fixed_joins
    )


class SpreadProtocol:
    """Takes keys through the steps of spreading, one version of the table after the other.

    A key is *chosen*: its rows are copied from now on. Once a batch was routed by that version, all rows that were not
    copied have come; when they have ended, rows are *spread*. To *revoke* it, rows are no longer spread. Once a batch
    was routed by that version, all spread rows have come; rows that start when these have ended are no longer copied.
    When the last copies have come and ended, too, the key is forgotten.

    Whoever routes may use any version, if all versions before it were routed by before, or if it is the first it uses
    after a restart: every version is right for all rows that come after those of the observation that led to it.
    """

    def __init__(self, query: Query, router: Router, table: SpreadTable | None = None) -> None:
        self._query = query
        self._router = router
        self._windows = {source.alias: source.window for source in query.inputs}
        self.table = SpreadTable() if table is None else table

    def choose(self, dimension: int, word: int, stream: str) -> None:
        """Begin to spread the rows of a joined stream that have this key."""
        side = self._router.dimensions[dimension]
        if stream not in side.streams.intersection(self._query.aliases) or not can_spread(self._query, side):
            raise BraidError(f"rows of '{stream}' cannot be spread along dimension {dimension} of the grid")
        if self.table.key(dimension, word) is None:
            version = self.table.version + 1
            self.table = SpreadTable(version, (*self.table.keys, SpreadKey(dimension, word, stream, asked=version)))

    def revoke(self, dimension: int, word: int) -> None:
        """Begin to gather the rows of a key in one shard again."""
        key = self.table.key(dimension, word)
        if key is not None and key.phase in (Phase.COPIED, Phase.SPREAD):
            self._replace(key, replace(key, begin=FOREVER, phase=Phase.GATHERED))

    def observe(self, routed_by: int, newest: Mapping[str, int], watermarks: Mapping[str, int]) -> None:
        """Take the next steps after a batch that was routed by a version of the table.

        `newest` are the newest event times of all rows so far, and `watermarks` those after the batch, by alias.
        """
        for key in self.table.keys:
            copied = self._copied(key)
            if routed_by < key.asked:
                continue
            match key.phase:
                case Phase.COPIED:
                    ends = [self._end(alias, newest) for alias in copied]
                    self._replace(key, replace(key, begin=max(ends, default=-FOREVER), phase=Phase.SPREAD))
                case Phase.GATHERED:
                    self._replace(key, replace(key, until=self._end(key.stream, newest), phase=Phase.ENDING))
                case Phase.ENDING:
                    last_copy = max((newest.get(alias, -FOREVER) for alias in copied), default=-FOREVER)
                    self._replace(key, replace(key, until=max(key.until, last_copy + 1), phase=Phase.ENDED))
                case Phase.ENDED if min(watermarks.values(), default=-FOREVER) >= self._copies_end(key):
                    self._replace(key, None)

    def _copied(self, key: SpreadKey) -> frozenset[str]:
        return self._router.dimensions[key.dimension].streams - {key.stream}

    def _copies_end(self, key: SpreadKey) -> int:
        """When the last copies of a key that is revoked end."""
        return max((self._end(alias, {alias: key.until}) for alias in self._copied(key)), default=-FOREVER)

    def _end(self, alias: str, newest: Mapping[str, int]) -> int:
        """When the newest row of a stream ends; before all times if there is none."""
        moment = newest.get(alias, -FOREVER)
        if moment == -FOREVER:
            return -FOREVER
        _, ends = lifetimes(np.array([moment]), self._windows[alias])
        return int(ends[0])

    def _replace(self, key: SpreadKey, by: SpreadKey | None) -> None:
        version = self.table.version + 1
        keys = (other for other in self.table.keys if other != key)
        self.table = SpreadTable(version, (*keys,) if by is None else (*keys, replace(by, asked=version)))
