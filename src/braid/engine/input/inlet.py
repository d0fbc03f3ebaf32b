"""How one source of a query comes in: what is late goes, what must wait waits, the rest enters the window."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from braid.engine.arrays.columns import State
from braid.engine.arrays.jit import Words
from braid.engine.input.admission import Admission
from braid.engine.input.lifetime import event_times, lifetimes, starts_of
from braid.engine.input.row_counter import RowCounter
from braid.engine.keys.ordering import in_event_order
from braid.engine.segment import Segment, no_rows
from braid.engine.window.chain import NOBODY
from braid.engine.window.window_state import Renaming, WindowState
from braid.errors import StreamError
from braid.model.query import Source
from braid.model.window import FOREVER, Rows


class Inlet:
    """Rows of one source on their way into its window. Rows that are dropped are counted."""

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
        # A window that counts rows orders them by all their columns; any other never looks at most of them.
        self._columns = [
            name
            for name in self.declaration.schema.names
            if source.window.counts_rows or name in admission.columns_read | {self.declaration.time}
        ]
        self._schema = pa.schema([self.declaration.schema.field(name) for name in self._columns])
        self._counter = RowCounter(source.window) if isinstance(source.window, Rows) else None
        self._waiting: list[tuple[pa.RecordBatch, Words, int]] = []
        """Rows, their times, and when the first of them starts."""

    @property
    def earliest(self) -> int:
        """Where rows start that are not in the window yet: those to come, and those that came before the watermark."""
        return min([self.watermark, *(start for _, _, start in self._waiting)])

    def receive(self, segment: Segment) -> None:
        """Take rows in, all but the late ones and those without an event time."""
        self.watermark = max(self.watermark, segment.watermark)
        rows = self._checked(segment.rows)
        self.received += rows.num_rows + segment.untimed
        self.untimed += segment.untimed
        times = rows.column(self.declaration.time)
        if times.null_count:
            self.untimed += times.null_count
            rows = rows.filter(pc.is_valid(times))
            times = rows.column(self.declaration.time)
        moments = event_times(times)
        in_time = moments >= self.watermark
        if not in_time.all():
            self.late += int(len(in_time) - in_time.sum())
            rows, moments = rows.filter(pa.array(in_time)), moments[in_time]
        self._wait(rows, moments)

    def _wait(self, rows: pa.RecordBatch, times: Words) -> None:
        if rows.num_rows:
            starts = starts_of(times.min(keepdims=True), self.source.window)
            self._waiting.append((rows, times, int(starts[0])))

    def _checked(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        declared = self.declaration.schema
        if not rows.schema.equals(declared):
            raise StreamError(
                f"stream '{self.declaration.name}' was declared with the columns\n{declared}\n"
                f"but a segment came with\n{rows.schema}"
            )
        return rows.select(self._columns)

    def enter(self, horizon: int, before: int | None = None) -> Renaming | None:
        """Waiting rows enter the window; if `before` is given, only those that start before it, in order.

        From now on no row that starts before `horizon` probes this window. If the rows that were there already have
        got new ids to make room, returns which.
        """
        self.window.forget(horizon)
        rows, times = self._release(before)
        starts, ends = lifetimes(times, self.source.window)
        closing = None
        if self._counter is not None:
            closing = self._counter.close(rows, times)
            ends = closing.new_ends
            self.window.close(closing.older_ids, closing.older_ends)
        admitted, places = self.admission.admit(rows, starts, ends)
        crowded = len(self.window) + len(admitted) > self.window.capacity
        renaming = self._compact(horizon) if crowded else None
        self.first_new = self.window.append(admitted)
        self.entered += len(admitted)
        if self._counter is not None and closing is not None:
            ids = np.full(rows.num_rows, NOBODY)
            ids[places] = self.first_new + np.arange(len(places))
            self._counter.enter(closing, ids)
        return renaming

    def oldest_needed(self) -> int:
        """The event time before which no row of a counting window is needed; unknown (-FOREVER) for any other."""
        if self._counter is None:
            return -FOREVER
        starts, _ = self.window.lifetimes(self.window.tail, self.window.head)
        waiting = [times for _, times, _ in self._waiting]
        return int(min((times.min() for times in [starts, *waiting] if len(times)), default=self.watermark))

    def state(self) -> State:
        """All there is to know, unless rows wait or are counted: those are known by their segments alone."""
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

    def _release(self, before: int | None) -> tuple[pa.RecordBatch, Words]:
        # Who is alive at a moment is known only once the watermark has passed it, so a row waits for its start.
        leaving = [part for part in self._waiting if before is None or part[2] < before]
        if not leaving:
            return no_rows(self._schema), np.empty(0, np.int64)
        self._waiting = [part for part in self._waiting if before is not None and part[2] >= before]
        rows = pa.concat_batches([rows for rows, _, _ in leaving])
        times = np.concatenate([times for _, times, _ in leaving])
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
