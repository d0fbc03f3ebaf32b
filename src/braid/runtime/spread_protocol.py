"""The steps by which a key is spread over several shards, and gathered again, while rows keep coming."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod

import numpy as np

from braid.engine.input.lifetime import lifetimes
from braid.errors import BraidError
from braid.model.query import Query
from braid.model.window import FOREVER
from braid.runtime.routing import Dimension, Router
from braid.runtime.spread_table import SpreadKey, SpreadPhase, SpreadTable


def can_spread(query: Query, dimension: Dimension) -> bool:
    """Whether keys of a dimension can be spread: rows of all its streams must end by event time alone.

    In an outer, semi or anti join keys cannot be spread: one shard must see all partners of a row to know that there is
    none.
    """
    if dimension.attribute_class is None or dimension.share == 1 or query.fixed_joins:
        return False
    if any(source.window.counts_rows for source in query.inputs):
        return False
    windows = [source.window for source in query.inputs if source.alias in dimension.streams]
    return all(window.lifetime is not None and window.lifetime < FOREVER for window in windows)


class SpreadProtocol:
    """Takes keys through the steps of spreading. Each step makes a new version of the table.

    Each axis of a key goes through them by itself.

    1. A key is *chosen*: from this version on, rows of the other streams are copied.
    2. When a batch was routed by that version, no more rows will come uncopied. From the event time at which the last
       uncopied row has ended, rows of the key's stream are *spread*.
    3. The key is *revoked*: from this version on, no rows are spread.
    4. When a batch was routed by that version, no more spread rows will come. Rows of the other streams that start when
       the last spread row has ended are no longer copied.
    5. When the last copies have come and have ended, the key is removed from the table.

    A packer may use any version, if it has used all earlier versions, or if it has just started: every version is right
    for all rows that come after the batch whose observation led to it.
    """

    def __init__(self, query: Query, router: Router, table: SpreadTable | None = None) -> None:
        self._query = query
        self._router = router
        self._windows = {source.alias: source.window for source in query.inputs}
        self.table = SpreadTable() if table is None else table

    def choose(self, dimension: int, word: int, widths: Mapping[str, int]) -> None:
        """Begin to spread the rows that have this key: those of each stream along an axis of so many positions.

        A key that is in the table stays as it is.
        """
        grid_dimension = self._router.dimensions[dimension]
        joined = grid_dimension.streams.intersection(self._query.aliases)
        for stream in widths:
            if stream not in joined or not can_spread(self._query, grid_dimension):
                raise BraidError(f"rows of '{stream}' cannot be spread along dimension {dimension} of the grid")
        shards = prod(widths.values())
        if not 1 <= shards <= grid_dimension.share or min(widths.values()) < 1:
            raise BraidError(f"dimension {dimension} of the grid has {grid_dimension.share} coordinates, not {shards}")
        if not self.table.axes(dimension, word):
            version, stride, axes = self.table.version + 1, 1, []
            for stream, width in widths.items():
                axes.append(SpreadKey(dimension, word, stream, asked=version, width=width, stride=stride))
                stride *= width
            self.table = SpreadTable(version, (*self.table.keys, *axes))

    def revoke(self, dimension: int, word: int) -> None:
        """Begin to gather the rows of a key in one shard again."""
        for key in self.table.axes(dimension, word):
            if key.phase in (SpreadPhase.COPIED, SpreadPhase.SPREAD):
                self._replace(key, replace(key, begin=FOREVER, phase=SpreadPhase.GATHERED))

    def observe(self, routed_by: int, newest: Mapping[str, int], watermarks: Mapping[str, int]) -> None:
        """Take the next steps after a batch that was routed by the version `routed_by` of the table.

        `newest` are the newest event times of all rows so far, and `watermarks` those after the batch, by alias.
        """
        for key in self.table.keys:
            copied = self._copied(key)
            if routed_by < key.asked:
                continue
            match key.phase:
                case SpreadPhase.COPIED:
                    ends = [self._end(alias, newest) for alias in copied]
                    self._replace(key, replace(key, begin=max(ends, default=-FOREVER), phase=SpreadPhase.SPREAD))
                case SpreadPhase.GATHERED:
                    self._replace(key, replace(key, until=self._end(key.stream, newest), phase=SpreadPhase.ENDING))
                case SpreadPhase.ENDING:
                    last_copy = max((newest.get(alias, -FOREVER) for alias in copied), default=-FOREVER)
                    self._replace(key, replace(key, until=max(key.until, last_copy + 1), phase=SpreadPhase.ENDED))
                case SpreadPhase.ENDED if min(watermarks.values(), default=-FOREVER) >= self._copies_end(key):
                    self._replace(key, None)

    def _copied(self, key: SpreadKey) -> frozenset[str]:
        """The streams whose rows with this key are copied."""
        return self._router.dimensions[key.dimension].streams - {key.stream}

    def _copies_end(self, key: SpreadKey) -> int:
        """When the last copies of a key that is revoked end."""
        return max((self._end(alias, {alias: key.until}) for alias in self._copied(key)), default=-FOREVER)

    def _end(self, alias: str, newest: Mapping[str, int]) -> int:
        """When the newest row of a stream ends; -FOREVER if there is none."""
        newest_time = newest.get(alias, -FOREVER)
        if newest_time == -FOREVER:
            return -FOREVER
        _, ends = lifetimes(np.array([newest_time]), self._windows[alias])
        return int(ends[0])

    def _replace(self, key: SpreadKey, successor: SpreadKey | None) -> None:
        """Make the next version of the table, with `successor` instead of a key; None removes the key."""
        version = self.table.version + 1
        keys = [other for other in self.table.keys if other != key]
        if successor is not None:
            keys.append(replace(successor, asked=version))
        self.table = SpreadTable(version, tuple(keys))
