"""The views of a query on the local host: from the segments of declared streams to those that the query reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

import pyarrow as pa

from braid.adapt.observation import StreamSeen
from braid.engine.segment import Segment
from braid.errors import QueryError
from braid.language.reading import function_stream, query_stream, union_stream
from braid.language.row_binding import bind_rows
from braid.language.views import FunctionView, QueryView, RowsView, UnionView, View
from braid.model.expressions.expression import Column
from braid.model.plan import Plan
from braid.model.query import Query
from braid.model.row_query import RowQuery
from braid.model.stream import Stream
from braid.model.window import Window
from braid.runtime.row_view import RowMaker, with_windows
from braid.runtime.shard import Shard, ShardSettings

Schemas = Callable[[str], pa.Schema]
"""The layout in which the columns of a stream or table were given."""


class _Maker(Protocol):
    """Makes the rows of a view of one step."""

    inputs: tuple[str, ...]
    original_schema: pa.Schema

    def make(self, segments: Sequence[Segment]) -> pa.RecordBatch: ...


class LocalViews:
    """The views of one query, in the order in which they are defined."""

    def __init__(self, tables: Mapping[str, pa.RecordBatch], original: Schemas) -> None:
        self._tables = tables
        self._declared_schema = original
        self._makers: dict[str, tuple[Stream, _Maker]] = {}

    def define(self, view: View) -> Stream:
        maker: _Maker
        match view:
            case RowsView():
                query = bind_rows(view)
                stream = query.result
                maker = _Rows(query, self._tables, self.original_schema)
            case FunctionView():
                stream = function_stream(view)
                maker = _Windows(view, stream.schema, self.original_schema)
            case UnionView():
                stream = union_stream(view)
                maker = _Union(view, stream.schema, self.original_schema)
            case QueryView():
                stream = query_stream(view)
                maker = _Results(view, stream.schema)
        self._makers[stream.name] = stream, maker
        return stream

    def original_schema(self, name: str) -> pa.Schema:
        """The layout of a stream, table or view as it was given."""
        return self._makers[name][1].original_schema if name in self._makers else self._declared_schema(name)

    def step(self, segments: Sequence[Segment], query: Query) -> list[Segment]:
        """The segments of the streams that a query reads, from those of the declared streams."""
        by_name = {segment.stream: segment for segment in segments}
        for name, (_, maker) in self._makers.items():
            inputs = [by_name[stream] for stream in maker.inputs]
            # A view is as far as the slowest of its streams.
            watermark = min(segment.watermark for segment in inputs)
            by_name[name] = Segment(name, maker.make(inputs), watermark)
        return [by_name[name] for name in dict.fromkeys(source.declared.name for source in query.inputs)]

    def windows(self, query: Query) -> Iterator[tuple[str, Window]]:
        """The windows that hold rows of each declared stream, each with the name of the stream."""
        inner = [maker.query for _, maker in self._makers.values() if isinstance(maker, _Results)]
        for source in (source for reader in (query, *inner) for source in reader.inputs):
            for name in self._origins(source.declared.name):
                yield name, source.window

    def _origins(self, name: str) -> Iterator[str]:
        if name not in self._makers:
            yield name
            return
        for stream in self._makers[name][1].inputs:
            yield from self._origins(stream)

    @property
    def seen(self) -> dict[str, StreamSeen]:
        """What the queries in FROM have counted of their streams, by alias."""
        counted: dict[str, StreamSeen] = {}
        for _, maker in self._makers.values():
            if isinstance(maker, _Results):
                counted |= maker.seen
        return counted


class _Rows:
    def __init__(self, query: RowQuery, tables: Mapping[str, pa.RecordBatch], original: Schemas) -> None:
        self._maker = RowMaker(query, tables)
        self.inputs: tuple[str, ...] = (query.stream.name,)
        names = {query.alias: query.stream.name, **{join.alias: join.table.name for join in query.joins}}
        fields = []
        for field, output in zip(query.result.schema, query.outputs, strict=True):
            value = output.expression
            if isinstance(value, Column):
                field = field.with_type(original(names[value.source or ""]).field(value.name).type)
            fields.append(field)
        self.original_schema = pa.schema(fields)

    def make(self, segments: Sequence[Segment]) -> pa.RecordBatch:
        return self._maker.make(segments[0].rows)


class _Windows:
    def __init__(self, view: FunctionView, schema: pa.Schema, original: Schemas) -> None:
        self._view = view
        self._schema = schema
        self.inputs: tuple[str, ...] = (view.stream.name,)
        self.original_schema = pa.schema([*original(view.stream.name), *list(schema)[-2:]])

    def make(self, segments: Sequence[Segment]) -> pa.RecordBatch:
        return with_windows(segments[0].rows, self._view.stream.time, self._view.function, self._schema)


class _Union:
    def __init__(self, view: UnionView, schema: pa.Schema, original: Schemas) -> None:
        self._schema = schema
        self.inputs = tuple(stream.name for stream in view.streams)
        layouts = [original(name) for name in self.inputs]
        # Rows of several streams come back in a common layout only if all were given in it.
        is_common = all(layout.types == layouts[0].types for layout in layouts)
        self.original_schema = (
            pa.schema(list(zip(schema.names, layouts[0].types, strict=True))) if is_common else schema
        )

    def make(self, segments: Sequence[Segment]) -> pa.RecordBatch:
        batches = [pa.RecordBatch.from_arrays(segment.rows.columns, schema=self._schema) for segment in segments]
        return pa.concat_batches(batches)


class _Results:
    """The results of a query in FROM. They are complete after each step, because nothing in it waits."""

    def __init__(self, view: QueryView, schema: pa.Schema) -> None:
        self.query = view.bound.query
        if self.query.counts_rows or not self.query.ends_at_joins:
            problem = "a SELECT in FROM whose results wait for later rows runs on Spark only"
            hint = "join with windows of time, or run the SELECT on its own and give its result as a stream"
            raise QueryError(problem, self.query.text, view.span, hint)
        self._schema = schema
        self.inputs = tuple(stream.name for stream in view.bound.streams)
        self.original_schema = schema
        settings = ShardSettings(schema.names[-1], sampling=0.0)
        self._shard = Shard(self.query, Plan.of(self.query, None), settings)
        self.seen: dict[str, StreamSeen] = {}

    def make(self, segments: Sequence[Segment]) -> pa.RecordBatch:
        results, report = self._shard.step(segments)
        for alias, seen in report.observation.streams.items():
            self.seen[alias] = self.seen.get(alias, StreamSeen()) + seen
        table = pa.Table.from_batches(results, self._shard.engine.schema)
        columns = [column.combine_chunks() for column in table.columns]
        arrays = [column.cast(field.type) for column, field in zip(columns, self._schema, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)
