"""SQL that the language does not have is refused by name when it is parsed, and the error points at it."""

import pyarrow as pa
import pytest

import braid
from braid import QueryError
from braid.model.query import Output


@pytest.mark.parametrize(
    ("text", "problem", "at"),
    [
        ("SELECT x FROM s [NOW] a ASOF JOIN r [NOW] b ON a.x = b.x", "ASOF JOIN is not supported", "ASOF JOIN"),
        (
            "SELECT x FROM s [NOW] a RIGHT SEMI JOIN r [NOW] b ON 1=1",
            "RIGHT SEMI JOIN is not supported",
            "RIGHT SEMI JOIN",
        ),
        (
            "SELECT x FROM s [NOW] a LEFT ANTI JOIN (r [NOW] b JOIN t [NOW] c ON 1=1) ON 1=1",
            "LEFT ANTI JOIN takes one stream on its right side",
            "(r [NOW] b JOIN t [NOW] c ON 1=1)",
        ),
        ("SELECT x FROM s [NOW] NATURAL JOIN r [NOW]", "NATURAL JOIN is not supported", "NATURAL JOIN"),
        ("SELECT x FROM s [NOW] JOIN r [NOW] USING (x)", "JOIN .. USING is not supported", "x"),
        ("SELECT DISTINCT ON (x) x FROM s [NOW]", "DISTINCT ON is not supported", "DISTINCT"),
        (
            "SELECT DISTINCT x FROM s [NOW] GROUP BY x",
            "DISTINCT cannot be combined with GROUP BY or aggregates",
            "DISTINCT",
        ),
        ("SELECT x FROM s [NOW] ORDER  BY x", "ORDER BY is not supported", "ORDER  BY"),
        ("SELECT x FROM s [NOW] SORT BY x", "SORT BY is not supported", "SORT BY"),
        ("SELECT x FROM s [NOW] LIMIT 5", "LIMIT is not supported", "LIMIT"),
        ("SELECT x FROM s [NOW] QUALIFY x > 1", "QUALIFY has no ROW_NUMBER()", "QUALIFY"),
        ("SELECT /*+ BROADCAST(s) */ x FROM s [NOW]", "hints are not supported", "/*+"),
        ("SELECT x FROM s [NOW] LATERAL VIEW explode(y) t AS z", "LATERAL VIEW is not supported", "LATERAL"),
        ("SELECT x FROM s [NOW] TABLESAMPLE (5 ROWS)", "TABLESAMPLE is not supported", "TABLESAMPLE"),
        ("SELECT * EXCEPT (x) FROM s [NOW]", "* EXCEPT is not supported", "EXCEPT"),
        ("SELECT a.x FROM a [NOW] UNION ALL SELECT b.x FROM b [NOW]", "UNION is not supported", "UNION"),
        ("SELECT a.x FROM a [NOW] PIVOT (SUM(x) FOR y IN (1))", "PIVOT is not supported", "PIVOT"),
        ("SELECT x -> y FROM s [NOW]", "-> is not supported", "->"),
        ("SELECT x FROM (SELECT * FROM s [NOW]) t", "stream 't (SELECT)' has no window", "(SELECT * FROM s [NOW]) t"),
        ("SELECT x FROM s [NOW] WHERE x = (SELECT 1)", "subqueries are not supported here", "(SELECT 1)"),
        (
            "SELECT x FROM s [NOW] WHERE NOT (x = 1 AND EXISTS (SELECT 1))",
            "EXISTS cannot stand here",
            "EXISTS (SELECT 1)",
        ),
        ("SELECT x FROM s [NOW] WHERE x = 1 OR x IN (SELECT 1)", "IN (SELECT ..) cannot stand here", "x IN (SELECT 1)"),
        ("SELECT x FROM explode(y)", "table functions are not supported", "explode(y)"),
        ("SELECT x FROM s [NOW] AS t (a, b)", "columns cannot be renamed in FROM", "s [NOW] AS t (a, b)"),
        ("SELECT x FROM lake.s [NOW]", "the name of a stream has one part, not 'lake.s'", "lake.s [NOW]"),
        ("WITH t AS (SELECT 1) SELECT * FROM t", "stream 't' has no window", "t"),
        ("WITH RECURSIVE t AS (SELECT 1) SELECT * FROM t [NOW]", "WITH RECURSIVE is not supported", "RECURSIVE"),
        ("SELECT collect_list(x) FROM s [NOW]", "the aggregate COLLECT_LIST is not supported", "collect_list(x)"),
        (
            "SELECT sum(x) OVER () FROM s [NOW]",
            "window functions (OVER) other than ROW_NUMBER() are not supported",
            "sum(x) OVER ()",
        ),
        ("SELECT x FROM s [NOW] WHERE x = ?", "placeholders are not supported", "?"),
        ("SELECT x FROM s [NOW] WHERE x = :v", "placeholders are not supported", ":v"),
        ("SELECT x FROM s [NOW] WHERE x = ${v}", "placeholders are not supported", "${v}"),
        ("SELECT x[1:2] FROM s [NOW]", "one position or key stands in these brackets", "x[1:2]"),
        ("SELECT r.x.y FROM s [NOW]", "'r' is not a stream of this query", "r"),
        ("SELECT lower(*) FROM s [NOW]", "* stands alone or after the name of a stream", "*"),
        ("SELECT x & 1 FROM s [NOW]", "the operator & is not supported", "x & 1"),
        ("SELECT (x, y) = (1, 2) FROM s [NOW]", "lists of values are not supported here", "(x, y)"),
        (
            "SELECT x LIKE ANY ('a', 'b') FROM s [NOW]",
            "LIKE ANY and LIKE ALL are not supported",
            "x LIKE ANY ('a', 'b')",
        ),
        (
            "SELECT INTERVAL 5 MONTHS FROM s [NOW]",
            "intervals of months and years are not supported",
            "INTERVAL 5 MONTHS",
        ),
        ("SELECT INTERVAL x MINUTES FROM s [NOW]", "the length of an INTERVAL is a number", "INTERVAL x MINUTES"),
        *(
            (f"SELECT {test} FROM s [NOW]", "a comparison beside BETWEEN, IN or LIKE is ambiguous", test)
            for test in ("x = y IN (TRUE)", "x LIKE 'a%' = y", "x < y NOT BETWEEN 1 AND 2", "x RLIKE 'a' <=> y")
        ),
        ("SELECT CAST(x AS ARRAY<INT>) FROM s [NOW]", "there is no type ARRAY<INT> to cast to", "ARRAY<INT>"),
        ("SELECT CAST(x AS INTERVAL DAY) FROM s [NOW]", "there is no type INTERVAL DAY to cast to", "INTERVAL DAY"),
        ("SELECT CAST(x AS HUGEINT) FROM s [NOW]", "there is no type HUGEINT to cast to", "HUGEINT"),
        ("SELECT x::timestamp(3) FROM s [NOW]", "there is no type TIMESTAMP(3) to cast to", "timestamp(3)"),
        (
            "SELECT CAST(x AS STRING FORMAT 'y') FROM s [NOW]",
            "this form of CAST is not supported",
            "CAST(x AS STRING FORMAT 'y')",
        ),
        ("SELECT CAST(x AS STRING COLLATE y) FROM s [NOW]", "COLLATE is not supported", "y"),
        *(
            (f"SELECT CAST(x AS {word}) FROM s [NOW]", f"there is no type {word} to cast to", word)
            for word in ("TEXT", "VARCHAR", "CHAR", "INT8", "BLOB", "NUMBER(5)", "TIMESTAMP WITH TIME ZONE")
        ),
        ("SELECT AND(x) FROM s [NOW]", "AND is no function", "AND(x)"),
        ("SELECT OR(x, y) FROM s [NOW]", "OR is no function", "OR(x, y)"),
        ("SELECT NVL(x) FROM s [NOW]", "NVL takes 2 arguments, not 1", "NVL(x)"),
        ("SELECT IFNULL(x, y, z) FROM s [NOW]", "IFNULL takes 2 arguments, not 3", "IFNULL(x, y, z)"),
        *(
            (f"SELECT {call} FROM s [NOW]", f"{call[:10].rstrip('(')} takes its unit as a text in quotes", call)
            for call in ("DATE_TRUNC(day, ts)", "DATE_TRUNC(s.day, ts)", "DATE_PART(day, ts)", "DATE_PART(s.day, ts)")
        ),
        ("SELECT IF(x, y) FROM s [NOW]", "IF takes 3 arguments, not 2", "IF(x, y)"),
        *(
            (f"SELECT {name}({arguments}) FROM s [NOW]", f"there is no function '{name}'", name)
            for name, arguments in (
                ("TS_OR_DS_TO_DATE_STR", ""),
                ("TIME_TO_TIME_STR", "x, y, z"),
                ("SAFE_CAST", "x AS INT"),
                ("CONVERT", "x, INT"),
                ("IIF", "x, y, z"),
                ("STARTS_WITH", "x, y"),
            )
        ),
        *(
            (f"SELECT CAST(x AS {word}) FROM s [NOW]", "DECIMAL takes two whole numbers", word)
            for word in ("DECIMAL()", "DECIMAL(5, 1, 2)", "DECIMAL(x)")
        ),
        *(
            (f"SELECT x::{word} FROM s [NOW]", f"there is no type {word} to cast to", word)
            for word in ("VARCHAR(MAX)", "VARCHAR(3, 4)", "CHAR('3')")
        ),
        (
            "SELECT INTERVAL 9223372036854775807 MICROSECONDS FROM s [NOW]",
            "this INTERVAL is too long",
            "INTERVAL 9223372036854775807 MICROSECONDS",
        ),
        ("SELECT 1e400 FROM s [NOW]", "this number is too large for a double", "1e400"),
        ("SELECT -1e400 FROM s [NOW]", "this number is too large for a double", "-1e400"),
        ("SELECT 1e39F FROM s [NOW]", "this number is too large for a float", "1e39F"),
        (
            "SELECT INTERVAL '1:60' MINUTE TO SECOND FROM s [NOW]",
            "'1:60' is no length of time",
            "INTERVAL '1:60' MINUTE TO SECOND",
        ),
        ("SELECT x::strin FROM s [NOW]", "there is no type 'strin'", "strin"),
        ("SELECT explode(x) FROM s [NOW]", "EXPLODE is a table function, which is not supported", "explode(x)"),
        ("SELECT lowr(x) FROM s [NOW]", "there is no function 'lowr'", "lowr"),
        ("SELECT floor(x, 2) FROM s [NOW]", "FLOOR takes 1 argument, not 2", "floor(x, 2)"),
        ("SELECT DATE(x, 'dd/MM/yyyy') FROM s [NOW]", "DATE takes 1 argument, not 2", "DATE(x, 'dd/MM/yyyy')"),
        ("SELECT timestamp(x, 'yyyy') FROM s [NOW]", "TIMESTAMP takes 1 argument, not 2", "timestamp(x, 'yyyy')"),
        ("SELECT INT(x, y) FROM s [NOW]", "INT takes 1 argument, not 2", "INT(x, y)"),
        ("SELECT BIGINT(x, y) FROM s [NOW]", "BIGINT takes 1 argument, not 2", "BIGINT(x, y)"),
        ("SELECT STRING(x, y) FROM s [NOW]", "STRING takes 1 argument, not 2", "STRING(x, y)"),
        ("SELECT LOG10(x, y) FROM s [NOW]", "LOG10 takes 1 argument, not 2", "LOG10(x, y)"),
        ("SELECT LOG2(x, y) FROM s [NOW]", "LOG2 takes 1 argument, not 2", "LOG2(x, y)"),
        ("SELECT 1 + MOD(x, 3, 5) FROM s [NOW]", "MOD takes at most 2 arguments, not 3", "MOD(x, 3, 5)"),
        ("SELECT DIV(x, y, z) FROM s [NOW]", "DIV takes at most 2 arguments, not 3", "DIV(x, y, z)"),
        ("SELECT LTRIM(x, y, z) FROM s [NOW]", "LTRIM takes at most 2 arguments, not 3", "LTRIM(x, y, z)"),
        ("SELECT LIKE(x, y, '!', z) FROM s [NOW]", "LIKE takes at most 3 arguments, not 4", "LIKE(x, y, '!', z)"),
        (
            "SELECT UNIX_TIMESTAMP(x, 'yyyy') FROM s [NOW]",
            "UNIX_TIMESTAMP takes 1 argument, not 2",
            "UNIX_TIMESTAMP(x, 'yyyy')",
        ),
        (
            "SELECT DATE_TRUNC('day', x, 'Europe/Berlin') FROM s [NOW]",
            "DATE_TRUNC takes at most 2 arguments, not 3",
            "DATE_TRUNC('day', x, 'Europe/Berlin')",
        ),
        ("SELECT x FROM s [NOW] GROUP BY x HAVING INT(MAX(y), 2) > 1", "INT takes 1 argument, not 2", "INT(MAX(y), 2)"),
        ("SELECT year() FROM s [NOW]", "an argument is missing here", "year()"),
        ("SELECT a.x FROM a [NOW] JOIN b [NOW] ON", "a condition is missing after ON", "ON"),
        ("SELECT a.x FROM a [NOW] JOIN b [NOW] ON WHERE a.x = b.x", "a condition is missing after ON", "ON"),
        ("SELECT a.x FROM a [NOW], (b [NOW] JOIN c [NOW] ON )", "a condition is missing after ON", "ON"),
        ("SELECT COUNT(*) FROM a [NOW] GROUP BY", "GROUP BY has no keys", "GROUP BY"),
        ("SELECT COUNT(*) FROM a [NOW] GROUP BY HAVING COUNT(*) > 1", "GROUP BY has no keys", "GROUP BY"),
        ("SELECT CASE WHEN x = 1 5 END FROM a [NOW]", "THEN is missing here", "x = 1 5"),
        ("SELECT x BETWEEN 1 + 1 3 FROM a [NOW]", "AND is missing here", "1 + 1 3"),
        ("SELECT INTERVAL '5 minutes 3' FROM a [NOW]", "'5 minutes 3' is no length of time", "INTERVAL '5 minutes 3'"),
        ("SELECT INTERVAL '5 minutes x' FROM a [NOW]", "'5 minutes x' is no length of time", "INTERVAL '5 minutes x'"),
        ("SELECT x FROM a [NOW] AS", "a name is missing after AS", "AS"),
        ("SELECT x FROM a AS [NOW]", "a name is missing after AS", "AS"),
    ],
)
def test_errors_name_the_problem_and_point_at_it(text: str, problem: str, at: str) -> None:
    with pytest.raises(QueryError) as raised:
        braid.parse(text)
    assert raised.value.problem == problem
    assert raised.value.span is not None
    assert text[raised.value.span.start : raised.value.span.end] == at
    assert raised.value.hint or " takes " in problem, "the error has no hint"


