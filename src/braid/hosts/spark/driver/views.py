"""The views of a query on Spark: each is a DataFrame that is made of the DataFrames of declared streams and tables."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from sqlglot import exp

from braid.errors import QueryError, StreamError
from braid.hosts.spark.driver.checks import arrow_schema, check_time
from braid.hosts.spark.driver.expressions import braid_semantics
from braid.hosts.spark.driver.failures import failure_text
from braid.hosts.spark.driver.names import named
from braid.language.free_names import event_time_name, free_name
from braid.language.nodes import StreamTable
from braid.language.reading import union_stream
from braid.language.views import BoundQuery, FunctionView, QueryView, RowsView, UnionView, View
from braid.model.stream import Stream
from braid.model.window_function import WINDOW_END, WINDOW_START

if TYPE_CHECKING:
    from braid.hosts.spark.driver.query import SparkQuery

Start = Callable[[BoundQuery, "SparkViews"], "SparkQuery"]
"""Makes the query of a SELECT in FROM."""


class SparkViews:
    """The DataFrames that a query can read: those of declared streams and tables, and those of the views of its text.

    `rates` are about how many rows the streams bring in a second.
    """

    def __init__(
        self, spark: SparkSession, dataframes: Mapping[str, DataFrame], rates: Mapping[str, float], start: Start
    ) -> None:
        self._spark = spark
        self._start = start
        self.dataframes = dict(dataframes)
        self.rates = dict(rates)
        self.definitions: list[str] = []
        """What the views mean, as texts: branch of what must not change on a checkpoint."""
        self._inputs: dict[str, tuple[str, ...]] = {}
        """The streams that each view is made of, by name."""
        self.tables: set[str] = set()
        """The names of the tables that the views read."""
        self.queries: list[SparkQuery] = []
        """The queries of SELECTs in FROM."""

    def define(self, view: View) -> Stream:
        if isinstance(view, RowsView | FunctionView) and view.stream.branches:
            return self._of_each_branch(view)
        match view:
            case RowsView():
                stream = self._rows(view)
            case FunctionView():
                stream = self._windows(view)
            case UnionView():
                stream = self._union(view)
            case QueryView():
                stream = self._results(view)
        return stream

    def _of_each_branch(self, view: RowsView | FunctionView) -> Stream:
        """A view over a UNION ALL: the union of the same view over each of its branches."""
        streams = []
        for number, branch in enumerate(view.stream.branches, 1):
            stream = replace(view.stream, name=branch.name, lateness=branch.lateness, branches=())
            piece = replace(view, name=f"{view.name} {number}", stream=stream)
            if isinstance(piece, RowsView):
                piece = replace(piece, select=piece.select.copy())
                for table in piece.select.find_all(StreamTable):
                    if table.name == view.stream.name:
                        table.set("this", exp.to_identifier(branch.name, quoted=True))
            streams.append(self.define(piece))
        return self._union(UnionView(view.name, tuple(streams)))

    def _rows(self, view: RowsView) -> Stream:
        """A SELECT over one stream: Spark's own."""
        select = view.select.copy()
        names: dict[str, str] = {}
        for table in list(select.find_all(StreamTable)):
            names[table.name] = names.get(table.name, f"braid_{uuid.uuid4().hex[:12]}")
            alias = exp.TableAlias(this=exp.to_identifier(table.alias_or_name, quoted=True))
            joins = table.args.get("joins")
            table.replace(exp.Table(this=exp.to_identifier(names[table.name], quoted=True), alias=alias, joins=joins))
        with self._temporary_views(names), braid_semantics(self._spark):
            try:
                dataframe = self._spark.sql(select.sql(dialect="spark"))
            except (PySparkException, Py4JError) as failure:
                raise QueryError(failure_text(failure), view.text, view.span) from failure
        try:
            schema = arrow_schema(view.name, dataframe.schema)
            stream = Stream(view.name, schema, view.time, view.stream.lateness)
            check_time(stream, dataframe)
        except StreamError as problem:
            raise QueryError(str(problem), view.text, view.span) from None
        self.tables.update(table.name for table in view.tables)
        self._inputs[stream.name] = (view.stream.name,)
        self._add(stream, dataframe, self.rates[view.stream.name], view.select.sql(dialect="braid"))
        return stream

    @contextmanager
    def _temporary_views(self, names: Mapping[str, str]) -> Iterator[None]:
        """Let Spark's SQL read DataFrames by these names."""
        try:
            for name, temporary in names.items():
                self.dataframes[name].createOrReplaceTempView(temporary)
            yield
        finally:
            for temporary in names.values():
                self._spark.catalog.dropTempView(temporary)

    def _windows(self, view: FunctionView) -> Stream:
        """TUMBLE and HOP: Spark's `window` makes a row for each window."""
        dataframe = self.dataframes[view.stream.name]
        lengths = (f"{length} microseconds" for length in (view.function.size, view.function.slide))
        window = free_name("window", dataframe.columns)
        columns = [named(name) for name in dataframe.columns]
        windowed = dataframe.select(*columns, F.window(named(view.stream.time), *lengths).alias(window))
        bounds = ((f"{window}.start", WINDOW_START), (f"{window}.end", WINDOW_END))
        windowed = windowed.select(*columns, *(F.col(bound).alias(name) for bound, name in bounds))
        stream = replace(view.stream, name=view.name, schema=arrow_schema(view.name, windowed.schema))
        copies = -(-view.function.size // view.function.slide)
        self._inputs[stream.name] = (view.stream.name,)
        self._add(stream, windowed, copies * self.rates[view.stream.name], str(view.function))
        return stream

    def _union(self, view: UnionView) -> Stream:
        """UNION ALL: the branches enter the query on their own, so that each has a watermark of its own."""
        stream = union_stream(view)
        for branch in view.streams:
            self.dataframes[branch.name] = self.dataframes[branch.name].toDF(*stream.schema.names)
        names = [branch.name for branch in view.streams]
        self._inputs[stream.name] = tuple(names)
        self.rates[stream.name] = sum(self.rates[name] for name in names)
        self.definitions.append(f"{stream.name}: {names}")
        return stream

    def _results(self, view: QueryView) -> Stream:
        """A SELECT that joins or groups: a query of its own."""
        query = self._start(view.bound, self)
        self.queries.append(query)
        time = event_time_name(view.bound.query)
        schema = arrow_schema(view.name, query.dataframe.schema)
        stream = Stream(view.name, schema, time)
        self._inputs[stream.name] = tuple(inner.name for inner in view.bound.streams)
        self._add(stream, query.dataframe, 1.0, view.bound.text)
        return stream

    def origins_of(self, streams: Iterable[Stream]) -> tuple[str, ...]:
        """The names of the declared streams that streams are made of, each once."""
        return tuple(dict.fromkeys(origin for stream in streams for origin in self._origins(stream.name)))

    def _origins(self, name: str) -> Iterator[str]:
        for stream in self._inputs.get(name, ()):
            yield from self._origins(stream)
        if name not in self._inputs:
            yield name

    def frames_of(self, stream: Stream) -> dict[str, DataFrame]:
        """The DataFrames that bring the rows of a stream, by name: its own, or those that it unites."""
        return {name: self.dataframes[name] for name in [branch.name for branch in stream.branches] or [stream.name]}

    def _add(self, stream: Stream, dataframe: DataFrame, rate: float, definition: str) -> None:
        self.dataframes[stream.name] = dataframe
        self.rates[stream.name] = rate
        self.definitions.append(f"{stream.name}: {definition}")
