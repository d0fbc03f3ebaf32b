"""One fixed join at work: a join of the rows so far (left) with one more stream (right).

An inner join of two streams finds the pairs of partners: its left stream are the rows so far, whose lifetimes are in
columns of their own. Whichever row of a pair comes last finds the other, so pairs are emitted at once. Beside the inner
join, `Pending` keeps the rows that may still find a partner, and knows which have found one. A left row finds no more
partners when the watermark of the right stream has passed its end. A right row finds no more when no row that starts
before its end can come from the left. Then the row leaves `Pending`, and is emitted if its side is preserved and it has
had no partner.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from braid.engine.arrays.columns import State
from braid.engine.arrays.jit import Words
from braid.engine.input.inlet import Inlet
from braid.engine.input.lifetime import ends_in, event_times, lifetimes
from braid.engine.join.inner_joins import InnerJoins
from braid.engine.output.pending import UNMATCHED, Pending, free_name
from braid.engine.output.waiting import (
    END,
    START,
    TIME,
    RowLayout,
    WaitingRows,
    concatenated,
    moments,
    time_of_absence,
    timestamps,
)
from braid.engine.segment import Segment, no_rows
from braid.model.expressions.expression import Column, map_columns
from braid.model.fixed_join import FixedJoin, JoinKind
from braid.model.output import Output
from braid.model.predicate import Predicate
from braid.model.program import Emit, Instruction, Join, Project, SiteProgram, keep_windows
from braid.model.query import Query
from braid.model.source import Source
from braid.model.stream import Stream
from braid.model.window import FOREVER, Until

ROW, RIGHT_ROW = "row", "right row"
"""The columns of pairs that hold the ids of their rows. The columns of streams have numbers for names."""


class FixedJoinStage:
    """Takes in rows of the layout `left`; returns rows of the layout `result`, which adds columns of the right side.

    `read_later` are the columns of the right stream that the query reads outside this join. A row from the left comes
    at most `lag` after its start.
    """

    def __init__(
        self, join: FixedJoin, left: RowLayout, read_later: Iterable[Column], lag: int, hash_bits: int
    ) -> None:
        self.alias = join.source.alias
        self._kind = join.kind
        self._lag = lag
        self._layout = left
        self._stream = join.source.declared
        right_types = {column: self._stream.schema.field(column.name).type for column in read_later}
        self.result = left.with_columns(right_types) if join.kind.shows_right else left
        self._right_columns = {self.result.names[column]: column.name for column in right_types}
        self._left_schema = left.schema.append(pa.field(ROW, pa.int64()))
        self.left = Pending(f"\0{self.alias} left", self._left_schema, ROW, START, END)
        self._right = _RightSide(join.source) if join.kind.preserves_right else None
        source = join.source if self._right is None else self._right.source
        query = self._query(join, source)
        self._left_name = query.aliases[0]
        self._joins = InnerJoins(SiteProgram(query, tuple(_two_way(query))), lifetime=(START, END), hash_bits=hash_bits)
        self._restored_watermark = -FOREVER
        self.horizon = -FOREVER
        """From now on, no result that starts before this will come."""

    def _query(self, join: FixedJoin, right: Source) -> Query:
        """The inner join of the two sides. Its outputs are the columns of results, and the ids of the two rows."""
        alias = f"rows before {self.alias}"
        rows = Source(alias, alias, Until(END), Stream(alias, self._left_schema, START))
        outputs = [Output(name, Column(alias, name)) for name in (TIME, ROW)]
        if self._kind.shows_right:
            outputs += [Output(name, Column(alias, name)) for name in self._layout.names.values()]
            outputs += [Output(name, Column(self.alias, read)) for name, read in self._right_columns.items()]
        if self._right is not None:
            outputs.append(Output(RIGHT_ROW, Column(self.alias, self._right.row)))

        def read(column: Column) -> Column:
            return column if column.source == self.alias else Column(alias, self._layout.names[column])

        predicates = [Predicate(map_columns(predicate.expression, read)) for predicate in join.predicates]
        return Query("", (rows, right), tuple(outputs), tuple(predicates))

    @property
    def left_columns(self) -> Mapping[Column, str]:
        """The names that columns of streams have in the rows of the left side."""
        return self._layout.names

    @property
    def right(self) -> Pending | None:
        """The pending rows of the right side, if it is preserved."""
        return None if self._right is None else self._right.pending

    @property
    def inlet(self) -> Inlet:
        """The inlet of the right stream."""
        return self._joins.inlets[self.alias]

    @property
    def waiting(self) -> int:
        """The number of rows that wait for a watermark."""
        return len(self.left) + (0 if self._right is None else len(self._right.pending))

    @property
    def needed_from(self) -> int:
        """The earliest start of a row that may still probe the window of the right stream."""
        return self._joins.needed_from(self.alias)

    def step(self, segments: Iterable[Segment], rows: Sequence[pa.RecordBatch], horizon: int) -> list[pa.RecordBatch]:
        """Take in segments of the right stream, and rows from the left; returns results.

        After this step, no more rows that start before `horizon` come from the left.
        """
        new = self._numbered(concatenated(rows, self._layout.schema))
        self.left.add(new)
        received = [Segment(self._left_name, new), self._left_progress(horizon)]
        for segment in segments:
            if segment.stream == self._stream.name:
                received.append(segment if self._right is None else self._right.receive(segment, self.inlet.watermark))
        pairs = self._joins.step(received)
        results = [*self._matched(pairs), *self._unmatched(horizon)]
        self._raise_horizon(horizon)
        return [batch for batch in results if batch.num_rows]

    def _numbered(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        ids = pa.array(self.left.next_ids(rows.num_rows))
        return pa.RecordBatch.from_arrays([*rows.columns, ids], schema=self._left_schema)

    def _left_progress(self, horizon: int) -> Segment:
        return Segment(self._left_name, no_rows(self._left_schema), horizon)

    def _matched(self, pairs: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Mark the rows of pairs as matched; yields the results that have columns of both sides."""
        for batch in pairs:
            starts = moments(batch, START)
            times = np.maximum(moments(batch, TIME), starts)
            # A semi join needs the time of the first partner; the others only need to know whether there was one.
            self.left.mark(batch.column(ROW).to_numpy(), times if self._kind is JoinKind.SEMI else np.zeros_like(times))
            if self._right is not None:
                self._right.pending.mark(batch.column(RIGHT_ROW).to_numpy(), np.zeros_like(times))
            if self._kind.shows_right:
                columns = {name: batch.column(name) for name in self.result.names.values()}
                yield self.result.rows(columns, batch.column(START), batch.column(END), times)

    def _unmatched(self, horizon: int) -> Iterator[pa.RecordBatch]:
        """The results that have columns of one side only, as far as they are certain now."""
        certain = self._certain(horizon)
        if self._kind in (JoinKind.SEMI, JoinKind.ANTI):
            rows, times = self.left.take_matched(certain if self._kind is JoinKind.SEMI else FOREVER)
            if self._kind is JoinKind.SEMI:
                yield self._alone(rows, times)
        rows, first_match = self.left.take_ended(certain)
        if self._kind.preserves_left:
            rows = rows.filter(pa.array(first_match == UNMATCHED))
            yield self._alone(rows, time_of_absence(moments(rows, TIME), moments(rows, END)))
        if self._right is not None:
            rows, first_match = self._right.pending.take_ended(horizon)
            yield self._right_alone(rows.filter(pa.array(first_match == UNMATCHED)))

    def _certain(self, horizon: int) -> int:
        """The time up to which all pairs are known: no right row that starts before it will come."""
        if self._joins.released is not None:
            return min(horizon, self.inlet.watermark)  # If a window counts rows, rows enter only up to here.
        return self.inlet.watermark

    def _alone(self, rows: pa.RecordBatch, times: Words) -> pa.RecordBatch:
        """Left rows without a right one."""
        columns = {name: rows.column(name) for name in self._layout.names.values()}
        return self.result.rows(columns, rows.column(START), rows.column(END), times)

    def _right_alone(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Right rows without a left one."""
        assert self._right is not None
        columns = {name: rows.column(read) for name, read in self._right_columns.items()}
        starts, ends = moments(rows, self._right.start), moments(rows, self._right.end)
        # A row that starts before the end may come from the left as late as this.
        certain = np.where(ends == FOREVER, ends, np.minimum(ends, FOREVER - 1 - self._lag) + self._lag)
        return self.result.rows(columns, starts, ends, time_of_absence(starts, certain))

    def _raise_horizon(self, horizon: int) -> None:
        """A later result has a row that is still to come, or is a pending row."""
        self.horizon = horizon
        if self._kind.preserves_left or self._kind is JoinKind.SEMI:
            self.horizon = min(self.horizon, self.left.earliest_start)
        if self._kind.shows_right:
            self.horizon = min(self.horizon, self.inlet.earliest)
        if self._right is not None:
            self.horizon = min(self.horizon, self._right.pending.earliest_start)

    def newly_waiting(self) -> tuple[WaitingRows, ...]:
        """The rows of the last step to log: of the left side, and of the right side if it is preserved."""
        # A left row is needed while it ends after what is certain; a right one, while it ends after the horizon.
        left = self.left.newly_waiting(_after(self._certain(self._left_watermark)))
        return (
            left if self._right is None else (*left, *self._right.pending.newly_waiting(_after(self._left_watermark)))
        )

    @property
    def logs(self) -> Mapping[str, str]:
        """The names of the logs of `newly_waiting`, and the column `until` of each."""
        return self.left.logs if self._right is None else {**self.left.logs, **self._right.pending.logs}

    @property
    def _left_watermark(self) -> int:
        return self._joins.inlets[self._left_name].watermark

    def restore(self, segments: Iterable[Segment]) -> None:
        """Take in segments of the right stream whose pairs were found before."""
        own = [segment for segment in segments if segment.stream == self._stream.name]
        if self._right is None:
            self._joins.restore(own)
        # The rows of a preserved right side come from its log, in `wait`. The watermark must not come before them.
        self._restored_watermark = max([self._restored_watermark, *(segment.watermark for segment in own)])

    def wait(self, logs: Mapping[str, Iterable[pa.RecordBatch]], horizon: int) -> None:
        """Take back the logged rows, after all segments are restored."""
        self.left.restore(logs)
        received = []
        if self._right is not None:
            self._right.pending.restore(logs)
            self._right.pending.take_ended(horizon)
            received.append(self._right.restored())
        received.append(Segment(self._stream.name, no_rows(self.inlet.declaration.schema), self._restored_watermark))
        certain = self._restored_watermark if self._joins.released is None else min(horizon, self._restored_watermark)
        self.left.take_ended(certain)
        if self._kind in (JoinKind.SEMI, JoinKind.ANTI):
            self.left.take_matched(certain if self._kind is JoinKind.SEMI else FOREVER)
        self._joins.restore([Segment(self._left_name, self.left.rows()), *received, self._left_progress(horizon)])
        self._raise_horizon(horizon)

    @property
    def movable(self) -> bool:
        """Whether `state` is complete. A window that counts rows must be rebuilt from its segments."""
        return self._joins.movable

    def state(self) -> State:
        right = None if self._right is None else self._right.pending.state()
        return {"joins": self._joins.state(), "left": self.left.state(), "right": right, "horizon": self.horizon}

    def load(self, state: State) -> None:
        self._joins.load(state["joins"])
        self.left.load(state["left"])
        if self._right is not None:
            self._right.pending.load(state["right"])
        self.horizon = state["horizon"]


class _RightSide:
    """The rows of a right side that is preserved: each has an id, a start and an end in columns of its own."""

    def __init__(self, source: Source) -> None:
        self._window = source.window
        self._time = source.declared.time
        names = list(source.declared.schema.names)
        self.row = free_name(ROW, names)
        self.start, self.end = free_name(START, names), free_name(END, names)
        self._schema = source.declared.schema.append(pa.field(self.row, pa.int64()))
        self.source = replace(source, declaration=replace(source.declared, schema=self._schema))
        pending_schema = self._schema
        for name in (self.start, self.end):
            pending_schema = pending_schema.append(pa.field(name, pa.timestamp("us", "UTC")))
        self.pending = Pending(f"\0{source.alias} right", pending_schema, self.row, self.start, self.end)

    def receive(self, segment: Segment, watermark: int) -> Segment:
        """The segment with ids for its rows. Rows that are in time become pending."""
        ids = pa.array(self.pending.next_ids(segment.rows.num_rows))
        rows = pa.RecordBatch.from_arrays([*segment.rows.columns, ids], schema=self._schema)
        timed = rows.filter(rows.column(self._time).is_valid())
        times = event_times(timed.column(self._time))
        starts, ends = lifetimes(times, self._window)
        if self._window.end_column is not None:
            ends = ends_in(timed.column(self._window.end_column))
        alive = pa.array((times >= max(watermark, segment.watermark)) & (starts < ends))
        columns = [*timed.columns, timestamps(starts), timestamps(ends)]
        self.pending.add(pa.RecordBatch.from_arrays(columns, schema=self.pending.schema).filter(alive))
        return replace(segment, rows=rows)

    def restored(self) -> Segment:
        """The pending rows, to fill an empty window."""
        rows = self.pending.rows().select(self._schema.names)
        return Segment(self.source.declared.name, rows)


def _two_way(query: Query) -> Iterator[Instruction]:
    """The program of an inner join of two streams."""
    yield from keep_windows(query)
    left, right = query.aliases
    for head, other in ((left, right), (right, left)):
        pairs = f"{head} with {other}"
        keys = query.graph.classes_between([head], other)
        yield Join(head, other, pairs, keys, query.graph.residuals_at([head], other))
        yield Project(pairs, f"result of {pairs}", query.outputs)
        yield Emit(f"result of {pairs}", query.text)


def _after(moment: int) -> int:
    """The next microsecond, but never later than FOREVER."""
    return min(moment, FOREVER - 1) + 1
