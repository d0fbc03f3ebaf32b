"""The oracle: the results of a query by definition, as one SQL statement that DuckDB runs.

A result is a combination of rows that are alive at the same time and satisfy the conditions. The oracle rewrites the
query so that every row has the lifetime its window gives it, and DuckDB does the rest. In a query with outer, semi or
anti joins, each ON also says that the lifetimes of all rows so far overlap. The oracle uses nothing of Braid's plans,
batches, hashes or expressions. It reads all rows of each stream at once and drops no late rows: remove them first.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from sqlglot import exp

from braid.errors import BraidError, QueryError, StreamError, did_you_mean
from braid.language import parse
from braid.language.dialect import StreamTable
from braid.language.existence import is_test, parse_select
from braid.language.nodes import span_of
from braid.language.top_n import rank_nodes
from braid.model.duration import UNITS
from braid.model.query import Query
from braid.model.stream import Stream
from braid.model.window import FOREVER, Unbounded, Window
from braid.testing.encoding import combine_codes, encode, gather, gather_rows
from braid.testing.fixed_joins import (
    Pair,
    TiedStream,
    is_fixed,
    is_hiding,
    overlap,
    pairs_of,
    starts_of,
    tie_lifetimes,
)
from braid.testing.grouping import is_grouped, with_windows
from braid.testing.hopping import compare_each_window
from braid.testing.lifetimes import END, START, lifetimes_sql, quote
from braid.testing.memberships import compare_each
from braid.testing.ranking import decide_ties
from braid.testing.relation import ROW, relation_of
from braid.testing.spark_meaning import with_spark_meaning
from braid.testing.views import InputData, has_name

StreamRows: TypeAlias = pa.Table | pa.RecordBatch | pa.RecordBatchReader | Iterable[pa.RecordBatch]
"""The rows of a stream, in any order."""


def oracle(
    query: str | Query,
    streams: Mapping[str, StreamRows],
    *,
    time: str | Mapping[str, str] = "ts",
    since: int | None = None,
    tables: Mapping[str, StreamRows] | None = None,
) -> pa.Table:
    """All results of a query over whole streams, in no particular order.

    `query` is a text or a Query, `streams` maps names to Arrow tables or iterables of record batches, `time` is the
    event-time column of all streams, or a mapping from stream names to columns, and `tables` maps names to tables,
    whose rows are alive at all times. With `since`, in microseconds, all rows of a combination start then or later.

    A SELECT or a window function in FROM is a stream of its own, whose rows are found first. The result has the columns
    of the SELECT list. A column that is selected unchanged keeps its Arrow type; the columns of a grouped query have
    DuckDB's types.
    """
    text = query.text if isinstance(query, Query) else query
    if not tables:
        parse(text)  # It refuses invalid queries, some of which DuckDB would answer.
    rows_by_stream = {name: _table(name, rows) for name, rows in streams.items()}
    times = {name: _time_column(name, time) if isinstance(time, Mapping) else time for name in rows_by_stream}
    data = InputData(rows_by_stream, times, {name: _table(name, rows) for name, rows in (tables or {}).items()}, text)
    return _answer(parse_select(text, compare_each_window), data, since)


def _answer(tree: exp.Select, data: InputData, since: int | None = None, event_time: str | None = None) -> pa.Table:
    """The results of a statement, with their event times as one more column called `event_time`."""
    data = data.with_views(tree, _answer)
    text = data.text
    joined_tables = stream_tables(tree)
    tables = [*joined_tables, *tested_tables(tree)]
    names = _distinct_names([table.alias_or_name for table in tables])
    inputs = [_source(table, name, data) for table, name in zip(tables, names, strict=True)]
    sources, tested = inputs[: len(joined_tables)], inputs[len(joined_tables) :]
    grouped = is_grouped(tree)
    shown = _shown(tree, sources)
    outputs = [output for item in tree.expressions for output in _outputs(item, shown, grouped, text)]
    if rank_nodes(tree):
        decide_ties(tree, [output.ordered for output in outputs])
        outputs = [output for item in tree.expressions for output in _outputs(item, shown, grouped, text)]
    distinct = tree.args.get("distinct") is not None
    tree.set("distinct", None)
    if event_time is not None:
        outputs.append(_Output(event_time, None, _moment(sources)))
    answer = _run(_with_lifetimes(tree, sources, tested, outputs, since, timed=distinct), inputs)
    arrays = [_column(output, answer.column(position)) for position, output in enumerate(outputs)]
    table = pa.Table.from_arrays(arrays, names=[output.name for output in outputs])
    return _distinct(table, answer.column(len(outputs))) if distinct else table


def _distinct(table: pa.Table, times: pa.ChunkedArray) -> pa.Table:
    """One of the rows that are equal in all columns and in their event times."""
    columns = [encode(column.combine_chunks()) for column in (*table.columns, times)]
    _, first = np.unique(combine_codes(columns), return_index=True)
    return gather_rows(table, pa.array(first))


def _moment(sources: Sequence[_Source]) -> exp.Expr:
    """The time from which all rows of a combination are alive, as a timestamp."""
    moment = exp.func("make_timestamp", starts_of([source.name for source in sources]))
    return exp.AtTimeZone(this=moment, zone=exp.Literal.string("UTC"))


def stream_tables(tree: exp.Select) -> list[StreamTable]:
    """The streams of FROM, in the order of the text."""
    joins = tree.args.get("joins") or ()
    return list(_leaves(tree.args["from_"].this, *(join.this for join in joins)))


def _leaves(*tables: exp.Expr) -> Iterator[StreamTable]:
    """The streams in entries of FROM, in brackets or not, each followed by the streams joined to it."""
    for table in tables:
        if isinstance(table, StreamTable):
            yield table
        else:
            yield from _leaves(table.this)
        joins = table.args.get("joins") or ()
        yield from _leaves(*(join.this for join in joins))


def tested_tables(tree: exp.Select) -> list[StreamTable]:
    """The stream of each EXISTS and IN, in the order of the text."""
    return [subquery.args["from_"].this for subquery in _subqueries(tree)]


def _subqueries(tree: exp.Select) -> list[exp.Select]:
    """The subqueries of EXISTS and IN, in the order of the text."""
    tests = filter(is_test, tree.find_all(exp.Exists, exp.In, bfs=False))
    return [(test.args.get("query") or test.this).unnest() for test in tests]


def _shown(tree: exp.Select, sources: Sequence[_Source]) -> list[_Source]:
    """The streams of FROM that SELECT and WHERE can read: all but those of semi and anti joins."""
    hidden = {id(pair.right[0]) for pair in pairs_of(tree) if is_hiding(pair.join)}
    tables = stream_tables(tree)
    return [source for source, table in zip(sources, tables, strict=True) if id(table) not in hidden]


ALWAYS = "always "
"""The event time of the rows of tables."""


@dataclass(frozen=True)
class _Source:
    """A stream in FROM, with all its rows in the order given.

    DuckDB ignores the case of names, so names that differ only in case get numbers there: `name` and the column names
    of `rows` are DuckDB's names, `alias` and `columns` are the names in the query.
    """

    alias: str
    name: str
    window: Window
    rows: pa.Table
    columns: tuple[str, ...]
    time: str

    @property
    def relation(self) -> str:
        """DuckDB's name for the rows."""
        return f"rows of {self.name}"

    @property
    def alive(self) -> str:
        """DuckDB's name for the rows with their lifetimes."""
        return f"{self.name} alive"

    def duckdb_name(self, column: str) -> str:
        """DuckDB's name for a column of the query."""
        return str(self.rows.column_names[self.columns.index(column)])


