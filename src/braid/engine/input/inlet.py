"""The inlet of one source of a query: late rows are dropped, rows that must wait wait, the others enter the window."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from braid.engine.arrays.columns import State
from braid.engine.arrays.jit import Words
from braid.engine.input.admission import Admission
from braid.engine.input.lifetime import ends_in, event_times, lifetimes, starts_of
from braid.engine.input.row_counter import RowCounter
from braid.engine.keys.ordering import in_event_order
from braid.engine.segment import Segment
from braid.engine.window.chain import NO_ROW
from braid.engine.window.window_state import Renaming, WindowState
from braid.errors import StreamError
from braid.model.query import Source
from braid.model.window import FOREVER


@dataclass(frozen=True, slots=True)
class _WaitingRows:
    """Rows that have not entered the window, their event times, and the earliest start among them."""

    rows: pa.RecordBatch
    times: Words
    earliest_start: int


class Inlet:
    """Rows of one source on their way into its window. Counts rows received, dropped and entered."""

    def __init__(self, source: Source, admission: Admission, window: WindowState) -> None:
        self.source = source
        self.declaration = source.declared
        self.admission = admission
        self.window = window
        self.watermark = -FOREVER
        self.received = 0
        self.late = 0
        self.untimed = 0
        self.entered = 0
        self.first_new = 0
        """The id of the first row that the last call of `enter` added to the window."""
        # A window that counts rows orders them by all their columns; any other reads only the columns it needs.
        read = admission.columns_read | {self.declaration.time, source.window.end_column}
        self._columns = [name for name in self.declaration.schema.names if source.window.counts_rows or name in read]
        limit = source.window.row_limit
        self._counter = None if limit is None else RowCounter(limit, source.window.partition_by)
        self._waiting: list[_WaitingRows] = []

    @property
    def earliest(self) -> int:
        """The earliest start of a row that is not in the window: a row still to come, or one that waits."""
        return min([self.watermark, *(batch.earliest_start for batch in self._waiting)])

    @property
    def waiting(self) -> int:
        """How many rows wait for a watermark before they enter the window."""
        return sum(batch.rows.num_rows for batch in self._waiting)

    def receive(self, segment: Segment) -> None:
        """Take the rows of a segment in, except late rows and rows without an event time."""
        self.watermark = max(self.watermark, segment.watermark)
        self._check(segment.rows)
        self.received += segment.rows.num_rows + segment.untimed
        self.untimed += segment.untimed
        if not segment.rows.num_rows:
            return
        rows = segment.rows.select(self._columns)
        times = rows.column(self.declaration.time)
        if times.null_count:
            self.untimed += times.null_count
            rows = rows.filter(pc.is_valid(times))
            times = rows.column(self.declaration.time)
        microseconds = event_times(times)
        in_time = microseconds >= self.watermark
        if not in_time.all():
            self.late += int(len(in_time) - in_time.sum())
            rows, microseconds = rows.filter(pa.array(in_time)), microseconds[in_time]
        self._wait(rows, microseconds)

    def _wait(self, rows: pa.RecordBatch, times: Words) -> None:
        if rows.num_rows:
            starts = starts_of(times.min(keepdims=True), self.source.window)
            self._waiting.append(_WaitingRows(rows, times, int(starts[0])))

    def _check(self, rows: pa.RecordBatch) -> None:
        declared = self.declaration.schema
        if not rows.schema.equals(declared):
            raise StreamError(
                f"stream '{self.declaration.name}' was declared with the columns\n{declared}\n"
                f"but a segment has the columns\n{rows.schema}"
            )

    def enter(self, horizon: int, before: int | None = None) -> Renaming | None:
        """Waiting rows enter the window; if `before` is given, only rows that start before it.

        From now on no row that starts before `horizon` probes this window. If rows in the window have got new ids to
        make room, returns how ids have changed.
        """
        self.window.forget(horizon)
        leaving = self._release(before)
        if leaving is None:
            self.first_new = self.window.next_id
            return None
        rows, times = leaving
        starts, ends = lifetimes(times, self.source.window)
        closing = None
        if self._counter is not None:
            closing = self._counter.close(rows, times)
            ends = closing.new_ends
            self.window.close(closing.older_ids, closing.older_ends)
        elif self.source.window.end_column is not None:
            ends = ends_in(rows.column(self.source.window.end_column))
        admitted, positions = self.admission.admit(rows, starts, ends)
        crowded = len(self.window) + len(admitted) > self.window.capacity
        renaming = self._compact(horizon) if crowded else None
        self.first_new = self.window.append(admitted)
        self.entered += len(admitted)
        if self._counter is not None and closing is not None:
            ids = np.full(rows.num_rows, NO_ROW)
            ids[positions] = self.first_new + np.arange(len(positions))
            self._counter.enter(closing, ids)
        return renaming

    def oldest_needed(self) -> int:
        """The event time before which no row is needed, if the window counts rows; else -FOREVER, for unknown."""
        if self._counter is None:
            return -FOREVER
        starts, _ = self.window.lifetimes(self.window.tail, self.window.next_id)
        waiting = [batch.times for batch in self._waiting]
        return int(min((times.min() for times in [starts, *waiting] if len(times)), default=self.watermark))

    def state(self) -> State:
        """The whole state, unless rows wait or are counted: then only the segments of the rows have it."""
        counts = {"received": self.received, "late": self.late, "untimed": self.untimed, "entered": self.entered}
        return {"watermark": self.watermark, **counts, "window": self.window.state()}

    def load(self, state: State) -> None:
        self.watermark, self.received = state["watermark"], state["received"]
        self.late, self.untimed, self.entered = state["late"], state["untimed"], state["entered"]
        self.window.load(state["window"])

    def _compact(self, horizon: int) -> Renaming | None:
        renaming = self.window.compact(horizon)
        if renaming is not None and self._counter is not None:
            self._counter.rename(renaming)
        return renaming

    def _release(self, before: int | None) -> tuple[pa.RecordBatch, Words] | None:
        """Take out the rows that may enter the window, if there are any; in event-time order if they are counted."""
        # Where rows are counted, it is known which rows are alive at a time only when the watermark has passed it.
        # So a row waits until the watermark has passed its start.
        leaving = [batch for batch in self._waiting if before is None or batch.earliest_start < before]
        if not leaving:
            return None
        self._waiting = [batch for batch in self._waiting if before is not None and batch.earliest_start >= before]
        rows = pa.concat_batches([batch.rows for batch in leaving])
        times = np.concatenate([batch.times for batch in leaving])
        if before is None:
            return rows, times
        starts = starts_of(times, self.source.window)
        ready = starts < before
        if not ready.all():
            self._wait(rows.filter(pa.array(~ready)), times[~ready])
            rows, times = rows.filter(pa.array(ready)), times[ready]
        if self._counter is None:
            return rows, times
        order = in_event_order(rows, times)
        return rows.take(pa.array(order)), times[order]
