"""SELECTs, UNION ALL and window functions in FROM, WITH, and tables: what is left of the text, and what is refused."""

import pyarrow as pa
import pytest

import braid
from braid import QueryError
from braid.language.default_window import with_default_window
from braid.language.dialect import parse_statement
from braid.language.reading import declared_stream, read
from braid.language.views import BoundQuery, FunctionView, RowsView, View
from braid.model.stream import Branch, Stream
from braid.model.table import Table
from braid.model.window import Tumble, Until

TIME = pa.timestamp("us")
RELATIONS = {
    "a": Stream("a", pa.schema([("ts", TIME), ("k", pa.int64()), ("v", pa.int64())]), "ts", 5),
    "b": Stream("b", pa.schema([("ts", TIME), ("k", pa.int64()), ("w", pa.string())]), "ts", 7),
    "t": Table("t", pa.schema([("k", pa.int64()), ("name", pa.string())])),
    "u": Table("u", pa.schema([("name", pa.string()), ("z", pa.int64())])),
}


def reading(text: str) -> tuple[BoundQuery, list[View]]:
    """A text over these streams and tables, and the views that were defined."""
    views: list[View] = []

    def define(view: View) -> Stream:
        views.append(view)
        return declared_stream(view)

    return read(text, RELATIONS, define), views


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        (
            "SELECT x.v2 FROM (SELECT v + 1 AS v2, k FROM a WHERE v > 3) [RANGE 5 SECONDS] x",
            "SELECT x.v2 AS `v2` FROM `x (SELECT)` AS `x` [RANGE 5 SECONDS]",
        ),
        (
            "WITH x AS (SELECT * FROM a) SELECT q.v, w FROM x [NOW] AS q, b [NOW] WHERE b.k = q.k",
            "SELECT q.v AS `v`, w AS `w` FROM `x (WITH)` AS `q` [NOW], b [NOW] WHERE b.k = q.k",
        ),
        (
            "SELECT a.v + 1, t.name FROM a [NOW] JOIN t ON t.k = a.k",
            "SELECT a.v + 1 AS `a.v + 1`, `a`.`t.name` AS `name` FROM `a (with t)` AS `a` [NOW]",
        ),
        (
            "SELECT * FROM t, b [NOW] AS y WHERE t.k = y.k AND w = 'x'",
            "SELECT `y`.`t.k` AS `k`, `y`.`t.name` AS `name`, `y`.`ts` AS `ts`, `y`.`k` AS `k`, `y`.`w` AS `w` "
            "FROM `y (with t)` AS `y` [NOW] WHERE w = 'x'",
        ),
        (
            "SELECT u.z FROM a [NOW] JOIN b [NOW] ON a.k = b.k JOIN t ON t.k = b.k AND a.v > 1 "
            "JOIN u ON u.name = t.name AND u.z > a.v",
            "SELECT `b`.`u.z` AS `z` FROM a [NOW] CROSS JOIN `b (with t, u)` AS `b` [NOW] "
            "WHERE a.k = b.k AND a.v > 1 AND `b`.`u.z` > a.v",
        ),
        (
            "SELECT t.name FROM a [NOW] JOIN b [NOW] ON a.k = b.k JOIN b [NOW] AS c ON c.k = b.k "
            "JOIN t ON t.k = c.k AND t.name > b.w LEFT JOIN a [NOW] AS d ON d.k = b.k",
            "SELECT `c`.`t.name` AS `name` FROM a [NOW] CROSS JOIN b [NOW] JOIN `c (with t)` AS `c` [NOW] "
            "ON a.k = b.k AND c.k = b.k AND `c`.`t.name` > b.w LEFT JOIN a AS d [NOW] ON d.k = b.k",
        ),
        (
            "SELECT a.k, name FROM a [NOW] LEFT JOIN t ON t.k = a.k FULL JOIN b [NOW] ON b.k = a.k WHERE name IS NULL",
            "SELECT a.k AS `k`, `a`.`t.name` AS `name` FROM `a (with t)` AS `a` [NOW] "
            "FULL JOIN b [NOW] ON b.k = a.k WHERE `a`.`t.name` IS NULL",
        ),
        (
            "SELECT t.name, COUNT(*) FROM a [NOW] JOIN t ON t.k = a.k GROUP BY t.name, WINDOW(event_time, '1 minute')",
            "SELECT `a`.`t.name` AS `name`, COUNT(*) AS `COUNT(*)` FROM `a (with t)` AS `a` [NOW] "
            "GROUP BY `a`.`t.name`, WINDOW(event_time, '1 minute')",
        ),
        (
            "SELECT a.v FROM a [NOW], t WHERE t.k = a.k AND EXISTS (SELECT 1 FROM b [NOW] WHERE w = name)",
            "SELECT a.v AS `v` FROM `a (with t)` AS `a` [NOW] "
            "WHERE EXISTS(SELECT 1 FROM b [NOW] WHERE w = `a`.`t.name`)",
        ),
        (
            "SELECT a.v FROM a [NOW] ANTI JOIN t ON t.k = a.k WHERE EXISTS (SELECT 1 FROM b [NOW] WHERE b.k = a.k)",
            "SELECT a.v AS `v` FROM `a (with t)` AS `a` [NOW] WHERE EXISTS(SELECT 1 FROM b [NOW] WHERE b.k = a.k)",
        ),
    ],
)
def test_what_is_left_names_streams_only(text: str, rest: str) -> None:
    read_text, _ = reading(text)
    assert read_text.text == rest
    assert read_text.query.text == text


