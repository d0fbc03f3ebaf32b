"""Streams with known rates, keys and windows, and the joins over them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from braid.workloads.nexmark import QUERIES, Nexmark

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
    def streams(self) -> tuple[str, ...]:
        return tuple(self.columns)

    @property
    def outputs(self) -> tuple[str, ...]:
        """The columns of a result."""
        return tuple(f"{stream}_row" for stream in self.columns)

    @property
    def batch_rows(self) -> int:
        """The rows of all streams in a batch."""
        return self.rows * len(self.columns)

    @property
    def count(self) -> int:
        """How many batches there are; each has one second."""
        return self.seconds

    @property
    def window_batches(self) -> int:
        """After so many batches the windows are full."""
        return self.window_seconds

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


@dataclass(frozen=True)
class NexmarkJoin:
    """People, their auctions and the bids on them: bids are 92% of the rows, and nearly every one is a result.

    The attributes are those of `Workload`. A batch has `seconds` seconds of event time.
    """

    name: str = "Nexmark: person, auction, bid (92%), 60, 20 and 10 s"
    seconds: int = 20
    count: int = 20
    batch_rows: int = 200_000
    WINDOWS: ClassVar[dict[str, int]] = {"persons": 60, "auctions": 20, "bids": 10}
    """The windows of the query, in seconds."""
    text: ClassVar[str] = QUERIES["3-way"]
    streams: ClassVar[tuple[str, ...]] = tuple(WINDOWS)
    outputs: ClassVar[tuple[str, ...]] = ("person", "auction", "bid")

    @property
    def window_batches(self) -> int:
        return -(-max(self.WINDOWS.values()) // self.seconds)

    @property
    def offline(self) -> str:
        times = ", ".join(f"{stream}.ts" for stream in self.WINDOWS)
        ends = ", ".join(f"{stream}.ts + INTERVAL {length} SECONDS" for stream, length in self.WINDOWS.items())
        return (
            "SELECT persons.id AS person, auctions.id AS auction, bids.row AS bid FROM persons, auctions, bids "
            "WHERE auctions.seller = persons.id AND bids.auction = auctions.id "
            f"AND greatest({times}) < least({ends})"
        )

    def batches(self) -> list[Mapping[str, pa.RecordBatch]]:
        batches = Nexmark(self.batch_rows // self.seconds, self.batch_rows).batches(self.count)
        return [{name: a_day_later(rows) for name, rows in batch.items()} for batch in batches]


def a_day_later(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Spark's first watermark is the first moment of 1970, and a row at the watermark is late: Nexmark has one."""
    return rows.set_column(0, "ts", pc.add(rows.column("ts"), pa.scalar(86_400 * SECOND, pa.duration("us"))))


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