@dataclass(frozen=True)
class _Output:
    """A column of the result: `value` is DuckDB's name of a column of `source`, or without a source an expression."""

    name: str
    source: _Source | None
    value: str | exp.Expr

    @property
    def ordered(self) -> exp.Expr:
        """What sorts as the values of the column."""
        if isinstance(self.value, exp.Expr):
            return self.value
        assert self.source is not None
        return exp.column(self.value, self.source.name)

    def node(self, position: int) -> exp.Expr:
        """The item of the SELECT list for DuckDB.

        For a column of a source it selects the row number, so that the value keeps its type, also one that DuckDB
        lacks.
        """
        value = exp.column(ROW, self.source.name) if self.source else self.value
        assert isinstance(value, exp.Expr)
        return exp.alias_(value.copy(), f"output {position}", quoted=True)


def _source(node: StreamTable, name: str, data: InputData) -> _Source:
    if node.window is None and has_name(node.name, data.tables):
        return _table_source(node, name, data)
    stream = _matching(node.name, list(data.streams), "stream")
    if node.window is None:
        raise QueryError(f"stream '{node.name}' has no window")
    rows, time = data.streams[stream], data.times[stream]
    Stream(stream, rows.schema, time)  # Raises an error if this is no event-time column.
    columns = tuple(rows.column_names)
    duckdb_names = dict(zip(columns, _distinct_names(columns), strict=True))
    window = node.window.with_columns(lambda column: duckdb_names[_matching(column, columns, "column")])
    return _Source(
        alias=node.alias_or_name,
        name=name,
        window=window,
        rows=rows.rename_columns(list(duckdb_names.values())),
        columns=columns,
        time=duckdb_names[time],
    )


