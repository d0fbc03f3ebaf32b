"""What a query must give, by definition: every combination of tuples that are alive together and satisfy it.

One SQL statement, run by DuckDB. Nothing here knows of plans, batches, hashes or Braid's own expressions: the
query text is rewritten so that every stream carries the lifetimes that its window gives, and DuckDB does the
rest. It sees the whole of each stream at once, so it knows no lateness: give it the rows that count.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa
from sqlglot import exp

from braid.errors import BraidError, QueryError, StreamError, did_you_mean
from braid.language import parse
from braid.language.dialect import StreamTable
from braid.language.exclusion import parse_select
from braid.language.refusal import place_of
from braid.model.duration import UNITS
from braid.model.query import Query
from braid.model.stream import Stream
from braid.model.window import Rows as RowsWindow
from braid.model.window import Window
from braid.testing.encoding import gather
from braid.testing.grouping import is_grouped, with_windows
from braid.testing.lifetimes import END, START, lifetimes_sql, quote
from braid.testing.relation import ROW, relation_of
from braid.testing.spark_meaning import with_spark_meaning

Rows: TypeAlias = pa.Table | pa.RecordBatch | pa.RecordBatchReader | Iterable[pa.RecordBatch]
"""The rows of a stream, in any order."""


def oracle(query: str | Query, streams: Mapping[str, Rows], *, time: str | Mapping[str, str] = "ts") -> pa.Table:
    """All results of a query over whole streams, in no particular order.

    `query` is a text or a Query, `streams` maps names to Arrow tables or iterables of record batches, `time`
    is the event-time column of all streams or of each by name. The columns are those of the SELECT list; one
    that is selected as it is keeps its Arrow type, whatever that is. Those of groups have DuckDB's types.
    """
    # What the language refuses has no result to compare with, though DuckDB may know one.
    text = query.text if isinstance(query, Query) else parse(query).text
    tree = parse_select(text)
    tables = [*stream_tables(tree), *excluded_tables(tree)]
    names = _apart([table.alias_or_name for table in tables])
    inputs = [_source(table, name, streams, time) for table, name in zip(tables, names, strict=True)]
    sources, excluded = inputs[: len(stream_tables(tree))], inputs[len(stream_tables(tree)) :]
    grouped = is_grouped(tree)
    outputs = [output for item in tree.expressions for output in _outputs(item, sources, grouped, text)]
    found = _run(_with_lifetimes(tree, sources, excluded, outputs), inputs)
    arrays = [_column(output, found.column(number)) for number, output in enumerate(outputs)]
    return pa.Table.from_arrays(arrays, names=[output.name for output in outputs])


def stream_tables(tree: exp.Select) -> list[StreamTable]:
    """The streams of FROM, in the order of the text."""
    return list(_joined(tree.args["from_"].this, *(join.this for join in tree.args.get("joins") or ())))


def _joined(*tables: exp.Expr) -> Iterator[StreamTable]:
    """Each of some entries of FROM, or what is in its brackets, with what is joined to it before the next."""
    for table in tables:
        if isinstance(table, StreamTable):
            yield table
        else:
            yield from _joined(table.this)
        yield from _joined(*(join.this for join in table.args.get("joins") or ()))


def excluded_tables(tree: exp.Select) -> list[StreamTable]:
    """The stream of each NOT EXISTS, in the order of the text."""
    return [exists.this.args["from_"].this for exists in _exclusions(tree)]


def _exclusions(tree: exp.Select) -> list[exp.Exists]:
    return list(tree.find_all(exp.Exists, bfs=False))


@dataclass(frozen=True)
class _Source:
    """A stream as it stands in FROM. `rows` are all of it, in the order given.

    To DuckDB names that differ in case only are one, so it knows the source as `name`, and its columns, in their
    order, as the columns of `rows`; `columns` are their names in the query.
    """

    alias: str
    name: str
    window: Window
    rows: pa.Table
    columns: tuple[str, ...]
    time: str

    @property
    def relation(self) -> str:
        """The name under which DuckDB knows the rows."""
        return f"rows of {self.name}"

    @property
    def alive(self) -> str:
        """The name under which DuckDB knows the rows with their lifetimes."""
        return f"{self.name} alive"

    def known_as(self, column: str) -> str:
        """The name under which DuckDB knows a column."""
        return str(self.rows.column_names[self.columns.index(column)])


@dataclass(frozen=True)
class _Output:
    """A column of the result: one of a source as it is, or an expression that DuckDB computes."""

    name: str
    source: _Source | None
    value: str | exp.Expr

    def node(self, number: int) -> exp.Expr:
        # DuckDB only says which row, so that the value keeps its type, even one that DuckDB has not.
        value = exp.column(ROW, self.source.name) if self.source else self.value
        assert isinstance(value, exp.Expr)
        return exp.alias_(value.copy(), f"output {number}", quoted=True)


def _source(node: StreamTable, name: str, streams: Mapping[str, Rows], time: str | Mapping[str, str]) -> _Source:
    stream = _one(node.name, list(streams), "stream")
    if node.window is None:
        raise QueryError(f"stream '{node.name}' has no window")
    rows = _table(stream, streams[stream])
    moment = _time_of(stream, time) if isinstance(time, Mapping) else time
    Stream(stream, rows.schema, moment)  # refuses what is no event-time column
    columns = tuple(rows.column_names)
    known = dict(zip(columns, _apart(columns), strict=True))
    window = node.window
    if isinstance(window, RowsWindow):
        by = tuple(known[_one(column, columns, "column")] for column in window.partition_by)
        window = RowsWindow(window.count, by)
    return _Source(node.alias_or_name, name, window, rows.rename_columns(list(known.values())), columns, known[moment])


def _time_of(stream: str, time: Mapping[str, str]) -> str:
    otherwise = next((column for name, column in time.items() if name.casefold() == stream.casefold()), "ts")
    return time.get(stream, otherwise)


def _apart(names: Sequence[str]) -> list[str]:
    """The same names, numbered where they differ in case only."""
    folded = [name.casefold() for name in names]
    return [f"{name} {number}" if folded.count(name.casefold()) > 1 else name for number, name in enumerate(names)]


def _one(name: str, known: Sequence[str], what: str) -> str:
    """What a name means: what is spelled like it, else the only one that is when case does not count."""
    if name in known:
        return name
    found = [other for other in known if other.casefold() == name.casefold()]
    if len(found) != 1:
        raise QueryError(f"{'ambiguous' if found else 'unknown'} {what} '{name}'", hint=did_you_mean(name, known))
    return found[0]


def _table(name: str, rows: Rows) -> pa.Table:
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
    if isinstance(item, exp.Star):
        return [output for source in sources for output in _all_of(source)]
    value = item.unalias()
    if isinstance(value, exp.Column) and isinstance(value.this, exp.Star):
        alias = _one(value.table, [source.alias for source in sources], "stream")
        return [output for source in sources if source.alias == alias for output in _all_of(source)]
    name = item.alias_or_name if isinstance(item, exp.Alias | exp.Column) else _as_written(item, text)
    if isinstance(value, exp.Column) and not grouped:
        source, column = _resolve(value, sources)
        return [_Output(name, source, source.known_as(column))]
    return [_Output(name, None, value)]


def _as_written(item: exp.Expr, text: str) -> str:
    place = place_of(item)
    return item.sql(dialect="spark") if place is None else " ".join(text[place.start : place.end].split())


def _all_of(source: _Source) -> list[_Output]:
    return [_Output(column, source, source.known_as(column)) for column in source.columns]


def _resolve(column: exp.Column, sources: Sequence[_Source]) -> tuple[_Source, str]:
    """The source and the column that are meant, an exact spelling before any other."""
    if column.table:
        alias = _one(column.table, [source.alias for source in sources], "stream")
        source = next(source for source in sources if source.alias == alias)
        return source, _one(column.name, source.columns, "column")
    everywhere = [(source, name) for source in sources for name in source.columns]
    found = [(source, name) for source, name in everywhere if name == column.name]
    found = found or [(source, name) for source, name in everywhere if name.casefold() == column.name.casefold()]
    if len(found) != 1:
        raise QueryError(f"{'ambiguous' if found else 'unknown'} column '{column.sql()}'")
    return found[0]


_TOLD = {
    **dict.fromkeys((pa.date32(), pa.date64()), exp.DataType.build("date")),
    **dict.fromkeys((pa.float16(), pa.float32()), exp.DataType.build("float")),
}
"""Types of columns that make a difference to what their operations mean to DuckDB."""


def _rename_columns(body: exp.Select, sources: Sequence[_Source], excluded: Sequence[_Source], grouped: bool) -> None:
    """Every column of the query by the names that DuckDB knows it by."""
    within = {id(exists): source for exists, source in zip(_exclusions(body), excluded, strict=True)}
    for column in list(body.find_all(exp.Column)):
        if column.name == ROW:
            continue
        exists = column.find_ancestor(exp.Exists)
        try:
            source, name = _resolve_within(column, within[id(exists)] if exists else None, sources)
        except QueryError:
            if not grouped:
                raise
            continue  # of a group: a window of event time, or a column of the result
        known = exp.column(source.known_as(name), source.name)
        known.type = _TOLD.get(source.rows.schema.field(source.known_as(name)).type)
        column.replace(known)


def _resolve_within(column: exp.Column, inner: _Source | None, outer: Sequence[_Source]) -> tuple[_Source, str]:
    """What a column means in a NOT EXISTS: first of all one of its own stream."""
    if inner is not None:
        try:
            return _resolve(column, [inner])
        except QueryError:
            pass
    return _resolve(column, outer)


def _with_lifetimes(
    tree: exp.Select, sources: Sequence[_Source], excluded: Sequence[_Source], outputs: Sequence[_Output]
) -> exp.Select:
    """The query over relations that have START and END, which must overlap in each combination.

    What is excluded must be alive when the combination begins.
    """
    body = tree.copy()
    tables = [*stream_tables(body), *excluded_tables(body)]
    for node, source in zip(tables, [*sources, *excluded], strict=True):
        alive = exp.Table(this=exp.to_identifier(source.alive, quoted=True), joins=node.args.get("joins"))
        node.replace(exp.alias_(alive, source.name, quoted=True, table=True, copy=False))
    body.set("expressions", [output.node(number) for number, output in enumerate(outputs)])
    _rename_columns(body, sources, excluded, is_grouped(tree))
    starts, ends = ([exp.column(name, source.name) for source in sources] for name in (START, END))
    begin = exp.func("greatest", *starts)
    for exists, source in zip(_exclusions(body), excluded, strict=True):
        started = exp.LTE(this=exp.column(START, source.name), expression=begin.copy())
        lasts = exp.GT(this=exp.column(END, source.name), expression=begin.copy())
        exists.this.where(started, lasts, append=True, copy=False)
        exists.this.set("expressions", [exp.Literal.number(1)])
    alive_together = exp.LT(this=begin, expression=exp.func("least", *ends))
    return with_windows(body, begin.copy()).where(alive_together, append=True, copy=False)


def _statement(body: exp.Select, sources: Sequence[_Source]) -> str:
    relations = ",\n".join(f"{quote(source.alive)} AS ({_alive_sql(source)})" for source in sources)
    return f"WITH {relations}\n{with_spark_meaning(body).sql(dialect='duckdb', identify=True)}"


def _alive_sql(source: _Source) -> str:
    return lifetimes_sql(quote(source.relation), source.window, source.rows.column_names)


def _run(body: exp.Select, sources: Sequence[_Source]) -> pa.Table:
    database = _database(os.getpid())
    statement = _statement(body, sources)
    named = {column.name.lower() for column in body.find_all(exp.Column)}
    with database.cursor() as connection:
        try:
            connection.execute("SET TimeZone = 'UTC'")
            for source in sources:
                relation = relation_of(source.rows, source.time, named, isinstance(source.window, RowsWindow))
                connection.register(source.relation, relation)
            return connection.sql(statement).to_arrow_table()
        except _duckdb_error() as problem:
            raise BraidError(f"DuckDB cannot answer: {problem}\nIt was asked:\n{statement}") from problem


def _duckdb_error() -> type[Exception]:
    import duckdb

    return duckdb.Error


@functools.cache
def _database(process: int) -> Any:
    """An empty database, because opening one takes longer than most queries. It does not survive a fork."""
    try:
        import duckdb
    except ImportError:
        raise BraidError("the oracle needs DuckDB; install it with: pip install 'braid[testing]'") from None
    return duckdb.connect(":memory:", config={"autoinstall_known_extensions": "false"})


def _column(output: _Output, found: pa.ChunkedArray) -> pa.ChunkedArray:
    if output.source is None:
        return _as_duration(found) if found.type == pa.month_day_nano_interval() else found
    assert isinstance(output.value, str)
    return gather(output.source.rows.column(output.value), found.combine_chunks())


def _as_duration(intervals: pa.ChunkedArray) -> pa.ChunkedArray:
    """Differences of times, which DuckDB gives in days and nanoseconds."""
    lengths = [
        None if interval is None else interval.days * UNITS["day"] + interval.nanoseconds // 1_000
        for interval in intervals.to_pylist()
    ]
    return pa.chunked_array([pa.array(lengths, pa.duration("us"))])
