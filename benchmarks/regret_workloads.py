"""The workloads of `regret`: streams on which it is easy to choose a bad plan, or to change plans too often."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.shifting import Batch, flip, rates
from benchmarks.workload import SECOND
from braid.workloads.nexmark import QUERIES, Nexmark


@dataclass(frozen=True)
class Contest:
    """A workload for plans to compete on. `make` makes its batches.

    A `steady` workload stays the same; after `warm_up` batches its windows are full and its plan should be found.
    """

    name: str
    text: str
    make: Callable[[], Iterator[Batch]]
    steady: bool = True
    warm_up: int = 6
    time: str = "ts"


def contests() -> list[Contest]:
    return [
        Contest("the failure: Nexmark, 4-way", QUERIES["4-way"], partial(_nexmark, 16)),
        Contest("Nexmark, 3-way", QUERIES["3-way"], partial(_nexmark, 16)),
        Contest("Nexmark, 5-way", QUERIES["5-way"], partial(_nexmark, 12)),
        _correlated(),
        _zipf_fanout(),
        _shifting("selectivities that flip", flip(batches=24, hub=4_000, fan=1_000)),
        _shifting("one rate switching, 4-way", rates(4)),
        _shifting("noise only", rates(4, batches=24, period=1_000), steady=True),
        *(_alternating(period) for period in (1, 2, 3)),
    ]


def _nexmark(batches: int) -> Iterator[Batch]:
    return (dict(batch) for batch in Nexmark(rate=4_000, rows=40_000).batches(batches))


def _shifting(name: str, workload: Any, steady: bool = False) -> Contest:
    return Contest(name, workload.text, workload.rows, steady)


def _correlated() -> Contest:
    """Both keys of `a` and `b` say the same, so that two conditions pass as much as one; `c` is the better choice."""

    def make() -> Iterator[Batch]:
        generator = np.random.default_rng(3)
        for number in range(24):
            keys = {name: generator.integers(0, 50, 2_000) for name in "ab"}
            yield {
                "a": _rows(generator, number, x=keys["a"], y=keys["a"] * 7, z=generator.integers(0, 4_000, 2_000)),
                "b": _rows(generator, number, x=keys["b"], y=keys["b"] * 7),
                "c": _rows(generator, number, z=generator.integers(0, 4_000, 2_000)),
            }

    text = (
        "SELECT a.row AS a_row, b.row AS b_row, c.row AS c_row FROM a [RANGE 2 SECONDS], b [RANGE 2 SECONDS], "
        "c [RANGE 2 SECONDS] WHERE a.x = b.x AND a.y = b.y AND a.z = c.z"
    )
    return Contest("correlated conditions", text, make)


def _zipf_fanout() -> Contest:
    """The keys of `a` that match many rows of `b` are those whose rows of `b` match many of `c`."""

    def make() -> Iterator[Batch]:
        generator = np.random.default_rng(4)
        for number in range(24):
            hot = [np.minimum(generator.zipf(1.5, 400), 5_000) for _ in range(4)]
            yield {
                "a": _rows(generator, number, k=hot[0], m=generator.integers(0, 600, 400)),
                "b": _rows(generator, number, k=hot[1], j=hot[1]),
                "c": _rows(generator, number, j=hot[2] * 3),
                "d": _rows(generator, number, m=generator.integers(0, 600, 400)),
            }

    text = (
        "SELECT a.row AS a_row, b.row AS b_row, c.row AS c_row, d.row AS d_row FROM a [RANGE 2 SECONDS], "
        "b [RANGE 2 SECONDS], c [RANGE 2 SECONDS], d [RANGE 1 SECOND] "
        "WHERE a.k = b.k AND b.j = c.j AND a.m = d.m"
    )
    return Contest("zipf fan-out", text, make)


def _alternating(period: int) -> Contest:
    """A hub whose keys exchange their roles every few batches: as fast as a controller can follow, or faster."""
    rows, few, many = 2_000, 40, 1_000_000

    def make() -> Iterator[Batch]:
        generator = np.random.default_rng(5)
        for number in range(36):
            frequent, rare = generator.integers(0, few, rows), generator.integers(few, many, rows)
            x, y = (rare, frequent) if number // period % 2 else (frequent, rare)
            leaf = partial(generator.integers, 0, few)
            yield {
                "hub": _rows(generator, number, x=x, y=y),
                "a": _rows(generator, number, x=leaf(rows)),
                "b": _rows(generator, number, y=leaf(rows)),
            }

    text = (
        "SELECT hub.row AS hub_row, a.row AS a_row, b.row AS b_row FROM hub [RANGE 1 SECOND], a [RANGE 2 SECONDS], "
        "b [RANGE 2 SECONDS] WHERE hub.x = a.x AND hub.y = b.y"
    )
    return Contest(
        f"alternation every {period} batches" if period > 1 else "alternation every batch", text, make, False
    )


def _rows(generator: np.random.Generator, second: int, **columns: np.ndarray[Any, Any]) -> pa.RecordBatch:
    """The rows of one second, at random times."""
    count = len(next(iter(columns.values())))
    times = np.sort(generator.integers(0, SECOND, count)) + second * SECOND
    arrays = {name: pa.array(column) for name, column in columns.items()}
    return pa.RecordBatch.from_pydict(
        {"ts": pa.array(times, pa.timestamp("us", "UTC")), "row": np.arange(count) + second * count, **arrays}
    )