def _table_source(node: StreamTable, name: str, data: InputData) -> _Source:
    """A table: its rows are alive from before all times on."""
    rows = data.tables[_matching(node.name, list(data.tables), "table")]
    columns = tuple(rows.column_names)
    always = pa.array(np.full(rows.num_rows, -FOREVER + 1), pa.timestamp("us"))
    rows = rows.rename_columns(_distinct_names(columns)).append_column(ALWAYS, always)
    return _Source(node.alias_or_name, name, Unbounded(), rows, columns, ALWAYS)


def _time_column(stream: str, time: Mapping[str, str]) -> str:
    """The time column of a stream: by its exact name, else by its name in another case, else `ts`."""
    if stream in time:
        return time[stream]
    return next((column for name, column in time.items() if name.casefold() == stream.casefold()), "ts")


def _distinct_names(names: Sequence[str]) -> list[str]:
    """The names, with a number added to those that are equal if case is ignored."""
    folded = [name.casefold() for name in names]
    return [f"{name} {position}" if folded.count(name.casefold()) > 1 else name for position, name in enumerate(names)]


def _matching(name: str, known: Sequence[str], kind: str) -> str:
    """The known name that equals `name`, else the only one that does if case is ignored."""
    if name in known:
        return name
    matches = [other for other in known if other.casefold() == name.casefold()]
    if len(matches) != 1:
        raise QueryError(f"{'ambiguous' if matches else 'unknown'} {kind} '{name}'", hint=did_you_mean(name, known))
    return matches[0]


def _table(name: str, rows: StreamRows) -> pa.Table:
    if isinstance(rows, pa.Table):
        return rows
    if isinstance(rows, pa.RecordBatch):
        return pa.Table.from_batches([rows])
    if isinstance(rows, pa.RecordBatchReader):
        return rows.read_all()
    batches = list(rows)
    if not batches:
        raise StreamError(f"stream '{name}' has no batch, so its columns are unknown; give an empty table")
    return pa.Table.from_batches(batches)


def _outputs(item: exp.Expr, sources: Sequence[_Source], grouped: bool, text: str) -> list[_Output]:
    """The result columns of an item in the SELECT list."""
    if isinstance(item, exp.Star):
        return [output for source in sources for output in _star_outputs(source)]
    value = item.unalias()
    if isinstance(value, exp.Column) and isinstance(value.this, exp.Star):
        alias = _matching(value.table, [source.alias for source in sources], "stream")
        return _star_outputs(next(source for source in sources if source.alias == alias))
    name = item.alias_or_name if isinstance(item, exp.Alias | exp.Column) else _as_written(item, text)
    if isinstance(value, exp.Column) and not grouped and value.table.lower() != "window":
        source, column = _resolve(value, sources)
        return [_Output(name, source, source.duckdb_name(column))]
    return [_Output(name, None, value)]


def _as_written(item: exp.Expr, text: str) -> str:
    """An expression as the query writes it: its name if it has no alias."""
    span = span_of(item)
    return item.sql(dialect="spark") if span is None else " ".join(text[span.start : span.end].split())


def _star_outputs(source: _Source) -> list[_Output]:
    return [_Output(column, source, source.duckdb_name(column)) for column in source.columns]


