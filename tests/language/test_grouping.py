"""GROUP BY: the grouping that it becomes, and the forms that are refused."""

import pyarrow as pa
import pytest

import braid
from braid import QueryError
from braid.model.grouping import TimeWindow
from braid.model.plan import Plan
from braid.model.stream import Stream

SCHEMA = pa.schema(
    {"ts": pa.timestamp("us"), "x": pa.int32(), "y": pa.decimal128(10, 2), "t": pa.string(), "l": pa.list_(pa.int8())}
)
STREAMS = {name: Stream(name, SCHEMA, "ts") for name in ("s", "r")}


def test_a_grouped_query_is_a_join_and_a_grouping() -> None:
    query = braid.parse(
        """SELECT t, window.start, COUNT(*) AS n, SUM(x) / COUNT(x) AS mean FROM s [NOW]
           GROUP BY t, WINDOW(event_time, '1 minute', '10 seconds') HAVING SUM(x) > '5'""",
        STREAMS,
    )
    grouping = query.grouping
    assert grouping is not None
    assert [str(output.expression) for output in query.outputs] == ["s.t", "s.x"]
    assert [output.name for output in grouping.outputs] == ["t", "start", "n", "mean"]
    assert grouping.window == TimeWindow(60_000_000, 10_000_000)
    assert str(grouping) == "group by s.t, WINDOW(event_time, '1 MINUTE', '10 SECONDS') having SUM(s.x) > 5"
    assert braid.parse(query.text, STREAMS) == query
    assert Plan.of(query, None).explain().endswith(f"then {grouping}")


def test_counting_rows_selects_no_column() -> None:
    query = braid.parse("SELECT COUNT(*) FROM s [NOW]", STREAMS)
    assert [output.name for output in query.outputs] == ["row"]


@pytest.mark.parametrize(
    ("text", "problem", "at"),
    [
        (
            "SELECT x FROM s [NOW] GROUP BY x, SESSION_WINDOW(event_time, '1 second')",
            "SESSION_WINDOW is not supported here",
            "SESSION_WINDOW(event_time, '1 second')",
        ),
        ("SELECT * FROM s [NOW] GROUP BY x", "* has no meaning for groups", "*"),
        ("SELECT x FROM s [NOW] GROUP BY 1", "GROUP BY takes expressions of columns, not 1", "1"),
        ("SELECT x FROM s [NOW] GROUP BY ALL", "ALL is not supported", "ALL"),
        ("SELECT x FROM s [NOW] GROUP BY x WITH CUBE", "CUBE is not supported", "CUBE"),
        ("SELECT COUNT(*) FROM s [NOW] GROUP BY x, CUBE(t)", "CUBE is not supported", "t"),
        ("SELECT COUNT(*) FROM s [NOW] GROUP BY ROLLUP(x)", "ROLLUP is not supported", "x"),
        ("SELECT COUNT(*) FROM s [NOW] GROUP BY GROUPING SETS (x)", "GROUPING SETS is not supported", "x"),
        ("SELECT x FROM s [NOW] GROUP BY MAX(x)", "the aggregate MAX cannot stand here", "MAX(x)"),
        ("SELECT x FROM s [NOW] WHERE MAX(x) > 1", "the aggregate MAX cannot stand here", "MAX(x)"),
        ("SELECT MAX(SUM(x)) FROM s [NOW]", "the aggregate SUM cannot stand here", "SUM(x)"),
        ("SELECT MEAN(mean(x)) FROM s [NOW]", "the aggregate MEAN cannot stand here", "mean(x)"),
        ("SELECT COUNT(DISTINCT x, t) FROM s [NOW]", "COUNT takes 1 argument, not 2", "COUNT(DISTINCT x, t)"),
        (
            "SELECT SUM(x) FILTER (WHERE MAX(x) > 1) FROM s [NOW]",
            "the aggregate MAX cannot stand here",
            "MAX(x)",
        ),
        ("SELECT COUNT(x, t) FROM s [NOW]", "COUNT takes 1 argument, not 2", "COUNT(x, t)"),
        ("SELECT SUM(t) FROM s [NOW]", "SUM takes numbers, not string", "SUM(t)"),
        (
            "SELECT MAX(l) FROM s [NOW]",
            "MAX needs values that can be compared; those of type list<item: int8> cannot",
            "MAX(l)",
        ),
        ("SELECT COUNT(*) FROM s [NOW] GROUP BY l", "results cannot be grouped by s.l, which is list<item: int8>", "l"),
        ("SELECT x FROM s [NOW] GROUP BY t", "'s.x' is neither a key of the groups nor aggregated", "x"),
        ("SELECT t FROM s [NOW] GROUP BY t HAVING x > 1", "'s.x' is neither a key of the groups nor aggregated", "x"),
        ("SELECT x FROM s [NOW] HAVING x > 1", "'s.x' is neither a key of the groups nor aggregated", "x"),
        ("SELECT t FROM s [NOW] GROUP BY t HAVING t", "a condition is true or false, but s.t is string", "t"),
        (
            "SELECT COUNT(*) FROM s [NOW] GROUP BY WINDOW(ts, '1 s')",
            "the first argument of WINDOW must be event_time",
            "WINDOW(ts, '1 s')",
        ),
        (
            "SELECT COUNT(*) FROM s [NOW] GROUP BY WINDOW(event_time, '1 s', '2 s')",
            "the slide of WINDOW is longer than its length, so some results would be in no window",
            "'2 s'",
        ),
        (
            "SELECT COUNT(*) FROM s [NOW] GROUP BY WINDOW(event_time, 5)",
            "the length of a window must be a length of time in quotes",
            "5",
        ),
        (
            "SELECT COUNT(*) FROM s [NOW] GROUP BY WINDOW(event_time)",
            "WINDOW takes event_time, a length and at most one slide",
            "WINDOW(event_time)",
        ),
        (
            "SELECT COUNT(*) FROM s [NOW] GROUP BY WINDOW(event_time, '1 s'), WINDOW(event_time, '2 s')",
            "GROUP BY takes only one WINDOW",
            "WINDOW(event_time, '2 s')",
        ),
        ("SELECT window FROM s [NOW] GROUP BY WINDOW(event_time, '1 s')", "a window has two bounds", "window"),
        (
            "SELECT window.middle FROM s [NOW] GROUP BY WINDOW(event_time, '1 s')",
            "a window has no 'middle'",
            "window.middle",
        ),
        ("SELECT window.start FROM s [NOW] GROUP BY t", "'window' is not a stream of this query", "window"),
    ],
)
def test_errors_name_the_problem_and_point_at_it(text: str, problem: str, at: str) -> None:
    with pytest.raises(QueryError) as raised:
        braid.parse(text, STREAMS)
    assert raised.value.problem == problem
    assert raised.value.span is not None
    assert text[raised.value.span.start : raised.value.span.end] == at


def test_a_stream_called_window_keeps_its_columns() -> None:
    streams = {"window": Stream("window", pa.schema({"ts": pa.timestamp("us"), "start": pa.int32()}), "ts")}
    query = braid.parse(
        "SELECT window.start FROM `window` [NOW] GROUP BY window.start, WINDOW(event_time, '1 s')", streams
    )
    assert [str(output.expression) for output in query.outputs] == ["window.start"]