@pytest.mark.parametrize(
    "call",
    [
        *("mod(greatest(x, 1, 2), abs(y))", "div(x, y)", "log(2, x)", "log(x)", "trim(both ',' from x)"),
        *("ltrim('a', x)", "like(x, 'a!%', '!')", "trim(log10(x), y)::int", "date(coalesce(x, y))"),
        *("cast(x as decimal(10, 2))", "date_trunc('day', greatest(x, y))", "if(x > 1, x, y)", "timestamp(x)"),
        *("substring(x, 1, 2)", "concat(x, y, x, y)", "int(case (x) when 1 then 2 end)", "string(x in (1, 2, 3))"),
    ],
)
def test_only_the_arguments_of_the_call_itself_count(call: str) -> None:
    """Commas inside an argument do not add arguments."""
    query = braid.parse(f"SELECT {call} FROM s [NOW]")
    assert query.outputs


@pytest.mark.parametrize(
    "call",
    [
        "rand()",
        "random()",
        "uuid()",
        "now()",
        "current_date",
        "randn()",
        "monotonically_increasing_id()",
        "current_user()",
        "localtimestamp()",
        "spark_partition_id()",
        "curdate()",
    ],
)
def test_functions_that_depend_on_more_than_the_input_are_refused(call: str) -> None:
    with pytest.raises(QueryError) as raised:
        braid.parse(f"SELECT x FROM s [NOW] WHERE x < {call}")
    name = call.removesuffix("()").upper()
    assert raised.value.problem == f"{name} is not supported: its value does not depend on the input alone"
    assert raised.value.place == (1, 33)


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("SELECT , s.x FROM s [NOW]", "SELECT ,"),
        ("SELECT s.x FROM s [NOW] WHERE s.x IN (, 1)", "(,"),
        ("SELECT COALESCE(, s.x) FROM s [NOW]", "(,"),
        ("SELECT SUBSTRING( , s.x, 2) FROM s [NOW]", "( ,"),
        ("SELECT s.x FROM , s [NOW]", "FROM ,"),
        ("SELECT s.x FROM s [NOW] GROUP\nBY , s.x", "GROUP\nBY ,"),
        ("SELECT s.x FROM s [NOW] WHERE , s.x = 1", "WHERE ,"),
    ],
)
def test_a_leading_comma_is_refused(text: str, at: str) -> None:
    with pytest.raises(QueryError) as raised:
        braid.parse(text)
    assert raised.value.problem == f"something is missing between {' '.join(at[:-1].split())} and ,"
    assert raised.value.span is not None
    assert text[raised.value.span.start : raised.value.span.end] == at


