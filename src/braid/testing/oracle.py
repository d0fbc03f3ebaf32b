"""What a query must give, by definition: every combination of tuples that are alive together and satisfy it.

One SQL statement, run by DuckDB. Nothing here knows of plans, batches, hashes or Braid's own expressions: the
query text is rewritten so that every stream carries the lifetimes that its window gives, and DuckDB does the
rest. It sees the whole of each stream at once, so it knows no lateness: give it the rows that count.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa
from sqlglot import exp

from braid.errors import BraidError, QueryError, StreamError, did_you_mean
from braid.language import parse
from braid.language.dialect import StreamTable, parse_statement
from braid.model.query import Query
from braid.model.stream import Stream
from braid.model.window import UNITS, Window
from braid.model.window import Rows as RowsWindow
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
    tree = parse_statement(text)
    sources = [_source(table, streams, time) for table in stream_tables(tree)]
    grouped = is_grouped(tree)
    outputs = [output for item in tree.expressions for output in _outputs(item, sources, grouped)]
    found = _run(_with_lifetimes(tree, sources, outputs), sources)
    arrays = [_column(output, found.column(number)) for number, output in enumerate(outputs)]
    return pa.Table.from_arrays(arrays, names=[output.name for output in outputs])


def stream_tables(tree: exp.Select) -> list[StreamTable]:
    """The streams of FROM, in the order of the text."""
    first = tree.args["from_"].this
    joined = [join.this for join in (*(first.args.get("joins") or ()), *(tree.args.get("joins") or ()))]
    return [first, *joined]


@dataclass(frozen=True)
class _Source:
    """A stream as it stands in FROM. `rows` are all of it, in the order given."""

    alias: str
    window: Window
    rows: pa.Table
    time: str

    @property
    def relation(self) -> str:
        """The name under which DuckDB knows the rows."""
        return f"rows of {self.alias}"

    @property
    def alive(self) -> str:
        """The name under which DuckDB knows the rows with their lifetimes."""
        return f"{self.alias} alive"

    def find(self, name: str) -> str | None:
        """The column of this name, whatever the case of its letters."""
        return next((column for column in self.rows.column_names if column.lower() == name.lower()), None)


@dataclass(frozen=True)
class _Output:
    """A column of the result: one of a source as it is, or an expression that DuckDB computes."""

    name: str
    source: _Source | None
    value: str | exp.Expr

    def node(self, number: int) -> exp.Expr:
        # DuckDB only says which row, so that the value keeps its type, even one that DuckDB has not.
        value = exp.column(ROW, self.source.alias) if self.source else self.value
        assert isinstance(value, exp.Expr)
        return exp.alias_(value.copy(), f"output {number}", quoted=True)


def _source(node: StreamTable, streams: Mapping[str, Rows], time: str | Mapping[str, str]) -> _Source:
    folded = {name.lower(): name for name in streams}
    if node.name.lower() not in folded:
        raise QueryError(f"unknown stream '{node.name}'", hint=did_you_mean(node.name, streams))
    if node.window is None:
        raise QueryError(f"stream '{node.name}' has no window")
    name = folded[node.name.lower()]
    rows = _table(name, streams[name])
    column = time if isinstance(time, str) else _by_name(time, name)
    Stream(name, rows.schema, column)  # refuses what is no event-time column
    return _Source(node.alias_or_name, node.window, rows, column)


def _by_name(time: Mapping[str, str], stream: str) -> str:
    for name, column in time.items():
        if name.lower() == stream.lower():
            return column
    return "ts"


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


def _outputs(item: exp.Expr, sources: Sequence[_Source], grouped: bool) -> list[_Output]:
    if isinstance(item, exp.Star):
        return [_Output(name, source, name) for source in sources for name in source.rows.column_names]
    value = item.unalias()
    if isinstance(value, exp.Column) and isinstance(value.this, exp.Star):
        source = next(source for source in sources if source.alias.lower() == value.table.lower())
        return [_Output(name, source, name) for name in source.rows.column_names]
    name = item.alias_or_name if isinstance(item, exp.Alias | exp.Column) else item.sql(dialect="spark")
    if isinstance(value, exp.Column) and not grouped:
        source, column = _resolve(value, sources)
        return [_Output(name, source, column)]
    return [_Output(name, None, value)]


def _resolve(column: exp.Column, sources: Sequence[_Source]) -> tuple[_Source, str]:
    candidates = [source for source in sources if column.table.lower() in ("", source.alias.lower())]
    found = [(source, name) for source in candidates if (name := source.find(column.name)) is not None]
    if len(found) != 1:
        raise QueryError(f"{'ambiguous' if found else 'unknown'} column '{column.sql()}'")
    return found[0]


def _with_lifetimes(tree: exp.Select, sources: Sequence[_Source], outputs: Sequence[_Output]) -> exp.Select:
    """The query over relations that have START and END, which must overlap in each combination."""
    body = tree.copy()
    for node, source in zip(stream_tables(body), sources, strict=True):
        alive = exp.Table(this=exp.to_identifier(source.alive, quoted=True), joins=node.args.get("joins"))
        node.replace(exp.alias_(alive, source.alias, quoted=True, table=True, copy=False))
    body.set("expressions", [output.node(number) for number, output in enumerate(outputs)])
    starts, ends = ([exp.column(name, source.alias) for source in sources] for name in (START, END))
    alive_together = exp.LT(this=exp.func("greatest", *starts), expression=exp.func("least", *ends))
    return with_windows(body, exp.func("greatest", *starts)).where(alive_together, append=True, copy=False)


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
