"""Decides which keys are heavy, from the key sketches in the reports of shards, and how even the shards are."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

from braid.adapt.observation import Observation
from braid.model.query import Query
from braid.model.window import FOREVER
from braid.runtime.report import ShardReport
from braid.runtime.routing import Dimension, Router
from braid.runtime.spread_protocol import SpreadProtocol, can_spread
from braid.runtime.spread_table import Phase, SpreadTable

HEAVY = 0.5
"""A key is heavy if it has more rows than this part of what each shard would have if all keys were spread evenly."""

LIGHT = 0.2
"""A key that has fewer rows than this part is gathered again."""

MOST_KEYS = 32
"""The most keys of a dimension that are spread at a time: each costs a copy of its rows to all shards."""

BATCHES = 8
"""The rows of so many batches decide."""

EVERY = 4
"""A decision is made after so many batches."""


class SpreadController:
    """Chooses and revokes heavy keys of a query, given the reports of its shards."""

    def __init__(self, query: Query, router: Router, table: SpreadTable | None = None) -> None:
        self._query = query
        self._router = router
        self._protocol = SpreadProtocol(query, router, table)
        self._seen: deque[Observation] = deque(maxlen=BATCHES)
        self._undecided = 0
        self._sides = [side for side in enumerate(router.dimensions) if can_spread(query, side[1])]

    @property
    def table(self) -> SpreadTable:
        return self._protocol.table

    def observe(self, reports: Sequence[ShardReport]) -> SpreadTable | None:
        """Take the reports of all shards on a batch; returns the next table, None if it is still the same."""
        if not self._sides:
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
        seen = Observation.merged(self._seen)
        for number, side in self._sides:
            rows = {alias: self._rows(seen, alias) for alias in side.streams & set(self._query.aliases)}
            fair = sum(rows.values()) / side.share
            weights = self._weights(seen, number, side, rows)
            for key in list(self.table.of(number)):
                if sum(weights.get(key.word, {}).values()) < LIGHT * fair:
                    self._protocol.revoke(number, key.word)
            heaviest = sorted(weights, key=lambda word: (-sum(weights[word].values()), word))
            for word in heaviest[:MOST_KEYS]:
                if sum(weights[word].values()) > HEAVY * fair:
                    self._protocol.choose(number, word, max(weights[word], key=lambda alias: weights[word][alias]))

    def _rows(self, seen: Observation, alias: str) -> float:
        """The rows of a stream; copies along other dimensions of the grid count once."""
        return seen.streams[alias].entered / self._router.copies([alias])

    def _weights(
        self, seen: Observation, number: int, side: Dimension, rows: Mapping[str, float]
    ) -> dict[int, dict[str, float]]:
        """The rows of each frequent key, by stream; copies of rows whose key is spread count once."""
        weights: dict[int, dict[str, float]] = {}
        for alias, count in rows.items():
            sketch = seen.keys.get((alias, side.attribute_class or 0))
            if sketch is None:
                continue
            for word, share in sketch.frequent(LIGHT / side.share / 2).items():
                key = self.table.key(number, word)
                copies = 1 if key is None or key.stream == alias else side.share
                weights.setdefault(word, {})[alias] = share * count / copies
        return weights


def evenness(reports: Sequence[ShardReport]) -> dict[str, float]:
    """How many times the mean of all shards the largest has, of rows and of work in a batch; 1.0 is even."""
    rows = [sum(stream.received for stream in report.observation.streams.values()) for report in reports]
    work = [report.observation.work for report in reports]
    return {name: _largest(counts) for name, counts in (("rows", rows), ("work", work))}


def _largest(counts: Sequence[float]) -> float:
    total = sum(counts)
    return round(max(counts) * len(counts) / total, 2) if total else 1.0


def spread_text(table: SpreadTable) -> str:
    """The heavy keys, as `explain` shows them; empty if there is none."""
    lines = []
    for key in table.keys:
        is_spread = key.phase == Phase.SPREAD and key.begin < FOREVER
        what = f"rows of {key.stream} are spread" if is_spread else f"rows are copied ({key.phase})"
        lines.append(f"heavy key {key.word} of dimension {key.dimension}: {what}")
    return "\n".join(lines)