@pytest.mark.parametrize(
    "expression",
    [
        *("5L + x.v", "-5S", "1.5BD", "1.5F", "1e3", "X'0AFF'", "x.v::double", "BIGINT(x.v)", "r'raw'", "'it''s'"),
        *("DATE '2024-01-31'", "TIMESTAMP '2024-01-31 12:00:00'", "CAST('2024-01-31' AS DATE)", "'a' || (x.v + 1)"),
        *("x.ts - INTERVAL '1 02:03:04' DAY TO SECOND", "extract(SECOND FROM x.ts)", "x.v IS NOT DISTINCT FROM 1"),
        *("CASE WHEN x.v = 0 THEN 'a' ELSE NULL END", "nvl(x.v, 0)", "x.v div 2 % 3", "x.v NOT IN (1, 2)"),
    ],
)
def test_expressions_mean_the_same_without_views(expression: str) -> None:
    """`read` compares the query of the text with that of the text that is left."""
    read_text, _ = reading(f"SELECT {expression} FROM (SELECT * FROM a) [NOW] AS x")
    assert read_text.query.outputs[0] == braid.parse(read_text.text, read_text.relations).outputs[0]


def test_a_text_without_views_stays_as_it_is() -> None:
    text = "SELECT a.v,  b.w FROM a [NOW], b [NOW] WHERE a.k=b.k"
    assert reading(text)[0].text == text
    assert reading(text)[1] == []


def test_the_event_time_of_a_select_is_that_of_its_stream() -> None:
    for select, time in [
        ("SELECT k, ts FROM a", "ts"),
        ("SELECT k, s.TS AS at FROM a AS s", "at"),
        ("SELECT s.* FROM a AS s", "ts"),
        ("SELECT k FROM a", "event_time"),
        ("SELECT k AS event_time FROM a", "_event_time"),
        ("SELECT t.k, a.k AS j FROM a JOIN t ON t.k = a.k", "event_time"),
    ]:
        _, (view,) = reading(f"SELECT x.* FROM ({select}) [NOW] AS x")
        assert isinstance(view, RowsView)
        assert view.time == time


def test_views_in_views_and_a_view_that_hides_a_stream() -> None:
    text = "WITH a AS (SELECT k, v * 2 AS v FROM a) SELECT x.v FROM (SELECT y.v FROM (SELECT * FROM a) AS y) [NOW] AS x"
    _, views = reading(text)
    assert [view.name for view in views] == ["a (WITH)", "x (SELECT): y (SELECT)", "x (SELECT)"]
    assert isinstance(views[1], RowsView)
    assert views[1].stream.name == "a (WITH)"


def test_a_union_is_as_late_as_each_of_its_streams() -> None:
    read_text, views = reading(
        "SELECT x.k FROM (SELECT k, ts FROM a UNION ALL SELECT k AS j, ts FROM b WHERE w = 'x') [NOW] AS x"
    )
    assert len(views) == 3
    (stream,) = read_text.streams
    assert stream.schema.names == ["k", "ts"]
    assert stream.branches == (Branch("x (SELECT) 1", 5), Branch("x (SELECT) 2", 7))


@pytest.mark.parametrize(
    ("function", "window"),
    [
        ("TUMBLE(TABLE a, DESCRIPTOR(ts), INTERVAL '10' SECONDS)", Tumble(10_000_000)),
        ("TABLE(TUMBLE(TABLE a, DESCRIPTOR(`TS`), INTERVAL 10 SECONDS))", Tumble(10_000_000)),
        ("HOP(TABLE a, DESCRIPTOR(ts), INTERVAL 2 SECONDS, INTERVAL 10 SECONDS)", Until("window_end")),
    ],
)
def test_window_functions(function: str, window: object) -> None:
    read_text, (view,) = reading(f"SELECT x.window_start, window_end FROM {function} AS x")
    assert isinstance(view, FunctionView)
    assert read_text.query.sources[0].window == window
    assert read_text.streams[0].schema.names == ["ts", "k", "v", "window_start", "window_end"]
    tree = parse_statement(f"SELECT k FROM {function} AS x")
    assert parse_statement(tree.sql(dialect="braid")).sql(dialect="braid") == tree.sql(dialect="braid")