def _resolve(column: exp.Column, sources: Sequence[_Source]) -> tuple[_Source, str]:
    """The source and the column that a name refers to; an exact match goes before a match in another case."""
    if column.table:
        alias = _matching(column.table, [source.alias for source in sources], "stream")
        source = next(source for source in sources if source.alias == alias)
        return source, _matching(column.name, source.columns, "column")
    candidates = [(source, name) for source in sources for name in source.columns]
    matches = [(source, name) for source, name in candidates if name == column.name]
    if not matches:
        matches = [(source, name) for source, name in candidates if name.casefold() == column.name.casefold()]
    if len(matches) != 1:
        raise QueryError(f"{'ambiguous' if matches else 'unknown'} column '{column.sql()}'")
    return matches[0]


_ANNOTATED_TYPES = {
    **dict.fromkeys((pa.date32(), pa.date64()), exp.DataType.build("date")),
    **dict.fromkeys((pa.float16(), pa.float32()), exp.DataType.build("float")),
}
"""Column types that `with_spark_meaning` must know, because operations on them mean something else to DuckDB."""


def _rename_columns(
    body: exp.Select,
    shown: Sequence[_Source],
    scopes: Mapping[int, Sequence[_Source]],
    tested: Sequence[_Source],
    *,
    lenient: bool,
) -> None:
    """Replace every column of the query by DuckDB's names.

    `shown` are the streams that SELECT and WHERE read; `scopes` are those that ON reads, by the identity of its join.
    """
    tested_in = {id(subquery): source for subquery, source in zip(_subqueries(body), tested, strict=True)}
    for column in list(body.find_all(exp.Column)):
        if column.name in (ROW, START) or column.table == "window":
            continue
        join = column.find_ancestor(exp.Join)
        outer = shown if join is None else scopes[id(join)]
        try:
            source, name = _resolve_within(column, tested_in.get(id(column.find_ancestor(exp.Select))), outer)
        except QueryError:
            if not lenient:
                raise
            continue  # In a grouped or ranked query: a window of event time, or a column of the result.
        duckdb_name = source.duckdb_name(name)
        replacement = exp.column(duckdb_name, source.name)
        replacement.type = _ANNOTATED_TYPES.get(source.rows.schema.field(duckdb_name).type)
        column.replace(replacement)


def _scopes(body: exp.Select, pairs: Sequence[Pair], sources: Sequence[_Source]) -> dict[int, Sequence[_Source]]:
    """The streams that the ON of each join can read, by its identity: beside outer joins, only what it joins."""
    if not any(is_fixed(pair.join) for pair in pairs):
        return {id(pair.join): sources for pair in pairs}
    source_of = dict(zip(map(id, stream_tables(body)), sources, strict=True))
    hidden = {id(pair.right[0]) for pair in pairs if is_hiding(pair.join)}
    scopes: dict[int, Sequence[_Source]] = {}
    for pair in pairs:
        left = [source_of[id(entry)] for entry in pair.left if id(entry) not in hidden]
        scopes[id(pair.join)] = [*left, *(source_of[id(entry)] for entry in pair.right)]
    return scopes


def _resolve_within(column: exp.Column, inner: _Source | None, outer: Sequence[_Source]) -> tuple[_Source, str]:
    """Resolve a column in a subquery: a column of the tested stream goes before those of the outer query."""
    if inner is not None:
        try:
            return _resolve(column, [inner])
        except QueryError:
            pass
    return _resolve(column, outer)


