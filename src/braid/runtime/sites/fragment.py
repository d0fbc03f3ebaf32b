"""A fragment: one join at one site, as a query that an engine runs over the streams that reach it.

There are two kinds. In a *symmetric* fragment new rows of each input look for matches in all others, as in any join; by
the delta rule of its engine each combination is found once, in whatever order the inputs arrive.

In an *asymmetric* fragment, a step of a probe sequence, one input is the head. A combination counts only if the head is
its last part in event time; the sequences of the other heads find the others. So the head matches rows that are alive
when it starts. The fragment gives each row of the head a lifetime of that one moment, and the join finds exactly those
matches, whichever side comes first. Where two rows start at the same moment, the stream that the query names first is
the earlier one: rows of later streams start one moment later here, too late for the head.

A fragment with one input *relays* it: rows in time that meet the conditions on the stream alone go on to other sites,
or are the results of the query.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa

from braid.engine.input.lifetime import event_times, starts_of
from braid.errors import PlanError
from braid.model.expressions.expression import Column, map_columns
from braid.model.expressions.types import INSTANT
from braid.model.output import Output
from braid.model.predicate import Predicate
from braid.model.program import ALWAYS, Guard
from braid.model.query import Query, Source
from braid.model.stream import Stream
from braid.model.window import Now, Until, Window
from braid.runtime.sites.guarding import guarded
from braid.runtime.sites.wire import WireStream

START, END = "(start)", "(end)"
"""Columns that a fragment adds to rows whose lifetime is not what a window makes of their event time."""


@dataclass(frozen=True)
class Fragment:
    """A join of some inputs. `head` is the probing one of an asymmetric fragment, None in a symmetric one.

    `output` is the stream it makes; None if its results are those of the query.
    """

    query: Query
    inputs: tuple[WireStream, ...]
    output: WireStream | None
    head: str | None = None
    guards: Mapping[str, Guard] = field(default_factory=dict)

    def __post_init__(self) -> None:
        joined = [alias for stream in self.inputs for alias in stream.parts]
        counted = [alias for alias in joined if self._counts_rows(alias)]
        if counted and not self.relays and (self.output is not None or self.head is not None):
            raise PlanError(
                f"the window of '{counted[0]}' counts rows, so that it is not known when its rows end until later ones "
                "come; join all streams of the query at one site, or give it a window of time"
            )

    @property
    def reads(self) -> tuple[str, ...]:
        return tuple(stream.name for stream in self.inputs)

    @property
    def own(self) -> frozenset[str]:
        """The inputs that start here: their late rows are dropped, and the conditions on each alone are checked."""
        return frozenset(stream.name for stream in self.inputs if stream.at_origin)

    @property
    def relays(self) -> bool:
        """Whether the fragment passes on its only input, whose window others keep."""
        return self.output is not None and self.reads == (self.output.name,)

    @property
    def is_unfiltered(self) -> bool:
        """Whether the fragment passes on a stream where it starts, before the conditions on it alone are checked."""
        return self.output is not None and self.output.at_origin

    def input(self, name: str) -> WireStream:
        return next(stream for stream in self.inputs if stream.name == name)

    def _counts_rows(self, alias: str) -> bool:
        return self.query.source(alias).window.counts_rows

    @cached_property
    def local_query(self) -> Query:
        """What the engine of this fragment runs: its inputs are the streams, whatever they are made of."""
        outputs = self.query.outputs if self.output is None else tuple(self._carried(self.output))
        selected = [output for output in outputs if isinstance(output, Output)]
        return Query(
            f"{' ⋈ '.join(stream.name for stream in self.inputs)} of: {self.query.text}",
            tuple(self._source(stream) for stream in self.inputs),
            (*map(self._localized, selected), *self._starts()),
            tuple(Predicate(map_columns(condition.expression, self._local)) for condition in self._conditions()),
            grouping=self.query.grouping if self.output is None else None,
        )

    def prepare(self, stream: WireStream, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Rows of an input as the engine takes them: those of the query that its guard lets through, with lifetimes."""
        belonging = stream.entering(rows)
        return self._with_lifetimes(stream, guarded(belonging, stream, self.guards.get(stream.name, ALWAYS)))

    def in_time(self, stream: WireStream, rows: pa.RecordBatch, watermark: int) -> pa.RecordBatch:
        """The prepared rows of an own input whose event time, not only their start, is at or after the watermark."""
        if not self._is_timed_here(stream):
            return rows  # The engine itself goes by their event time.
        in_time = event_times(rows.column(self.query.source(stream.name).declared.time)) >= watermark
        return rows if in_time.all() else rows.filter(pa.array(in_time))

    def _with_lifetimes(self, stream: WireStream, rows: pa.RecordBatch) -> pa.RecordBatch:
        columns, names = list(rows.columns), list(rows.schema.names)
        if self._is_timed_here(stream):
            starts, ends = stream.lifetimes(rows)
            if stream.name == self.head:
                ends = starts + 1
            elif self._loses_ties(stream):
                starts = starts + 1
            columns += [pa.array(starts).cast(INSTANT), pa.array(ends).cast(INSTANT)]
        elif self._adds_start(stream):
            source = self.query.source(stream.name)
            starts = starts_of(event_times(rows.column(source.declared.time)), source.window)
            columns.append(pa.array(starts).cast(INSTANT))
        return pa.RecordBatch.from_arrays(columns, schema=self._schema(stream)) if len(columns) > len(names) else rows

    def _is_timed_here(self, stream: WireStream) -> bool:
        """Whether the fragment gives rows their lifetimes; otherwise their window does."""
        return self.head is not None or not stream.is_base

    def _adds_start(self, stream: WireStream) -> bool:
        return stream.is_base and self.output is not None and stream.name in self.output.started

    def _loses_ties(self, stream: WireStream) -> bool:
        """Whether a row of the stream that starts with the head is later than it."""
        if self.head is None:
            return False
        order = self.query.aliases
        return order.index(stream.parts[0]) > order.index(self.input(self.head).parts[0])

    def _schema(self, stream: WireStream) -> pa.Schema:
        fields = list(stream.schema)
        if self._is_timed_here(stream):
            fields += [pa.field(START, INSTANT), pa.field(END, INSTANT)]
        elif self._adds_start(stream):
            fields.append(pa.field(START, INSTANT))
        return pa.schema(fields)

    def _source(self, stream: WireStream) -> Source:
        lateness = self.query.source(stream.name).declared.lateness if stream.name in self.own else 0
        if self._is_timed_here(stream):
            window: Window = Until(END)
            time = START
        else:
            window = Now() if self.relays else self.query.source(stream.name).window
            time = self.query.source(stream.name).declared.time
        return Source(stream.name, stream.name, window, Stream(stream.name, self._schema(stream), time, lateness))

    def _local(self, column: Column) -> Column:
        """A column of the query as this fragment has it."""
        stream = next(stream for stream in self.inputs if column.source in stream.parts)
        return Column(stream.name, stream.field_names[column])

    def _localized(self, output: Output) -> Output:
        return Output(output.name, map_columns(output.expression, self._local))

    def _carried(self, output: WireStream) -> Iterator[Output]:
        """The columns of a derived stream that are those of its parts."""
        for column, name in output.field_names.items():
            yield Output(name, column)

    def _starts(self) -> Iterator[Output]:
        """The columns of a derived stream that say when its parts started."""
        for alias, name in (self.output.start_names if self.output is not None else {}).items():
            stream = next(stream for stream in self.inputs if alias in stream.parts)
            yield Output(name, Column(stream.name, START if stream.is_base else stream.start_names[alias]))

    def _conditions(self) -> Iterator[Predicate]:
        """Every condition between inputs; conditions within one are checked where it enters the query.

        A window that counts rows counts them all, so that conditions on its stream alone are checked where the window
        is, and not where the stream starts.
        """
        graph, members = self.query.graph, [frozenset(stream.parts) for stream in self.inputs]
        for stream in self.inputs:
            counts_rows = stream.is_base and self._counts_rows(stream.name)
            if not self.relays if counts_rows else stream.name in self.own and not self.is_unfiltered:
                yield from graph.selections_of(stream.name)
            if stream.reused is not None:
                yield from stream.reused.remaining
        for tied in graph.classes:
            keys = []
            for parts in members:
                alias = next((alias for alias in self.query.aliases if alias in parts & tied.sources), None)
                if alias is not None:
                    keys.append(tied.key(alias))
            yield from (tied.equality(keys[0], key, self.query.schemas) for key in keys[1:])
        joined = frozenset().union(*members)
        for residual in graph.residuals:
            if residual.sources <= joined and not any(residual.sources <= parts for parts in members):
                yield residual
