"""Chooses the heavy keys to spread, from the key sketches in the reports of shards; tells how even the shards are."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from math import ceil, prod

from braid.adapt.observation import Observation
from braid.model.query import Query
from braid.model.window import FOREVER
from braid.runtime.report import ShardReport
from braid.runtime.routing import Dimension, Router
from braid.runtime.spread_protocol import SpreadProtocol, can_spread
from braid.runtime.spread_table import SpreadKey, SpreadPhase, SpreadTable

HEAVY = 0.5
"""A key is heavy if it has more rows than this share of an even shard: one that has as many rows as the mean."""

LIGHT = 0.2
"""A spread key that has fewer rows than this share of an even shard is gathered again."""

PIECE = 0.2
"""A key gets so many shards that each has at most this share of an even shard's rows, and of its work, of the key."""

FILLED = 0.85
"""This share of all shards is enough for any key, which leaves a choice of grids: the largest has 1.18 of the mean."""

MOST_AXES = 3
"""At most so many streams are spread, each along an axis of the key's grid: those with the most rows of the key."""

OUTGROWN = 2
"""A key that needs more than this many times the shards that it has is gathered, and then chosen anew."""

WASTEFUL = 3
"""So is a key whose rows are copied to more than this many times the rows that they would be in another grid."""

MOST_KEYS = 32
"""At most this many keys of a dimension are chosen at a time: the rows of each are copied to several shards."""

BATCHES = 8
"""A decision looks at the rows of this many batches."""

EVERY = 4
"""Batches from one decision to the next."""


class SpreadController:
    """Chooses and revokes heavy keys of a query, given the reports of its shards."""

    def __init__(self, query: Query, router: Router, table: SpreadTable | None = None) -> None:
        self._query = query
        self._router = router
        self._protocol = SpreadProtocol(query, router, table)
        self._seen: deque[Observation] = deque(maxlen=BATCHES)
        self._undecided = 0
        self._dimensions = {
            index: dimension for index, dimension in enumerate(router.dimensions) if can_spread(query, dimension)
        }

    @property
    def table(self) -> SpreadTable:
        return self._protocol.table

    def observe(self, reports: Sequence[ShardReport]) -> SpreadTable | None:
        """Take the reports of all shards on a batch; returns the new table, None if it has not changed."""
        if not self._dimensions:
            return None
        before = self.table
        progress = reports[0].progress
        newest = {alias: stream.newest for alias, stream in progress.items()}
        watermarks = {alias: stream.watermark for alias, stream in progress.items()}
        self._protocol.observe(min(report.routed_by for report in reports), newest, watermarks)
        self._seen.append(Observation.merged(report.observation for report in reports))
        self._undecided += 1
        if self._undecided >= EVERY:
            self._undecided = 0
            self._decide()
        return None if self.table == before else self.table

    def _decide(self) -> None:
        """Revoke spread keys that have become light, and choose keys that are heavy."""
        seen = Observation.merged(self._seen)
        for index, dimension in self._dimensions.items():
            rows = {alias: self._rows(seen, alias) for alias in dimension.streams & set(self._query.aliases)}
            even_rows = sum(rows.values()) / dimension.share
            key_rows = self._key_rows(seen, index, dimension, rows)
            totals = {word: sum(by_stream.values()) for word, by_stream in key_rows.items()}
            shards = _shards_needed(key_rows, even_rows, dimension)
            best = {word: widths(key_rows[word], count, dimension.share) for word, count in shards.items()}
            for word in self.table.words(index):
                now = {axis.stream: axis.positions(dimension.share) for axis in self.table.axes(index, word)}
                is_light = totals.get(word, 0.0) < LIGHT * even_rows
                if is_light or (word in best and _is_outgrown(now, best[word], key_rows[word])):
                    self._protocol.revoke(index, word)
            heaviest = sorted(totals, key=lambda word: (-totals[word], word))
            for word in heaviest[:MOST_KEYS]:
                if totals[word] > HEAVY * even_rows:
                    self._protocol.choose(index, word, best[word])

    def _rows(self, seen: Observation, alias: str) -> float:
        """The rows of a stream; a row that was copied along other dimensions of the grid counts once."""
        return seen.streams[alias].entered / self._router.copies([alias])

    def _key_rows(
        self, seen: Observation, index: int, dimension: Dimension, rows: Mapping[str, float]
    ) -> dict[int, dict[str, float]]:
        """The rows of each frequent key, by stream; a row that was copied because its key is spread counts once."""
        key_rows: dict[int, dict[str, float]] = {}
        for alias, stream_rows in rows.items():
            sketch = seen.keys.get((alias, dimension.attribute_class or 0))
            if sketch is None:
                continue
            for word, share in sketch.frequent(LIGHT / dimension.share / 2).items():
                copied_along = [axis for axis in self.table.axes(index, word) if axis.stream != alias]
                copies = _positions(copied_along, dimension)
                key_rows.setdefault(word, {})[alias] = share * stream_rows / copies
        return key_rows