def _with_lifetimes(
    tree: exp.Select,
    sources: Sequence[_Source],
    tested: Sequence[_Source],
    outputs: Sequence[_Output],
    since: int | None,
    *,
    timed: bool,
) -> exp.Select:
    """The query over relations with START and END. The lifetimes in a combination must overlap.

    With `timed`, the last column is the event time of the result.

    A row passes an existence test if it is alive at the event time of the combination.
    """
    body = tree.copy()
    shown = _shown(body, sources)
    pairs = pairs_of(body)
    scopes = _scopes(body, pairs, sources)
    streams = {id(table): _tied(source) for table, source in zip(stream_tables(body), sources, strict=True)}
    tables = [*stream_tables(body), *tested_tables(body)]
    for node, source in zip(tables, [*sources, *tested], strict=True):
        alive = exp.Table(this=exp.to_identifier(source.alive, quoted=True), joins=node.args.get("joins"))
        node.replace(exp.alias_(alive, source.name, quoted=True, table=True, copy=False))
    body.set("expressions", [output.node(position) for position, output in enumerate(outputs)])
    _rename_columns(body, shown, scopes, tested, lenient=is_grouped(tree) or bool(rank_nodes(tree)))
    if any(is_fixed(pair.join) for pair in pairs):
        begin, conditions = tie_lifetimes(pairs, streams)
    else:
        begin, conditions = starts_of([source.name for source in shown]), [overlap([source.name for source in sources])]
    for subquery, source in zip(_subqueries(body), tested, strict=True):
        has_started = exp.LTE(this=exp.column(START, source.name), expression=begin.copy())
        has_not_ended = exp.GT(this=exp.column(END, source.name), expression=begin.copy())
        subquery.where(has_started, has_not_ended, append=True, copy=False)
        compare_each(subquery)
        if isinstance(subquery.parent, exp.Exists):
            subquery.set("expressions", [exp.Literal.number(1)])
    if since is not None:
        starts = [exp.column(START, source.name) for source in sources]
        conditions += [exp.GTE(this=start, expression=exp.convert(since)) for start in starts]
    if timed:
        body.select(exp.alias_(begin.copy(), "event time", quoted=True), copy=False)
    return with_windows(body, begin.copy()).where(*conditions, append=True, copy=False)


def _tied(source: _Source) -> TiedStream:
    return TiedStream(source.name, source.alive, source.window, source.time == ALWAYS)


def _statement(body: exp.Select, sources: Sequence[_Source]) -> str:
    """The SQL statement for DuckDB."""
    relations = ",\n".join(f"{quote(source.alive)} AS ({_alive_sql(source)})" for source in sources)
    return f"WITH {relations}\n{with_spark_meaning(body).sql(dialect='duckdb', identify=True)}"


def _alive_sql(source: _Source) -> str:
    lifetimes = lifetimes_sql(quote(source.relation), source.window, source.rows.column_names)
    return f"SELECT * FROM ({lifetimes}) WHERE {quote(START)} < {quote(END)}"


def _run(body: exp.Select, sources: Sequence[_Source]) -> pa.Table:
    database = _database(os.getpid())
    statement = _statement(body, sources)
    used_columns = {column.name.lower() for column in body.find_all(exp.Column)}
    with database.cursor() as connection:
        try:
            connection.execute("SET TimeZone = 'UTC'")
            for source in sources:
                ordered = source.window.counts_rows
                named = used_columns | {(source.window.end_column or "").lower()}
                relation = relation_of(source.rows, source.time, named, ordered)
                connection.register(source.relation, relation)
            return connection.sql(statement).to_arrow_table()
        except _duckdb_error() as error:
            raise BraidError(f"DuckDB cannot answer: {error}\nThe statement was:\n{statement}") from error


def _duckdb_error() -> type[Exception]:
    import duckdb

    return duckdb.Error


@functools.cache
def _database(process: int) -> Any:
    """An empty database for each process: it does not survive a fork, and opening one is slower than most queries."""
    try:
        import duckdb
    except ImportError:
        raise BraidError("the oracle needs DuckDB; install it with: pip install 'braid[testing]'") from None
    return duckdb.connect(":memory:", config={"autoinstall_known_extensions": "false", "threads": "1"})


def _column(output: _Output, answer: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column of the result, from DuckDB's answer: the values, or the row numbers of values."""
    if output.source is None:
        if isinstance(output.value, exp.Window):
            return answer.cast(pa.int32())
        return _as_duration(answer) if answer.type == pa.month_day_nano_interval() else answer
    assert isinstance(output.value, str)
    return gather(output.source.rows.column(output.value), answer.combine_chunks())


def _as_duration(intervals: pa.ChunkedArray) -> pa.ChunkedArray:
    """Differences of times as durations; DuckDB returns them in days and nanoseconds."""
    durations = [
        None if interval is None else interval.days * UNITS["day"] + interval.nanoseconds // 1_000
        for interval in intervals.to_pylist()
    ]
    return pa.chunked_array([pa.array(durations, pa.duration("us"))])
