"""What comes after the inner joins of a query: its fixed joins in the order of the text, filters, existence tests.

None of it depends on the plan. The combinations of the inner joins become rows with lifetimes. These no longer refer to
windows or row ids.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import pyarrow as pa

from braid.engine.arrays.columns import State
from braid.engine.input.inlet import Inlet
from braid.engine.kernels.expression import Compiled, compile_expression
from braid.engine.output.emitter import EVENT_TIME_TYPE
from braid.engine.output.existence import WAITING, ExistenceFilter
from braid.engine.output.fixed_join_stage import FixedJoinStage
from braid.engine.output.waiting import END, START, TIME, RowLayout, WaitingRows
from braid.engine.segment import Segment
from braid.model.expressions.expression import Column, Expression, columns_of
from braid.model.output import Output
from braid.model.query import Query


class Conclusion:
    """Takes in the rows of the inner joins, and returns the results of the query.

    `rows` is the schema of these rows: the columns that the query projects, then those of `lifetime`. If `event_time`
    is not None, the results have a column of that name with their event time.
    """

    lifetime = (START, END)

    def __init__(self, query: Query, rows: pa.Schema, event_time: str | None, hash_bits: int) -> None:
        self.stages: list[FixedJoinStage] = []
        self._projection: _Projection | None = None
        if query.fixed_joins:
            self._layout = RowLayout(dict(zip(map(_column, query.projected), rows.types, strict=False)))
            layout = self._layout
            for join, lag in zip(query.fixed_joins, query.lags, strict=True):
                read_later = _read_later(query, join.source.alias)
                self.stages.append(FixedJoinStage(join, layout, read_later, lag, hash_bits))
                layout = self.stages[-1].result
            self._projection = _Projection(query, layout)
            rows = self._projection.schema
        else:
            rows = rows.remove(len(rows) - 1)
        timed = rows.set(len(rows) - 1, pa.field(event_time or TIME, EVENT_TIME_TYPE))
        self._filter = ExistenceFilter(query, timed, hash_bits=hash_bits) if query.existences else None
        last = len(timed) - 1
        self._shown = [*range(len(query.outputs)), *([] if event_time is None else [last])]
        """The positions of the columns of results."""
        self.schema = pa.schema([timed.field(position) for position in self._shown])

    @property
    def inlets(self) -> Mapping[str, Inlet]:
        """The inlets of the streams of fixed joins and existence tests."""
        of_stages = {stage.alias: stage.inlet for stage in self.stages}
        return of_stages if self._filter is None else {**of_stages, **self._filter.inlets}

    @property
    def waiting(self) -> int:
        """The number of rows that wait for a watermark."""
        return sum(stage.waiting for stage in self.stages) + (0 if self._filter is None else self._filter.waiting)

    def needed_from(self, alias: str) -> int:
        """The earliest start of a row that may still probe the window of a stream of a fixed join."""
        return next(stage.needed_from for stage in self.stages if stage.alias == alias)

    def step(self, segments: Sequence[Segment], rows: Iterable[pa.RecordBatch], horizon: int) -> list[pa.RecordBatch]:
        """Take in segments, and rows of the inner joins; returns results.

        After this step, the inner joins give no more rows that start before `horizon`.
        """
        if self._projection is None:
            results = [batch.remove_column(batch.num_columns - 1) for batch in rows]
        else:
            results = [self._layout.of_combinations(batch) for batch in rows]
            for stage in self.stages:
                results = stage.step(segments, results, horizon)
                horizon = stage.horizon
            results = list(self._projection(results))
        if self._filter is not None:
            results = self._filter.step(segments, results, horizon)
        return [self._show(batch) for batch in results if batch.num_rows]

    def _show(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        columns = [batch.column(position) for position in self._shown]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def restore(self, segments: Sequence[Segment]) -> None:
        """Take in segments whose results were returned before. When all are in, `wait` must follow."""
        for stage in self.stages:
            stage.restore(segments)
        if self._filter is not None:
            self._filter.restore(segments)

    def newly_waiting(self) -> tuple[WaitingRows, ...]:
        """The rows that began to wait since the last call, one entry for each log."""
        logs = [log for stage in self.stages for log in stage.newly_waiting()]
        return tuple(logs) if self._filter is None else (*logs, self._filter.newly_waiting())

    @property
    def logs(self) -> Mapping[str, str]:
        """The names of the logs of `newly_waiting`, and the column `until` of each."""
        of_stages = {name: until for stage in self.stages for name, until in stage.logs.items()}
        return of_stages if self._filter is None else {**of_stages, WAITING: TIME}

    def wait(self, logs: Mapping[str, Iterable[pa.RecordBatch]], horizon: int) -> None:
        """Take back the waiting rows of a stored state, by the names of their logs."""
        for stage in self.stages:
            stage.wait(logs, horizon)
            horizon = stage.horizon
        if self._filter is not None:
            self._filter.wait(logs)

    @property
    def movable(self) -> bool:
        """Whether `state` is complete. A window that counts rows must be rebuilt from its segments."""
        return all(stage.movable for stage in self.stages) and (self._filter is None or self._filter.movable)

    def state(self) -> State:
        stages = [stage.state() for stage in self.stages]
        return {"stages": stages, "filter": None if self._filter is None else self._filter.state()}

    def load(self, state: State) -> None:
        for stage, stage_state in zip(self.stages, state["stages"], strict=True):
            stage.load(stage_state)
        if self._filter is not None:
            self._filter.load(state["filter"])


class _Projection:
    """Turns rows of the last fixed join into results: drops those that fail a filter, and computes the output columns.

    After these come the columns that existence tests compare, and the event time.
    """

    def __init__(self, query: Query, layout: RowLayout) -> None:
        self._names = layout.names

        def compiled(expression: Expression) -> Compiled:
            return compile_expression(expression, layout.types.__getitem__)

        outputs = [output for output in query.outputs if isinstance(output, Output)]
        outputs += [Output(str(column), column) for column in query.compared]
        self._filters = [compiled(predicate.expression) for predicate in query.filters]
        self._outputs = [compiled(output.expression) for output in outputs]
        fields = [pa.field(output.name, kernel.type) for output, kernel in zip(outputs, self._outputs, strict=True)]
        self.schema = pa.schema([*fields, pa.field(TIME, EVENT_TIME_TYPE)])

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for rows in batches:
            for condition in self._filters:
                passing = condition(self._values(rows, condition.columns), rows.num_rows)
                rows = rows.filter(passing.fill_null(False))
            columns = [output(self._values(rows, output.columns), rows.num_rows) for output in self._outputs]
            yield pa.RecordBatch.from_arrays([*columns, rows.column(TIME)], schema=self.schema)

    def _values(self, rows: pa.RecordBatch, columns: Iterable[Column]) -> dict[Column, pa.Array]:
        return {column: rows.column(self._names[column]) for column in columns}


def _column(output: object) -> Column:
    assert isinstance(output, Output) and isinstance(output.expression, Column)
    return output.expression


def _read_later(query: Query, alias: str) -> list[Column]:
    """The columns of a fixed join's stream that are read outside its own ON, each once."""
    conditions = [predicate.expression for predicate in query.filters]
    for join in query.fixed_joins:
        if join.source.alias != alias:
            conditions += [predicate.expression for predicate in join.predicates]
    read = [column for expression in (*query.selected, *conditions) for column in columns_of(expression)]
    return list(dict.fromkeys(column for column in (*read, *query.compared) if column.source == alias))
