"""Synthetic streams with known rates, keys and windows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import pyarrow as pa

SECOND = 1_000_000
"""Microseconds in a second."""

Keys = Callable[[np.random.Generator, int], pa.Array]
"""A function that draws the given number of keys."""


@dataclass(frozen=True)
class Workload:
    """Streams with `rows` rows each per second of event time, joined by `condition`.

    `columns` maps each stream to its key columns and how to draw their values. `measured` is the number of last batches
    that are measured.
    """

    name: str
    columns: dict[str, dict[str, Keys]]
    condition: str
    window_seconds: int = 10
    seconds: int = 20
    rows: int = 50_000
    seed: int = 7
    measured: int = field(default=5)

    @property
    def text(self) -> str:
        """The query. It selects the row numbers of all streams, so that results can be compared row by row."""
        selected = ", ".join(f"{stream}.row AS {stream}_row" for stream in self.columns)
        streams = ", ".join(f"{stream} [RANGE {self.window_seconds} SECONDS]" for stream in self.columns)
        return f"SELECT {selected} FROM {streams} WHERE {self.condition}"

    @property
    def offline(self) -> str:
        """The same join over whole tables, in SQL."""
        selected = ", ".join(f"{stream}.row AS {stream}_row" for stream in self.columns)
        times = ", ".join(f"{stream}.ts" for stream in self.columns)
        overlap = f"greatest({times}) < least({times}) + INTERVAL {self.window_seconds} SECONDS"
        return f"SELECT {selected} FROM {', '.join(self.columns)} WHERE {self.condition} AND {overlap}"

    def batches(self) -> list[dict[str, pa.RecordBatch]]:
        """For each second, a batch of each stream; timestamps are uniform within the second."""
        generator = np.random.default_rng(self.seed)
        return [
            {stream: self._batch(generator, second, keys) for stream, keys in self.columns.items()}
            for second in range(self.seconds)
        ]

    def _batch(self, generator: np.random.Generator, second: int, keys: dict[str, Keys]) -> pa.RecordBatch:
        times = np.sort(generator.integers(0, SECOND, self.rows)) + second * SECOND
        columns = {
            "ts": pa.array(times, pa.timestamp("us")),
            "row": pa.array(np.arange(self.rows) + second * self.rows),
        }
        columns |= {name: draw(generator, self.rows) for name, draw in keys.items()}
        return pa.RecordBatch.from_pydict(columns)


def uniform(domain: int) -> Keys:
    return lambda generator, rows: pa.array(generator.integers(0, domain, rows))


def words(domain: int) -> Keys:
    vocabulary = pa.array([f"customer-{number:07d}" for number in range(domain)])
    return lambda generator, rows: vocabulary.take(pa.array(generator.integers(0, domain, rows)))


def zipf(domain: int, exponent: float) -> Keys:
    weights = np.arange(1, domain + 1) ** -exponent
    cumulative = np.cumsum(weights / weights.sum())
    return lambda generator, rows: pa.array(np.searchsorted(cumulative, generator.random(rows)))


def one_key(streams: int, draw: Keys) -> tuple[dict[str, dict[str, Keys]], str]:
    """Streams s0, s1, .. all joined on one key `k`."""
    names = [f"s{number}" for number in range(streams)]
    condition = " AND ".join(f"{left}.k = {right}.k" for left, right in pairwise(names))
    return {name: {"k": draw} for name in names}, condition
