"""Chooses the heavy keys to spread, from the key sketches in the reports of shards; tells how even the shards are."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from math import ceil, prod

from braid.adapt.observation import Observation
from braid.model.query import Query
from braid.model.window import FOREVER
from braid.runtime.report import ShardReport
from braid.runtime.routing import Dimension, Router
from braid.runtime.spread_protocol import SpreadProtocol, can_spread
from braid.runtime.spread_table import SpreadPhase, SpreadTable

HEAVY = 0.5
"""A key is heavy if it has more rows than this share of an even shard: one that has as many rows as the mean."""

LIGHT = 0.2
"""A spread key that has fewer rows than this share of an even shard is gathered again."""

PIECE = 0.2
"""A key gets so many shards that each has at most this share of an even shard's rows, and of its work, of the key."""

OUTGROWN = 2
"""A key that needs more than this many times the shards that it has is gathered, and then chosen anew."""

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
            widths = _widths(key_rows, even_rows, dimension)
            for key in list(self.table.of(index)):
                outgrown = widths.get(key.word, 0) > OUTGROWN * key.coordinates(dimension.share)
                if outgrown or totals.get(key.word, 0.0) < LIGHT * even_rows:
                    self._protocol.revoke(index, key.word)
            heaviest = sorted(totals, key=lambda word: (-totals[word], word))
            for word in heaviest[:MOST_KEYS]:
                if totals[word] > HEAVY * even_rows:
                    largest_stream = max(key_rows[word], key=key_rows[word].__getitem__)
                    self._protocol.choose(index, word, largest_stream, widths[word])

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
                key = self.table.key(index, word)
                copies = 1 if key is None or key.stream == alias else key.coordinates(dimension.share)
                key_rows.setdefault(word, {})[alias] = share * stream_rows / copies
        return key_rows


def _widths(key_rows: Mapping[int, Mapping[str, float]], even_rows: float, dimension: Dimension) -> dict[int, int]:
    """How many coordinates each of these keys needs.

    The work of a key goes with the product of its rows in all streams. That of keys that are not frequent is not known
    and counts as none, so a key may get more coordinates than its work needs.
    """
    work = {word: prod(max(1.0, rows) for rows in by_stream.values()) for word, by_stream in key_rows.items()}
    even_work = sum(work.values()) / dimension.share
    widths = {}
    for word, by_stream in key_rows.items():
        even_shards = max(max(by_stream.values()) / even_rows, work[word] / even_work)
        widths[word] = max(2, min(dimension.share, ceil(even_shards / PIECE)))
    return widths


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
    for key in table.keys:
        is_spread = key.phase == SpreadPhase.SPREAD and key.begin < FOREVER
        where = "all shards" if key.width is None else f"{key.width} shards"
        what = f"rows of {key.stream} are spread over {where}" if is_spread else f"rows are copied ({key.phase})"
        lines.append(f"heavy key {key.word} of dimension {key.dimension}: {what}")
    return "\n".join(lines)
