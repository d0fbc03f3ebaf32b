"""The queries of `benchmarks.nexmark` on a small input, compared with DuckDB."""

from typing import Any

import duckdb
import pyarrow as pa
import pytest
from benchmarks.nexmark.generator import LATENESS, Auctions, side_input
from benchmarks.nexmark.multiway import JOINS, shifting
from benchmarks.nexmark.queries import all_queries
from benchmarks.nexmark.query import STREAMS, Impossible, Query
from benchmarks.nexmark.running import register_functions

import braid
from braid.testing import assert_same_rows
from braid.workloads.nexmark import SECOND, Nexmark

ALL = all_queries()
QUERIES = [query for query in ALL if isinstance(query, Query)]
LOCAL = [query for query in QUERIES if not query.on_spark_only]
ON_SPARK = [query for query in QUERIES if query.on_spark_only]
IMPOSSIBLE = [query for query in ALL if isinstance(query, Impossible)]

Tables = dict[str, pa.Table]


def tables_of(auctions: Auctions) -> Tables:
    batches = list(auctions.batches())
    return {name: pa.Table.from_batches([batch[name] for batch in batches]) for name in STREAMS}


@pytest.fixture(scope="module")
def streams() -> Tables:
    """Twelve seconds of rows, up to 3.5 seconds late."""
    return tables_of(Auctions(Nexmark(200, 1_200, disorder=701), 2))


def expected(query: Query, streams: Tables, names: list[str]) -> pa.Table:
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    for name, table in {**streams, "side_input": side_input()}.items():
        connection.register(name, table)
    return connection.sql(query.expected).to_arrow_table().rename_columns(names)


def run(text: str, streams: Tables, **options: Any) -> pa.Table:
    tables = {"side_input": side_input()}
    return braid.run(text, streams, tables=tables, time="dateTime", lateness=LATENESS, **options)


@pytest.mark.parametrize("query", LOCAL, ids=lambda query: query.name)
def test_a_query_gives_what_duckdb_gives(query: Query, streams: Tables) -> None:
    result = run(query.text, streams, batch_rows=100)
    assert result.num_rows > 0
    assert_same_rows(result, expected(query, streams, result.column_names), types=False)


@pytest.fixture
def session(spark: Any, streams: Tables) -> braid.Session:
    session = braid.Session(spark)
    for name, table in streams.items():
        session.stream(name, spark.createDataFrame(table), time="dateTime")
    register_functions(spark)
    return session


def test_spark_takes_every_text(session: braid.Session) -> None:
    for query in ON_SPARK:
        assert session.sql(query.text).dataframe.columns[-1] == "event_time", query.name


@pytest.mark.sweep
def test_queries_that_need_spark_give_what_duckdb_gives(session: braid.Session, streams: Tables) -> None:
    for query in ON_SPARK:
        result = session.sql(query.text).dataframe.drop("event_time").toArrow()
        assert result.num_rows > 0, query.name
        wanted = expected(query, streams, result.column_names)
        assert_same_rows(result, wanted, types=False, message=query.name)


@pytest.mark.parametrize("query", IMPOSSIBLE, ids=lambda query: query.name)
def test_a_query_that_the_page_calls_refused_is_refused(query: Impossible, streams: Tables) -> None:
    with pytest.raises(braid.QueryError):
        run(query.text, streams)


@pytest.mark.parametrize("join", JOINS, ids=lambda join: join.name)
def test_a_join_of_many_streams_gives_what_duckdb_gives(join: Any) -> None:
    streams = tables_of(Auctions(shifting(5_000, 2), 4))
    result = run(join.text, streams, batch_rows=1_000, adapt=True)
    assert result.num_rows > 0
    assert_same_rows(result, expected(join.query, streams, result.column_names), types=False)


def test_rows_come_in_the_proportions_of_each_phase() -> None:
    workload = Nexmark(rows=1_000, phases=((1, 3, 46), (10, 30, 10)), phase_batches=2)
    counts = [[rows.num_rows for rows in batch.values()] for batch in workload.batches(5)]
    assert counts == [[20, 60, 920]] * 2 + [[200, 600, 200]] * 2 + [[20, 60, 920]]
    persons = [id for batch in workload.batches(5) for id in batch["persons"]["id"].to_pylist()]
    assert persons == list(range(20 + 20 + 200 + 200 + 20))


def test_out_of_order_rows_have_the_same_times_in_groups() -> None:
    ordered, disordered = (Nexmark(1_000, 700, disorder=disorder) for disorder in (1, 70))
    for first, second in zip(ordered.batches(3), disordered.batches(3), strict=True):
        times = [[time.value for rows in batch.values() for time in rows["ts"]] for batch in (first, second)]
        assert times[0] != times[1]
        assert sorted(times[0]) == sorted(times[1])
        late = [time - before for time, before in zip(*times, strict=True)]
        assert max(map(abs, late)) < 70 * SECOND / 1_000
