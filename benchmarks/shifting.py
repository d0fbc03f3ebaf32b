"""Workloads that change while they run, and one that does not: the subjects of `adaptive`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.workload import SECOND
from braid.model.plan import Written

Batch = dict[str, pa.RecordBatch]


@dataclass(frozen=True)
class Shifting:
    """A workload whose streams change. `make` makes a batch from a random generator and the number of the batch."""

    name: str
    text: str
    batches: int
    shifts: tuple[int, ...]
    """The numbers of the batches at which the streams change."""
    first: Written
    """The best plan before the first shift."""
    make: Callable[[np.random.Generator, int], Batch]

    def rows(self, batches: int | None = None) -> Iterator[Batch]:
        """All batches, or the first `batches` of them."""
        generator = np.random.default_rng(7)
        return (self.make(generator, number) for number in range(batches or self.batches))


def rates(streams: int, batches: int = 40, period: int = 10, scale: int = 100) -> Shifting:
    """Figure 4 of the NOS paper. A batch is a second: `s0` has 50 or 200 times `scale` rows, the others 100 times."""
    names = [f"s{number}" for number in range(streams)]
    domain = 1_000 * scale
    selected = ", ".join(f"{name}.row AS {name}_row" for name in names)
    condition = " AND ".join(f"{left}.k = {right}.k" for left, right in pairwise(names))

    def make(generator: np.random.Generator, number: int) -> Batch:
        varying_rate = (200 if number // period % 2 else 50) * scale
        keys = partial(generator.integers, 0, domain)
        return {
            name: _batch(generator, number, 1, varying_rate if name == "s0" else 100 * scale, k=keys) for name in names
        }

    # The slowest stream is probed first: s0 before the first shift.
    first = {head: tuple(name for name in names if name != head) for head in names}
    return Shifting(
        f"{streams}-way join, one rate switching",
        f"SELECT {selected} FROM {', '.join(f'{name} [RANGE 10 SECONDS]' for name in names)} WHERE {condition}",
        batches,
        tuple(range(period, batches, period)),
        first,
        make,
    )


def flip(batches: int = 30, seconds: int = 5, hub: int = 20_000, fan: int = 4_000) -> Shifting:
    """A hub with two keys: one has few values, which match `fan` rows each; the values of the other match almost none.

    Half-way the two keys exchange their roles.
    """
    leaf, window, few, many = 640, 50, 4, 400_000_000
    half = batches // 2

    def mixed(generator: np.random.Generator, count: int) -> np.ndarray[Any, Any]:
        is_frequent = generator.random(count) < fan * few / (leaf * window)
        return np.where(is_frequent, generator.integers(0, few, count), generator.integers(few, many, count))

    def make(generator: np.random.Generator, number: int) -> Batch:
        rare, frequent = partial(generator.integers, few, many), partial(generator.integers, 0, few)
        x, y = (rare, frequent) if number < half else (frequent, rare)
        return {
            "hub": _batch(generator, number, seconds, hub, x=x, y=y),
            "a": _batch(generator, number, seconds, leaf, x=partial(mixed, generator)),
            "b": _batch(generator, number, seconds, leaf, y=partial(mixed, generator)),
        }

    return Shifting(
        "selectivities that flip",
        "SELECT hub.row AS hub_row, a.row AS a_row, b.row AS b_row FROM hub [RANGE 1 SECOND], "
        f"a [RANGE {window} SECONDS], b [RANGE {window} SECONDS] WHERE hub.x = a.x AND hub.y = b.y",
        batches,
        (half,),
        {"hub": ("a", "b"), "a": ("hub", "b"), "b": ("hub", "a")},
        make,
    )


def steady(batches: int = 48, rows: int = 50_000) -> Shifting:
    """Four streams on one key that do not change. The windows are full after ten batches."""
    names = "abcd"

    def make(generator: np.random.Generator, number: int) -> Batch:
        return {name: _batch(generator, number, 1, rows, k=partial(generator.integers, 0, 10 * rows)) for name in names}

    condition = " AND ".join(f"{left}.k = {right}.k" for left, right in pairwise(names))
    selected = ", ".join(f"{name}.row AS {name}_row" for name in names)
    return Shifting(
        "changes by hand",
        f"SELECT {selected} FROM {', '.join(f'{name} [RANGE 10 SECONDS]' for name in names)} WHERE {condition}",
        batches,
        (),
        {head: tuple(name for name in names if name != head) for head in names},
        make,
    )


def _batch(generator: np.random.Generator, number: int, seconds: int, rate: int, **keys: Any) -> pa.RecordBatch:
    """A batch of one stream: `rate` rows in each of `seconds` seconds; `keys` draw the values of the key columns."""
    count = rate * seconds
    times = np.sort(generator.integers(0, seconds * SECOND, count)) + number * seconds * SECOND
    columns = {
        "ts": pa.array(times, pa.timestamp("us", "UTC")),
        "row": pa.array(times * 1_000 + np.arange(count) % 1_000),
    }
    return pa.RecordBatch.from_pydict(columns | {name: pa.array(draw(count)) for name, draw in keys.items()})