def _positions(axes: Sequence[SpreadKey], dimension: Dimension) -> int:
    """How many coordinates of its dimension a key with these axes has; 1 if it has none."""
    return prod(axis.positions(dimension.share) for axis in axes)


def widths(rows: Mapping[str, float], shards: int, share: int) -> dict[str, int]:
    """The axes of a key with these rows that copy the fewest, with as many shards as it needs, but at most `share`.

    >>> widths({"a": 100, "b": 100}, shards=25, share=32)
    {'a': 5, 'b': 5}
    >>> widths({"a": 1000, "b": 10}, shards=24, share=32)
    {'a': 24}
    """
    largest = sorted(rows, key=lambda stream: (-rows[stream], stream))[:MOST_AXES]
    grids = (dict(zip(largest, grid, strict=True)) for grid in _grids(shards, share, len(largest)))
    best = min(grids, key=lambda grid: (_rows_in_all(rows, grid), tuple(grid.values())))
    return {stream: width for stream, width in best.items() if width > 1}


def _rows_in_all(rows: Mapping[str, float], grid: Mapping[str, int]) -> float:
    """The rows in all shards of a key with these axes; copies count."""
    return prod(grid.values()) * sum(count / grid.get(stream, 1) for stream, count in rows.items())


def _is_outgrown(now: Mapping[str, int], best: Mapping[str, int], rows: Mapping[str, float]) -> bool:
    needs_more = prod(best.values()) > OUTGROWN * prod(now.values())
    return needs_more or _rows_in_all(rows, now) > WASTEFUL * _rows_in_all(rows, best)


def _grids(shards: int, most: int, axes: int) -> Iterator[tuple[int, ...]]:
    """Grids with at least so many shards and at most `most`."""
    if axes == 1:
        if shards <= most:
            yield (shards,)
        return
    for first in range(1, shards + 1):
        yield from ((first, *others) for others in _grids(ceil(shards / first), most // first, axes - 1))


def _shards_needed(
    key_rows: Mapping[int, Mapping[str, float]], even_rows: float, dimension: Dimension
) -> dict[int, int]:
    """How many coordinates each of these keys needs.

    The work of a key goes with the product of its rows in all streams. That of keys that are not frequent is not known
    and counts as none, so a key may get more coordinates than its work needs.
    """
    work = {word: prod(max(1.0, rows) for rows in by_stream.values()) for word, by_stream in key_rows.items()}
    even_work = sum(work.values()) / dimension.share
    needed = {}
    for word, by_stream in key_rows.items():
        even_shards = max(max(by_stream.values()) / even_rows, work[word] / even_work)
        needed[word] = max(2, min(ceil(FILLED * dimension.share), ceil(even_shards / PIECE)))
    return needed


def evenness(reports: Sequence[ShardReport]) -> dict[str, float]:
    """The rows and the work of the largest shard in a batch, as multiples of the mean of all shards; 1.0 is even."""
    rows = [sum(stream.received for stream in report.observation.streams.values()) for report in reports]
    work = [report.observation.work for report in reports]
    return {"rows": _largest_to_mean(rows), "work": _largest_to_mean(work)}


def _largest_to_mean(counts: Sequence[float]) -> float:
    total = sum(counts)
    return round(max(counts) * len(counts) / total, 2) if total else 1.0


def spread_text(table: SpreadTable) -> str:
    """The heavy keys as `explain` shows them, one in each line; empty if there is none."""
    lines = []
    for dimension, word in dict.fromkeys((key.dimension, key.word) for key in table.keys):
        axes = table.axes(dimension, word)
        shards = "all" if axes[0].width is None else prod(axis.width or 1 for axis in axes)
        spread = ", ".join(dict.fromkeys(map(_axis_text, axes)))
        lines.append(f"heavy key {word} of dimension {dimension}, over {shards} shards: {spread}")
    return "\n".join(lines)


def _axis_text(axis: SpreadKey) -> str:
    if axis.phase != SpreadPhase.SPREAD or axis.begin == FOREVER:
        return f"rows are copied ({axis.phase})"
    return f"rows of {axis.stream} are spread" + ("" if axis.width is None else f" {axis.width} ways")