def test_a_keyword_may_be_the_name_of_a_column() -> None:
    query = braid.parse("SELECT s.from, s.where, s.y FROM s [NOW]")
    assert [output.name for output in query.outputs if isinstance(output, Output)] == ["from", "where", "y"]


TUMBLE = "results are grouped by windows of time: GROUP BY WINDOW(event_time, '5 minutes')"
HOP = "results are grouped by windows of time: GROUP BY WINDOW(event_time, '5 minutes', '1 minute')"
SESSION = "fixed length: GROUP BY WINDOW(event_time, '5 minutes'); with braid.Session also by sessions: GROUP BY k, "
NEWEST = "for the newest row of each key write a window after the stream: [PARTITION BY k ROWS 1]"


@pytest.mark.parametrize(
    ("text", "problem", "at", "hint"),
    [
        ("SELECT x FROM TABLE(CUMULATE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE))", "CUMULATE", "CUMULATE", TUMBLE),
        ("SELECT x FROM tumble(s, ts, INTERVAL 1 MINUTE)", "TUMBLE", "tumble", TUMBLE),
        ("SELECT COUNT(*) FROM s [NOW] GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE)", "TUMBLE", "TUMBLE", TUMBLE),
        ("SELECT COUNT(*) FROM s [NOW] GROUP BY HOP(ts, INTERVAL 1 MINUTE, INTERVAL 5 MINUTE)", "HOP", "HOP", HOP),
        ("SELECT COUNT(*) FROM s [NOW] GROUP BY SESSION(ts, INTERVAL 1 MINUTE)", "SESSION", "SESSION", SESSION),
        ("SELECT x FROM SESSION(TABLE s, DESCRIPTOR(ts), INTERVAL 1 MINUTE)", "SESSION", "SESSION", SESSION),
        ("SELECT x FROM s [NOW] JOIN r FOR SYSTEM_TIME AS OF s.ts ON s.x = r.x", "FOR SYSTEM_TIME", None, NEWEST),
        ("SELECT x FROM s TIMESTAMP AS OF '2024-01-01'", "TIMESTAMP AS OF", None, NEWEST),
        ("SELECT STRUCT(s.x, s.y) AS z FROM s [NOW]", "STRUCT", "STRUCT(s.x, s.y)", "select the parts as columns"),
        ("SELECT named_struct('x', s.x) AS z FROM s [NOW]", "NAMED_STRUCT", None, "select the parts as columns"),
        ("SELECT ARRAY(s.x) AS z FROM s [NOW]", "ARRAY", "ARRAY(s.x)", "select the parts as columns"),
    ],
)
def test_what_other_systems_have_is_refused_with_what_to_write_instead(
    text: str, problem: str, at: str | None, hint: str
) -> None:
    with pytest.raises(QueryError) as caught:
        braid.parse(text)
    assert caught.value.problem == f"{problem} is not supported"
    assert caught.value.hint is not None and hint in caught.value.hint
    assert caught.value.span is not None
    if at is not None:
        assert text[caught.value.span.start : caught.value.span.end] == at


