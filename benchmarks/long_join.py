"""A join of many streams that is fed step by step, and the changes of its plan: what `transition` measures."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.workload import SECOND, one_key, uniform
from braid.engine.engine import Engine
from braid.engine.segment import Segment
from braid.language import parse
from braid.model.plan import Plan
from braid.model.stream import Stream
from braid.planning.lowering.one_site import lower

ROWS = 10_000
"""Rows in a window."""
WINDOW = 10 * SECOND
FILLING = 20
"""Before anything is measured, windows are filled and turned over once, in so many steps."""
STEP = 100
"""Rows of each stream in a step that is measured."""
SEQUENCES = "sequences"

Keys = Callable[[np.random.Generator, int, int], np.ndarray[Any, np.dtype[np.int64]]]
"""The keys of a stream, given how many rows are in a window and how many in all."""


def each_once(generator: np.random.Generator, window: int, rows: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Each key once in a window, in an order of the stream's own: every row has one match in every window."""
    return generator.permutation(window)[np.arange(rows) % window]


def drawn(generator: np.random.Generator, window: int, rows: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Every row has one match in a window on average; with many windows, hardly any has one in all of them."""
    return generator.integers(0, window, rows)


class Input:
    """Streams s0, s1, .. whose windows hold so many rows each, joined on one key or in nested loops.

    `batches` are the filling steps, then `steps` of `step` rows of each stream; `matched` tells whether every row is
    sure to be in a result.
    """

    def __init__(
        self, joins: int, steps: int, rows: int = ROWS, step: int = STEP, theta: bool = False, keys: Keys = each_once
    ) -> None:
        columns, condition = one_key(joins + 1, uniform(rows))
        self.names = tuple(columns)
        if theta:
            # The same as equality, but nothing that an index could find matches by; of all pairs, so that no order
            # needs a cross product.
            differences = (f"({left}.k - {right}.k)" for left, right in combinations(self.names, 2))
            condition = " AND ".join(f"{difference} * {difference} < 1" for difference in differences)
        self.matched = keys is each_once
        self.rows_in_a_step = step * len(self.names)
        self.spacing = WINDOW // rows
        filling = [2 * rows // FILLING] * FILLING
        bounds = np.cumsum([0, *filling, *[step] * steps])
        generator = np.random.default_rng(7)
        tables = {name: self._rows(keys(generator, rows, int(bounds[-1]))) for name in self.names}
        self.batches = [
            {name: table.slice(first, last - first) for name, table in tables.items()}
            for first, last in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)
        ]
        self.watermarks = [int(first) * self.spacing for first in bounds[:-1]]
        sources = ", ".join(f"{name} [RANGE {WINDOW // SECOND} SECONDS]" for name in self.names)
        text = f"SELECT s0.row AS first, s1.row AS second FROM {sources} WHERE {condition}"
        self.query = parse(text, {name: Stream(name, batch.schema, "ts") for name, batch in self.batches[0].items()})

    def _rows(self, keys: np.ndarray[Any, np.dtype[np.int64]]) -> pa.RecordBatch:
        numbers = np.arange(len(keys))
        times = pa.array(numbers * self.spacing, pa.timestamp("us"))
        return pa.RecordBatch.from_pydict({"ts": times, "row": pa.array(numbers), "k": pa.array(keys)})


def left_deep(order: Sequence[str]) -> Any:
    tree: Any = order[0]
    for stream in order[1:]:
        tree = (tree, stream)
    return tree


@dataclass(frozen=True)
class Transition:
    """From one order of a left-deep tree to another."""

    name: str
    before: tuple[str, ...]
    after: tuple[str, ...]


def best_case(names: Sequence[str]) -> Transition:
    """One join of the new plan is missing: the two streams below the top change places."""
    return Transition("best case", tuple(names), _swapped(names, len(names) - 2, len(names) - 3))


def worst_case(names: Sequence[str]) -> Transition:
    """Every join of the new plan but the last is missing: the lowest stream and the top one change places."""
    return Transition("worst case", tuple(names), _swapped(names, 0, len(names) - 1))


def _swapped(order: Sequence[str], one: int, other: int) -> tuple[str, ...]:
    changed = list(order)
    changed[one], changed[other] = changed[other], changed[one]
    return tuple(changed)


class Run:
    """One engine, its windows full, fed step by step; all it finds from then on is kept to be compared."""

    def __init__(self, given: Input, order: Sequence[str], strategy: str) -> None:
        self._given = given
        self._strategy = strategy
        self._engine = Engine(self._program(order), strategy="jisc" if strategy == SEQUENCES else strategy)
        self._next = 0
        self._found: list[pa.RecordBatch] = []
        self.steps(FILLING)
        self._found.clear()

    def _program(self, order: Sequence[str]) -> Any:
        plan = Plan.of(self._given.query, left_deep(order))
        return lower(plan.without_kept() if self._strategy in ("cacq", SEQUENCES) else plan)

    def steps(self, count: int) -> float:
        """Seconds that so many steps take."""
        return sum(self.step() for _ in range(count))

    def step(self) -> float:
        watermark = self._given.watermarks[self._next]
        segments = [Segment(name, rows, watermark) for name, rows in self._given.batches[self._next].items()]
        self._next += 1
        started = time.perf_counter()
        found = self._engine.step(segments)
        seconds = time.perf_counter() - started
        self._found += found
        return seconds

    def change(self, order: Sequence[str]) -> float:
        """Seconds that it takes to give the engine another plan."""
        started = time.perf_counter()
        self._engine.change(self._program(order))
        return time.perf_counter() - started

    @property
    def found(self) -> pa.Table:
        return pa.Table.from_batches(self._found, self._engine.schema)
