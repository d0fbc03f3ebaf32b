"""What Spark computes for a query: columns before the join, and results after it, with functions of the session."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException

import braid
from braid.errors import QueryError
from braid.hosts.spark.driver.session import Session
from braid.runtime.stored_query import stored_spec
from braid.testing import assert_same_rows, oracle
from braid.testing.stream_files import random_rows
from tests.hosts.conftest import Feed, Streams, run_out, without_time

WINDOWS = "a [RANGE 20 SECONDS], b [RANGE 20 SECONDS]"
JOIN = f"""SELECT a.n AS an, shout(a.t) || '/' || b.t AS both, element_at(array(a.t), 9) AS nothing,
          CURRENT_TIMESTAMP AS at, date_format(current_timestamp(), 'yyyy') AS year
          FROM {WINDOWS} WHERE shout(a.t) = shout(b.t) AND crc32(b.t) % 2 = 0 AND pmod(a.k, 3) < 2"""
EXPECTED = f"""SELECT a.n AS an, a.shouted || '/' || b.t AS both, CAST(NULL AS STRING) AS nothing,
          GREATEST(a.ts, b.ts) AS at, '1970' AS year
          FROM {WINDOWS} WHERE a.shouted = b.shouted AND b.code % 2 = 0 AND a.rest < 2"""
"""The same join over streams that have the computed columns already."""


@pytest.fixture
def registered(session: Session) -> Session:
    """A session with functions of its own; its Spark is in ANSI mode, as Spark 4 is by default."""
    from pyspark.sql.functions import udf

    session.spark.udf.register("shout", lambda text: text.upper() + "!", "string")
    session.spark.udf.register("toss", udf(lambda text: text, "string").asNondeterministic())
    assert session.spark.conf.get("spark.sql.ansi.enabled") == "true"
    return session


def with_computed(tables: dict[str, pa.Table]) -> dict[str, pa.Table]:
    from zlib import crc32

    computed = {}
    for name, table in tables.items():
        texts = table.column("t").to_pylist()
        table = table.append_column("shouted", pa.array([text.upper() + "!" for text in texts]))
        table = table.append_column("code", pa.array([crc32(text.encode()) for text in texts]))
        computed[name] = table.append_column("rest", pa.array([key % 3 for key in table.column("k").to_pylist()]))
    return computed


def test_a_stream_goes_on_after_a_restart(registered: Session, feed: Feed, tmp_path: Path) -> None:
    streams = Streams(feed, tmp_path / "streams")
    for _ in range(2):
        session = braid.Session(registered.spark)
        for name in "ab":
            session.stream(name, streams.frames[name], lateness="1 second")
        query = session.sql(JOIN, shards=2)
        result = without_time(run_out(query.dataframe, tmp_path))
        assert_same_rows(result, oracle(EXPECTED, with_computed(streams.rows)))
        streams.more()
    assert result.num_rows > 20
    assert stored_spec(query.fingerprint).fingerprint == query.fingerprint
    another = session.sql(JOIN.replace("crc32(b.t) % 2", "crc32(b.t) % 3"), shards=2)
    with pytest.raises(Exception, match="the checkpoint belongs to another query"):
        run_out(another.dataframe, tmp_path)


def declare_tables(session: Session, tables: dict[str, pa.Table]) -> None:
    for name, table in tables.items():
        session.stream(name, session.spark.createDataFrame(table))


def test_groups_by_what_spark_computes(registered: Session) -> None:

    tables = {name: random_rows(seed) for seed, name in enumerate("ab")}
    declare_tables(registered, tables)
    text = (
        "SELECT shout(a.t) AS g, MAX(pmod(b.k, 3)) AS m, COUNT(*) + 1 AS n, reverse(shout(a.t)) AS r, "
        f"concat_ws('/', MIN(b.t), COUNT(*)) AS c FROM {WINDOWS} "
        "WHERE a.k = b.k GROUP BY shout(a.t) HAVING COUNT(*) > 3"
    )
    groups = f"FROM {WINDOWS} WHERE a.k = b.k GROUP BY a.shouted HAVING COUNT(*) > 3"
    values = f"SELECT a.shouted AS g, MAX(b.rest) AS m, COUNT(*) AS n, MIN(b.t) AS t {groups}"
    expected = [
        {"g": row["g"], "m": row["m"], "n": row["n"] + 1, "r": row["g"][::-1], "c": f"{row['t']}/{row['n']}"}
        for row in oracle(values, with_computed(tables)).to_pylist()
    ]
    result = pa.Table.from_pylist([row.asDict() for row in registered.sql(text).dataframe.collect()])
    assert_same_rows(result, pa.Table.from_pylist(expected), types=False)


@pytest.mark.parametrize(
    ("item", "problem"),
    [
        ("mystery(a.t)", "there is no function 'mystery', neither Braid's nor Spark's"),
        ("toss(a.t)", "toss(a.t) is not supported: its value does not depend on the input alone"),
        ("rand(5)", "RAND is not supported: its value does not depend on the input alone"),
        ("stack(2, a.k, a.n)", "STACK is a table function, which is not supported"),
        ("json_tuple(a.t, 'x', 'y')", "Spark cannot compute json_tuple(a.t, 'x', 'y'): "),
        ("explode_outer(a.t)", "EXPLODE_OUTER is a table function, which is not supported"),
        ("inline_outer(array(struct(a.k)))", "inline_outer(array(struct(a.k))) makes several rows of one, or reads"),
        ("bround(a.t, 1, 2, 3)", "Spark cannot compute bround(a.t, 1, 2, 3): The `bround` requires"),
        ("array_contains(a.k, 3)", "Spark cannot compute array_contains(a.k, 3): Cannot resolve"),
        (
            "make_ym_interval(a.k)",
            "make_ym_interval(a.k) is interval year to month, which Spark cannot pass to Python",
        ),
        ("from_json(a.t, 'nonsense(')", "Spark cannot compute from_json(a.t, 'nonsense(')"),
    ],
)
def test_spark_s_refusals_name_place_function_and_reason(registered: Session, item: str, problem: str) -> None:

    declare_tables(registered, {"a": random_rows(0, 3)})
    for text in (f"SELECT {item} AS x FROM a [NOW]", f"SELECT a.k FROM a [NOW] WHERE {item} IS NULL"):
        with pytest.raises(QueryError) as caught:
            registered.sql(text)
        assert caught.value.problem.startswith(problem)
        assert caught.value.span is not None
        assert text[caught.value.span.start : caught.value.span.end].startswith(item[:5])
        assert caught.value.hint
        assert "JVM" not in str(caught.value)


def test_elements_of_nested_columns(registered: Session) -> None:
    spark: Any = registered.spark
    frame = spark.sql(
        "SELECT timestamp_seconds(id) AS ts, id AS n, named_struct('k', id % 5, 'in', named_struct('j', id % 2)) AS p, "
        "array(id, id % 3) AS l, map('x', id % 4) AS m FROM range(40)"
    )
    for name in "ab":
        registered.stream(name, frame)
    text = (
        "SELECT a.n AS an, b.n AS bn, a.l[1] AS x, reverse(a.l)[0] AS y, b.p.in.j AS j FROM a [RANGE 9 SECONDS], "
        "b [RANGE 9 SECONDS] WHERE a.p.k = b.p.k AND a.m['x'] <= b.l[1] AND size(a.l) = 2"
    )
    result = pa.Table.from_pylist([row.asDict() for row in registered.sql(text).dataframe.collect()])
    table = frame.toArrow()
    expected = oracle(
        text.replace("reverse(a.l)[0]", "a.l[1]").replace(" AND size(a.l) = 2", ""), {"a": table, "b": table}
    )
    assert_same_rows(without_time(result), expected, types=False)
    assert result.num_rows > 20


AGGREGATES = f"""SELECT a.k, MAX_BY(b.t, b.n) AS x, MIN_BY(b.t, b.n) AS y, FIRST(b.n) AS f, LAST(b.n) AS l,
          COLLECT_LIST(b.n % 3) AS c, COLLECT_SET(b.n % 3) AS s, ROUND(STDDEV(b.n), 6) AS d,
          PERCENTILE_APPROX(b.n, 0.5) AS p, APPROX_COUNT_DISTINCT(b.n % 3) AS u, BOOL_AND(b.n >= 0) AS q, COUNT(*) AS n
          , date_format(window.start, 's') AS w
          FROM {WINDOWS} WHERE a.k = b.k GROUP BY a.k, WINDOW(event_time, '10 seconds')"""


def by_definition(tables: dict[str, pa.Table]) -> pa.Table:
    """The result of `AGGREGATES`, computed row by row from the results of the join."""
    from collections import defaultdict
    from statistics import stdev

    times = "UNIX_MICROS(a.ts) AS ats, UNIX_MICROS(b.ts) AS bts"
    joined = oracle(f"SELECT a.k, b.n, b.t, {times} FROM {WINDOWS} WHERE a.k = b.k", tables).to_pylist()
    groups = defaultdict(list)
    for row in joined:
        time = max(row["ats"], row["bts"])
        groups[row["k"], time // 10_000_000].append((time, row["n"], row["t"]))
    result = []
    for (key, window), rows in groups.items():
        rows.sort()
        numbers = sorted(number for _, number, _ in rows)
        result.append(
            {
                "k": key,
                "x": max((number, text) for _, number, text in rows)[1],
                "y": min((number, text) for _, number, text in rows)[1],
                "f": rows[0][1],
                "l": rows[-1][1],
                "c": [rest for _, rest in sorted((time, number % 3) for time, number, _ in rows)],
                "s": sorted({number % 3 for number in numbers}),
                "d": round(stdev(numbers), 6) if len(numbers) > 1 else None,
                "p": numbers[(len(numbers) + 1) // 2 - 1],
                "u": len({number % 3 for number in numbers}),
                "q": True,
                "n": len(rows),
                "w": str(window * 10 % 60),
            }
        )
    return pa.Table.from_pylist(result)


def test_aggregates_of_spark_depend_on_the_input_alone(session: Session, feed: Feed, tmp_path: Path) -> None:
    from braid.testing.stream_files import random_rows, with_last_row

    tables = {name: with_last_row(random_rows(seed), key=-1 - seed) for seed, name in enumerate("ab")}
    for name, table in tables.items():
        session.stream(name, feed(name, table, 30), lateness="1 second")
    result = without_time(run_out(session.sql(AGGREGATES, shards=2).dataframe, tmp_path))
    expected = by_definition(tables)
    assert sorted(map(str, result.to_pylist())) == sorted(map(str, expected.to_pylist()))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("SELECT COLLECT_LIST(DISTINCT a.n) FROM a [NOW]", "COLLECT_LIST(DISTINCT ..) is not supported"),
        ("SELECT COLLECT_LIST(MAX(a.n)) FROM a [NOW]", "the aggregate MAX cannot stand here"),
        ("SELECT MAX_BY(a.n) FROM a [NOW]", "MAX_BY takes 2 arguments here, not 1"),
        (
            "SELECT MAX(a.t) FROM a [NOW] HAVING reverse(a.t) = 'x'",
            "'a.t' is neither a key of the groups nor aggregated",
        ),
        ("SELECT CURRENT_TIMESTAMP, MAX(a.t) FROM a [NOW]", "CURRENT_TIMESTAMP cannot be computed from groups"),
        (
            "SELECT reverse(a.t), MAX(a.k) FROM a [NOW] GROUP BY a.k",
            "'a.t' is neither a key of the groups nor aggregated",
        ),
        ("SELECT BOOL_AND(a.n) FROM a [NOW]", "Spark cannot compute bool_and(a.n): "),
        ("SELECT a.k FROM a [NOW] WHERE STDDEV(a.n) > 3", "the aggregate STDDEV cannot stand here"),
    ],
)
def test_aggregates_that_are_refused(session: Session, text: str, problem: str) -> None:

    declare_tables(session, {"a": random_rows(0, 3)})
    with pytest.raises(QueryError) as caught:
        session.sql(text)
    assert caught.value.problem.startswith(problem)
    assert caught.value.span is not None


def test_distinct_results_of_a_stream(session: Session, feed: Feed, tmp_path: Path) -> None:

    tables = {name: random_rows(seed) for seed, name in enumerate("ab")}
    whole_seconds = pa.timestamp("s", "UTC")
    for name, table in tables.items():
        times = table.column("ts").cast(whole_seconds, safe=False).cast(table.schema.field("ts").type)
        tables[name] = table.set_column(0, "ts", times)
        session.stream(name, feed(name, tables[name], 40), lateness="1 second")
    text = f"SELECT DISTINCT a.k, a.k % 2 AS odd, reverse(b.t) AS k FROM {WINDOWS} WHERE a.k = b.k"
    query = session.sql(text, shards=2)
    expected = oracle(text.replace("reverse(b.t) AS k", "b.t AS k"), tables).to_pydict()
    rows = query.dataframe.toDF("x", "y", "z", "event_time")
    result = without_time(run_out(rows, tmp_path))
    assert result.num_rows == len(expected["odd"])
    assert sorted(result.column("z").to_pylist()) == sorted(text[::-1] for text in expected["k"])


def test_errors_of_spark_stay_what_they_are_after_a_refusal(session: Session, feed: Feed) -> None:
    session.stream("a", feed("a", random_rows(1), 40))
    with pytest.raises(QueryError):
        session.sql("SELECT soundex(a.k, 1) AS s FROM a [NOW]")
    with pytest.raises(AnalysisException, match="nothing"):
        session.spark.sql("SELECT nothing FROM range(1)")


ON_RESULTS = {
    "several streams": (
        "SELECT a.n AS an, b.n AS bn FROM a [RANGE 5 SECONDS] JOIN b [RANGE 5 SECONDS] ON a.k = b.k "
        "WHERE {} AND a.n < 90",
        "levenshtein(a.t, b.t) = 0",
        "a.t = b.t",
    ),
    "a stream that may be null": (
        "SELECT a.n AS an, b.n AS bn FROM a [RANGE 1 SECOND] FULL JOIN b [RANGE 1 SECOND] ON a.k = b.k WHERE {}",
        "nvl2(b.n, b.n % 3 = 0, a.n % 2 = 0)",
        "CASE WHEN b.n IS NOT NULL THEN b.n % 3 = 0 ELSE a.n % 2 = 0 END",
    ),
    "groups": (
        "SELECT a.k, COUNT(*) AS n FROM a [RANGE 5 SECONDS], b [RANGE 5 SECONDS] WHERE a.k = b.k GROUP BY a.k "
        "HAVING COUNT(*) > 3 AND {}",
        "format_string('%d', MAX(a.n) % 2) = '1'",
        "MAX(a.n) % 2 = 1",
    ),
}


@pytest.mark.parametrize("name", ON_RESULTS)
def test_conditions_on_results(session: Session, name: str) -> None:

    text, of_spark, ours = ON_RESULTS[name]
    tables = {stream: random_rows(seed, 100) for seed, stream in enumerate("ab")}
    declare_tables(session, tables)
    query = session.sql(text.format(of_spark), shards=2)
    assert "by the host" in query.explain()
    expected = oracle(text.format(ours), tables)
    assert 0 < expected.num_rows < oracle(text.format("TRUE"), tables).num_rows
    assert_same_rows(without_time(query.dataframe.toArrow()), expected, types=False)
