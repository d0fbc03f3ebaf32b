"""Finished combinations to rows of the result."""

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
EVENT_TIME_TYPE = pa.timestamp("us", "UTC")

Places = Mapping[Column, int]
"""Where in the payload of its stream's window a column is kept."""


def gather(columns: Sequence[Column], combinations: Combinations, places: Places) -> dict[Column, pa.Array]:
    """The values that some columns have in these combinations."""
    return _take(columns, {alias: (window, ids) for alias, window, ids in combinations.by_stream()}, places)


def _take(
    columns: Sequence[Column], sides: Mapping[str, tuple[WindowState, Words]], places: Places
) -> dict[Column, pa.Array]:
    values: dict[Column, pa.Array] = {}
    for alias, (window, ids) in sides.items():
        own = (column for column in columns if column.source == alias)
        values.update({column: window.payload.take(places[column], ids) for column in own})
    return values


class Emitter:
    """Gathers finished combinations and turns them into columns all at once, which is cheaper than one by one.

    If `event_time` names a column, it holds the time from which all rows of a combination were alive.
    """

    def __init__(
        self, names: Sequence[str], outputs: Sequence[Compiled], places: Places, event_time: str | None = None
    ) -> None:
        fields = [pa.field(name, output.type) for name, output in zip(names, outputs, strict=True)]
        self._timed = event_time is not None
        self.schema = pa.schema([*fields, pa.field(event_time, EVENT_TIME_TYPE)] if self._timed else fields)
        self._outputs = outputs
        self._places = places
        self._columns = tuple(dict.fromkeys(column for output in outputs for column in output.columns))
        self._shown = {column.source for column in self._columns}
        self._windows: dict[str, WindowState] = {}
        self._ids: dict[str, list[Words]] = {}
        self._starts: list[Words] = []
        self._count = 0

    def add(self, combinations: Combinations) -> Iterator[pa.RecordBatch]:
        """Take combinations; gives rows once there are very many."""
        for alias, window, ids in combinations.by_stream():
            if alias in self._shown:
                self._windows[alias] = window
                # The ids may lie in a buffer that the next piece will overwrite.
                self._ids.setdefault(alias, []).append(ids.copy())
        if self._timed:
            self._starts.append(combinations.starts.copy())
        self._count += len(combinations)
        if self._count >= LARGEST_BATCH:
            yield from self.flush()

    def flush(self) -> Iterator[pa.RecordBatch]:
        """The rows of all combinations taken since the last time."""
        if self._count:
            sides = {alias: (self._windows[alias], np.concatenate(ids)) for alias, ids in self._ids.items()}
            values = _take(self._columns, sides, self._places)
            columns = [output(values, self._count) for output in self._outputs]
            if self._timed:
                columns.append(pa.array(np.concatenate(self._starts)).cast(EVENT_TIME_TYPE))
            yield pa.RecordBatch.from_arrays(columns, schema=self.schema)
        self._count = 0
        self._ids.clear()
        self._starts.clear()