@pytest.mark.parametrize(
    ("text", "problem", "at", "hint"),
    [
        (
            "SELECT current_timestamp() AS t FROM s [NOW]",
            "CURRENT_TIMESTAMP is the event time of a result, which only Spark can select",
            "current_timestamp()",
            "GREATEST(a.ts, b.ts)",
        ),
        (
            "SELECT x FROM s [NOW] WHERE x >= ALL (SELECT k FROM r [NOW])",
            "ANY, SOME and ALL of a subquery are not supported",
            "ALL (SELECT k FROM r [NOW])",
            "x IN (SELECT ..)",
        ),
        (
            "SELECT a.v FROM a [NOW] WHERE a.k = 1 LEFT JOIN b [NOW] ON a.k = b.k",
            "WHERE stands before a stream of FROM",
            "a.k = 1",
            "SELECT .. FROM .. JOIN .. ON .. WHERE .. GROUP BY .. HAVING ..",
        ),
        (
            "SELECT a.v FROM a [NOW] WHERE a.k = 1, b [NOW]",
            "WHERE stands before a stream of FROM",
            "a.k = 1",
            "SELECT .. FROM .. JOIN .. ON .. WHERE .. GROUP BY .. HAVING ..",
        ),
        (
            "SELECT a.k FROM a [NOW] GROUP BY a.k WHERE a.k > 1",
            "GROUP BY stands before WHERE",
            "a.k",
            "SELECT .. FROM .. JOIN .. ON .. WHERE .. GROUP BY .. HAVING ..",
        ),
        (
            "WITH q AS (SELECT x, ts FROM s) SELECT x FROM q",
            "stream 'q' has no window",
            "q",
            "q [RANGE 5 MINUTES], q [ROWS 100]",
        ),
        (
            "SELECT y.x FROM (SELECT x, ts FROM s) AS y",
            "stream 'y (SELECT)' has no window",
            "(SELECT x, ts FROM s) AS y",
            "y [RANGE 5 MINUTES], y [ROWS 100]",
        ),
    ],
)
def test_the_hint_of_a_refusal_can_be_written(text: str, problem: str, at: str, hint: str) -> None:
    with pytest.raises(QueryError) as caught:
        braid.parse(text)
    assert caught.value.problem == problem
    assert caught.value.span is not None
    assert text[caught.value.span.start : caught.value.span.end] == at
    assert hint in (caught.value.hint or "")


def test_the_hint_for_a_view_without_a_window_has_the_name_that_the_text_gives_it() -> None:
    streams = {"s": pa.table({"ts": pa.array([1], pa.timestamp("us")), "x": [1]})}
    with pytest.raises(QueryError) as caught:
        braid.run("WITH q AS (SELECT x, ts FROM s) SELECT x FROM q", streams)
    assert caught.value.hint == "say which rows count: q [RANGE 5 MINUTES], q [ROWS 100] or q [UNBOUNDED]"


@pytest.mark.parametrize("text", ["SELECT of.x FROM s [NOW] AS of", "SELECT hop.session FROM hop [NOW]"])
def test_words_of_other_systems_are_names_where_they_are_names(text: str) -> None:
    braid.parse(text)