def test_a_query_that_is_not_bound_names_its_views() -> None:
    query = braid.parse("WITH q AS (SELECT k FROM a) SELECT x.k FROM (SELECT k FROM q) [NOW] AS x")
    assert query.views == ("q (WITH)", "x (SELECT)")
    assert query.aliases == ("x",)
    with pytest.raises(braid.PlanningError, match="run at one site"):
        braid.plan(query, braid.Statistics(), braid.Topology.from_links([("x", "y", 1.0)]))


def test_a_default_window_is_for_streams_of_the_outer_select() -> None:
    text = "WITH q AS (SELECT k FROM a) SELECT q.k FROM q JOIN t ON t.k = q.k JOIN (SELECT k FROM b) AS x ON x.k = q.k"
    assert with_default_window(text, "5 seconds", ["t"]) == (
        "WITH q AS (SELECT k FROM a) SELECT q.k FROM q [RANGE 5 SECONDS] JOIN t ON t.k = q.k "
        "JOIN (SELECT k FROM b) AS x [RANGE 5 SECONDS] ON x.k = q.k"
    )


@pytest.mark.parametrize(
    ("text", "problem", "marked"),
    [
        ("SELECT 1 FROM (SELECT k FROM a) [NOW]", "a SELECT in FROM needs a name", "("),
        ("SELECT x.k FROM (SELECT k FROM a) AS x", "stream 'x (SELECT)' has no window", "(SELECT k FROM a) AS x"),
        ("SELECT x.k FROM (SELECT k FROM nope) [NOW] AS x", "there is no stream 'nope'", "nope"),
        ("SELECT x.k FROM (SELECT q FROM a) [NOW] AS x", "stream 'a' has no column 'q'", "q"),
        ("SELECT x.q FROM (SELECT k FROM a) [NOW] AS x", "stream 'x' has no column 'q'", "x.q"),
        (
            "SELECT x.k FROM (SELECT a.k FROM a, b WHERE a.k = b.k) [NOW] AS x",
            "this SELECT reads 2 streams without windows, and can read one",
            "SELECT a.k FROM a, b WHERE a.k = b.k",
        ),
        (
            "SELECT x.n FROM (SELECT COUNT(*) AS n FROM a) [NOW] AS x",
            "a SELECT in FROM that groups needs a window after its stream",
            "SELECT COUNT(*) AS n FROM a",
        ),
        (
            "SELECT x.r FROM (SELECT rand() AS r FROM a) [NOW] AS x",
            "RAND is not supported: its value does not depend on the input alone",
            "rand()",
        ),
        (
            "SELECT x.k FROM (SELECT k FROM a WHERE ts < current_timestamp) [NOW] AS x",
            "CURRENT_TIMESTAMP is the event time of a result, which only Spark can select",
            "current_timestamp",
        ),
        (
            "SELECT x.k FROM (WITH q AS (SELECT k FROM a) SELECT k FROM q UNION ALL SELECT k FROM b) [NOW] AS x",
            "WITH is not supported here",
            "WITH",
        ),
        ("SELECT x.k FROM (SELECT k FROM a ORDER BY k) [NOW] AS x", "ORDER BY is not supported", "ORDER BY"),
        (
            "SELECT x.k FROM (SELECT k, ts FROM a UNION SELECT k, ts FROM b) [NOW] AS x",
            "UNION is not supported",
            "UNION",
        ),
        (
            "SELECT x.k FROM (SELECT k, ts FROM a UNION ALL SELECT ts, k FROM b) [NOW] AS x",
            "UNION ALL: column 'k' is int64 and here timestamp[us]",
            "ts, k FROM b",
        ),
        (
            "SELECT x.k FROM (SELECT k, ts FROM a UNION ALL SELECT k FROM b UNION ALL SELECT k, v, ts FROM a) [NOW] x",
            "UNION ALL of 2 and 3 columns (with the event time)",
            "k, v, ts FROM a",
        ),
        (
            "WITH RECURSIVE q AS (SELECT k FROM a) SELECT q.k FROM q [NOW]",
            "WITH RECURSIVE is not supported",
            "RECURSIVE",
        ),
        (
            "SELECT x.k FROM HOP(TABLE a, DESCRIPTOR(k), INTERVAL 1 SECOND, INTERVAL 2 SECONDS) x",
            "DESCRIPTOR(k): the event time of stream 'a' is 'ts'",
            "HOP(TABLE a, DESCRIPTOR(k), INTERVAL 1 SECOND, INTERVAL 2 SECONDS) x",
        ),
        (
            "SELECT x.k FROM HOP(TABLE a, DESCRIPTOR(ts), INTERVAL 2 SECONDS) x",
            "HOP has the wrong number of lengths",
            ")",
        ),
        (
            "SELECT x.k FROM HOP(TABLE a, DESCRIPTOR(ts), INTERVAL 3 SECONDS, INTERVAL 2 SECONDS) x",
            "the slide of HOP is longer than its size, so some rows would be in no window",
            "HOP",
        ),
        (
            "SELECT x.k FROM TUMBLE(TABLE a, DESCRIPTOR(ts), INTERVAL 3 SECONDS) [NOW] x",
            "a stream with a window function has a window already",
            "[",
        ),
        ("SELECT k FROM a [NOW] GROUP BY k, TUMBLE(ts, INTERVAL 1 SECOND)", "TUMBLE is not supported", "TUMBLE"),
        (
            "SELECT a.k FROM a [NOW] JOIN t [NOW] ON t.k = a.k",
            "'t' is a table, and its rows are alive at all times",
            "t [NOW]",
        ),
        (
            "SELECT a.k FROM a [NOW] RIGHT JOIN t ON t.k = a.k",
            "RIGHT JOIN with a table is not supported: its rows never end, so that none is ever alone",
            "t",
        ),
        (
            "SELECT a.k FROM a [NOW], b [NOW], t WHERE a.k = b.k",
            "table 't' has no condition with one stream alone",
            "t",
        ),
        (
            "SELECT a.k FROM a [NOW] JOIN b [NOW] ON a.k = b.k LEFT JOIN t ON t.k = a.k AND t.name = b.w",
            "table 't' has no condition with one stream alone",
            "t",
        ),
        (
            "SELECT a.k FROM a [NOW] LEFT JOIN b [NOW] ON a.k = b.k JOIN t ON t.name = b.w",
            "table 't' is joined with 'b', of which an outer join may have no row",
            "t",
        ),
        (
            "SELECT a.k FROM a [NOW] LEFT JOIN b [NOW] ON a.k = b.k LEFT JOIN t ON t.name = coalesce(b.w, 'x')",
            "table 't' is joined with 'b', of which an outer join may have no row",
            "t",
        ),
        (
            "SELECT a.k FROM a [ROWS 3] JOIN t ON t.k = a.k",
            "the window of 'a' counts rows, and table 't' may repeat or drop them",
            "t",
        ),
        ("SELECT k FROM a [NOW] JOIN t ON t.k = a.k", "column 'k' is in several of a, t", "k"),
        ("SELECT t.x FROM a [NOW] JOIN t ON t.k = a.k", "table 't' has no column 'x'", "t.x"),
        ("SELECT t.name FROM a [NOW] LEFT SEMI JOIN t ON t.k = a.k", "'t' cannot be used here", "t.name"),
        (
            "SELECT a.k FROM a [NOW] WHERE EXISTS (SELECT 1 FROM t WHERE t.k = a.k)",
            "'t' is a table, and EXISTS and IN test streams",
            "t",
        ),
        ("SELECT a.k FROM a [NOW] JOIN t ON t.k = a.k JOIN t ON t.k = a.v", "two streams are called 't'", "t"),
        ("SELECT t.k FROM t", "the query reads tables only", "t"),
        ("SELECT (SELECT t.k FROM t)", "the query has no FROM", ""),
        (
            "SELECT x.k FROM (SELECT k JOIN b UNION ALL SELECT k, ts FROM a) [NOW] AS x",
            "this SELECT has no FROM",
            "k",
        ),
        (
            "SELECT a.k FROM a [NOW] LEFT ANTI JOIN t ON t.k IN (SELECT b.k FROM b [NOW] WHERE b.k = a.k)",
            "a subquery cannot decide which rows of table 't' are joined",
            "b.k FROM b [NOW] WHERE b.k = a.k",
        ),
        (
            "SELECT a.k FROM a [NOW] JOIN t ON t.k = (SELECT b.k FROM b [NOW])",
            "a subquery cannot decide which rows of table 't' are joined",
            "b.k FROM b",
        ),
        ("SELECT x.k FROM (SELECT 1 AS k) [NOW] AS x", "this SELECT has no FROM", "SELECT 1 AS k"),
        (
            "SELECT t.k FROM t LEFT JOIN a [NOW] ON t.k = a.k",
            "LEFT JOIN with a stream follows a table",
            "a [NOW]",
        ),
    ],
)
def test_refusals(text: str, problem: str, marked: str) -> None:
    with pytest.raises(QueryError) as caught:
        read(text, RELATIONS, declared_stream)
    assert caught.value.problem == problem
    assert caught.value.span is not None
    assert text[caught.value.span.start : caught.value.span.end] == marked
    assert caught.value.hint
