"""Turns finished combinations into result rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from braid.engine.arrays.jit import Words
from braid.engine.join.combinations import Combinations
from braid.engine.kernels.expression import Compiled
from braid.engine.window.window_state import WindowState
from braid.model.expressions.expression import Column

LARGEST_BATCH = 1 << 18
"""When this many combinations have been added, they are emitted as one batch."""

EVENT_TIME_TYPE = pa.timestamp("us", "UTC")

PayloadPositions = Mapping[Column, int]
"""The position of each column in the payload of its stream's window."""


def gather(
    columns: Sequence[Column], combinations: Combinations, positions: PayloadPositions
) -> dict[Column, pa.Array]:
    """The values that some columns have in these combinations."""
    return _take(columns, {alias: (window, ids) for alias, window, ids in combinations.by_stream()}, positions)


def _take(
    columns: Sequence[Column], rows: Mapping[str, tuple[WindowState, Words]], positions: PayloadPositions
) -> dict[Column, pa.Array]:
    """The values of columns; `rows` are the window and the row ids of each stream."""
    values: dict[Column, pa.Array] = {}
    for alias, (window, ids) in rows.items():
        for column in columns:
            if column.source == alias:
                values[column] = window.payload.take(positions[column], ids)
    return values


class Emitter:
    """Collects finished combinations and turns many at once into columns, which is cheaper than piece by piece.

    `lifetime` names columns to add: none, or one for the time from which all rows of a combination were alive, or two:
    that one, and one for the time up to which they are.
    """

    def __init__(
        self,
        names: Sequence[str],
        outputs: Sequence[Compiled],
        positions: PayloadPositions,
        lifetime: Sequence[str] = (),
    ) -> None:
        fields = [pa.field(name, output.type) for name, output in zip(names, outputs, strict=True)]
        self._lifetime = len(lifetime)
        self.schema = pa.schema([*fields, *(pa.field(name, EVENT_TIME_TYPE) for name in lifetime)])
        self._outputs = outputs
        self._positions = positions
        self._columns = tuple(dict.fromkeys(column for output in outputs for column in output.columns))
        self._streams_read = {column.source for column in self._columns}
        self._windows: dict[str, WindowState] = {}
        self._ids: dict[str, list[Words]] = {}
        self._starts: list[Words] = []
        self._ends: list[Words] = []
        self._count = 0

    def add(self, combinations: Combinations) -> Iterator[pa.RecordBatch]:
        """Add combinations; yields result rows once there are LARGEST_BATCH of them."""
        for alias, window, ids in combinations.by_stream():
            if alias in self._streams_read:
                self._windows[alias] = window
                # The ids may lie in a buffer that the next piece overwrites.
                self._ids.setdefault(alias, []).append(ids.copy())
        if self._lifetime:
            self._starts.append(combinations.starts.copy())
            self._ends.append(combinations.ends.copy())
        self._count += len(combinations)
        if self._count >= LARGEST_BATCH:
            yield from self.flush()

    def flush(self) -> Iterator[pa.RecordBatch]:
        """The result rows of all combinations added since the last flush."""
        if self._count:
            rows = {alias: (self._windows[alias], np.concatenate(ids)) for alias, ids in self._ids.items()}
            values = _take(self._columns, rows, self._positions)
            columns = [output(values, self._count) for output in self._outputs]
            for bounds in (self._starts, self._ends)[: self._lifetime]:
                columns.append(pa.array(np.concatenate(bounds)).cast(EVENT_TIME_TYPE))
            yield pa.RecordBatch.from_arrays(columns, schema=self.schema)
        self._count = 0
        self._ids.clear()
        self._starts.clear()
        self._ends.clear()
