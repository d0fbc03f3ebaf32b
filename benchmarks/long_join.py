"""A join of many streams, fed step by step, whose plan can be changed: the subject of `transition`."""

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
"""The number of steps before the measurement. They fill every window and replace its rows once."""

STEP = 100
"""Rows of each stream in a measured step."""

SEQUENCES = "sequences"
"""The name for probe sequences, beside the names of the transition strategies."""

Keys = Callable[[np.random.Generator, int, int], np.ndarray[Any, np.dtype[np.int64]]]
"""A function that makes the keys of a stream, from a generator, the rows in a window and the rows in all."""


def each_once(generator: np.random.Generator, window: int, rows: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Each key once per window, in a random order for each stream: every row has one match in every window."""
    return generator.permutation(window)[np.arange(rows) % window]


def drawn(generator: np.random.Generator, window: int, rows: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Random keys: a row has one match per window on average, but with many windows few rows have a match in all."""
    return generator.integers(0, window, rows)


class Input:
    """Streams s0, s1, .. with `rows` rows in each window, joined on one key or, with `theta`, in nested loops.

    `batches` are the filling steps, then `steps` steps of `step` rows of each stream. `matched` says whether every row
    is in a result.
    """

    def __init__(
        self, joins: int, steps: int, rows: int = ROWS, step: int = STEP, theta: bool = False, keys: Keys = each_once
    ) -> None:
        columns, condition = one_key(joins + 1, uniform(rows))
        self.names = tuple(columns)
        if theta:
            # Equivalent to equality, but no index can be used. For all pairs, so that no order needs a cross product.
            differences = (f"({left}.k - {right}.k)" for left, right in combinations(self.names, 2))
            condition = " AND ".join(f"{difference} * {difference} < 1" for difference in differences)
        self.matched = keys is each_once
        self.rows_per_step = step * len(self.names)
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
        row_numbers = np.arange(len(keys))
        times = pa.array(row_numbers * self.spacing, pa.timestamp("us"))
        return pa.RecordBatch.from_pydict({"ts": times, "row": pa.array(row_numbers), "k": pa.array(keys)})


def left_deep(order: Sequence[str]) -> Any:
    tree: Any = order[0]
    for stream in order[1:]:
        tree = (tree, stream)
    return tree


@dataclass(frozen=True)
class Transition:
    """A change from one left-deep tree to another, each given by the order of its streams."""

    name: str
    before: tuple[str, ...]
    after: tuple[str, ...]


def best_case(names: Sequence[str]) -> Transition:
    """The two streams below the top are exchanged: the engine lacks the state of one join of the new plan."""
    return Transition("best case", tuple(names), _swapped(names, len(names) - 2, len(names) - 3))


def worst_case(names: Sequence[str]) -> Transition:
    """The lowest and the top stream are exchanged: the engine lacks the state of all joins but the last."""
    return Transition("worst case", tuple(names), _swapped(names, 0, len(names) - 1))


def _swapped(order: Sequence[str], one: int, other: int) -> tuple[str, ...]:
    changed = list(order)
    changed[one], changed[other] = changed[other], changed[one]
    return tuple(changed)


class Run:
    """An engine with full windows, fed step by step. It keeps all results since then, so that they can be compared."""

    def __init__(self, data: Input, order: Sequence[str], strategy: str) -> None:
        self._data = data
        self._strategy = strategy
        self._engine = Engine(self._program(order), strategy="jisc" if strategy == SEQUENCES else strategy)
        self._next = 0
        self._results: list[pa.RecordBatch] = []
        self.steps(FILLING)
        self._results.clear()

    def _program(self, order: Sequence[str]) -> Any:
        plan = Plan.of(self._data.query, left_deep(order))
        return lower(plan.without_join_states() if self._strategy in ("cacq", SEQUENCES) else plan)

    def steps(self, count: int) -> float:
        """Take `count` steps and return the seconds they took."""
        return sum(self.step() for _ in range(count))

    def step(self) -> float:
        """Take one step and return the seconds it took."""
        watermark = self._data.watermarks[self._next]
        segments = [Segment(name, rows, watermark) for name, rows in self._data.batches[self._next].items()]
        self._next += 1
        started = time.perf_counter()
        results = self._engine.step(segments)
        seconds = time.perf_counter() - started
        self._results += results
        return seconds

    def change(self, order: Sequence[str]) -> float:
        """Change the plan and return the seconds it took."""
        started = time.perf_counter()
        self._engine.change(self._program(order))
        return time.perf_counter() - started

    @property
    def results(self) -> pa.Table:
        return pa.Table.from_batches(self._results, self._engine.schema)
