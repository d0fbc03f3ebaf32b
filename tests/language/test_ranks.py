"""ROW_NUMBER and QUALIFY: what they become, and what is refused."""

import pyarrow as pa
import pytest

import braid
from braid.errors import PlanningError, QueryError
from braid.language import parse
from braid.language.default_window import with_default_window
from braid.model.network.topology import Topology
from braid.model.statistics import Statistics
from braid.model.stream import Stream

SCHEMA = pa.schema({"ts": pa.timestamp("us"), "k": pa.int64(), "p": pa.float64(), "tags": pa.list_(pa.string())})
STREAMS = {name: Stream(name, SCHEMA, "ts") for name in "ab"}
TUMBLE = "TUMBLE(TABLE a, DESCRIPTOR(ts), INTERVAL 10 SECONDS)"
OVER = "ROW_NUMBER() OVER (PARTITION BY WINDOW(event_time, '10 seconds') ORDER BY p)"


def test_all_ways_to_write_it_mean_the_same() -> None:
    over = "ROW_NUMBER() OVER (PARTITION BY window_end ORDER BY p DESC)"
    texts = [
        f"SELECT k, p, {over} AS rn FROM {TUMBLE} QUALIFY rn <= 3",
        f"SELECT k, p, {over} AS rn FROM {TUMBLE} QUALIFY {over} <= 3",
        f"SELECT k, p, rn FROM (SELECT k, p, {over} AS rn FROM {TUMBLE}) WHERE rn <= 3",
        f"SELECT * FROM (SELECT k, p, {over} AS rn FROM {TUMBLE}) AS t WHERE t.rn < 4",
        f"WITH t AS (SELECT k, p, {over} AS rn FROM {TUMBLE}) SELECT k, p, rn FROM t WHERE 3 >= rn",
    ]
    rankings = {parse(text, STREAMS).ranking for text in texts}
    assert [str(ranking) for ranking in rankings] == [
        "keep the first 3 of each a.window_end, WINDOW(event_time, '10 SECONDS') by a.p DESC, a.k DESC"
    ]


def test_ties_are_decided_by_the_select_that_ranks() -> None:
    text = f"SELECT k FROM (SELECT p, k, ts, {OVER} AS rn FROM a [NOW]) AS t WHERE rn <= 3"
    assert [str(item) for item in parse(text, STREAMS).ranking.order] == ["a.p", "a.k", "a.ts"]


def test_streams_of_a_ranked_select_get_the_default_window() -> None:
    text = f"SELECT k FROM (SELECT k, {OVER} AS rn FROM a) AS t WHERE rn <= 3"
    assert "FROM a [RANGE 1 MINUTE]) AS t WHERE" in with_default_window(text, "1 minute")


@pytest.mark.parametrize(
    ("text", "problem", "at"),
    [
        (
            "SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY p DESC) AS rn FROM a) WHERE rn <= 10",
            "ranks of a stream are final only within a window of time, and PARTITION BY has none",
            "ROW_NUMBER() OVER (PARTITION BY k ORDER BY p DESC)",
        ),
        (
            "SELECT k FROM a [NOW] GROUP BY k, WINDOW(event_time, '1 second') "
            "QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY COUNT(*)) = 1",
            "ranks of a stream are final only within a window of time, and PARTITION BY has none",
            "ROW_NUMBER() OVER (PARTITION BY k ORDER BY COUNT(*))",
        ),
        (
            f"SELECT k, {OVER} AS rn FROM a [NOW]",
            "ROW_NUMBER() needs a limit of at most 100,000: results with higher numbers are dropped",
            OVER,
        ),
        (
            f"SELECT k FROM a [NOW] QUALIFY {OVER} < 1",
            "no number of a row meets these conditions",
            OVER,
        ),
        (
            f"SELECT k FROM a [NOW] QUALIFY {OVER} <= k",
            "the number of a row is compared with a whole number",
            "k",
        ),
        (
            "SELECT k FROM a [NOW] QUALIFY ROW_NUMBER() OVER (PARTITION BY WINDOW(event_time, '1 second')) = 1",
            "ROW_NUMBER() needs an ORDER BY",
            "ROW_NUMBER() OVER (PARTITION BY WINDOW(event_time, '1 second'))",
        ),
        (
            f"SELECT tags FROM a [NOW] QUALIFY {OVER} <= 3",
            "ROW_NUMBER() orders results by all columns of its SELECT, and a.tags, which is list<item: string>, has no "
            "order",
            "tags",
        ),
        (
            f"SELECT rn + 1 AS x FROM (SELECT k, {OVER} AS rn FROM a [NOW]) WHERE rn <= 3",
            "ROW_NUMBER() cannot be part of an expression",
            OVER,
        ),
        (
            f"SELECT q FROM (SELECT k, {OVER} AS rn FROM a [NOW]) WHERE rn <= 3",
            "the SELECT in brackets has no column 'q'",
            "q",
        ),
        (
            f"SELECT COUNT(*) AS c FROM (SELECT k, {OVER} AS rn FROM a [NOW]) AS t WHERE rn <= 3",
            "groups of ranked results read them as a stream",
            "COUNT(*) AS c",
        ),
        (
            f"SELECT DISTINCT k FROM a [NOW] QUALIFY {OVER} <= 3",
            "DISTINCT cannot be combined with ROW_NUMBER()",
            OVER,
        ),
        (
            f"SELECT x.k FROM {TUMBLE} AS x LEFT JOIN b [NOW] AS y ON x.k = y.k "
            "QUALIFY ROW_NUMBER() OVER (PARTITION BY x.window_end ORDER BY x.p) <= 3",
            "beside outer, semi and anti joins, ranks are within windows of the event time of results",
            "ROW_NUMBER() OVER (PARTITION BY x.window_end ORDER BY x.p)",
        ),
        (
            "SELECT k, RANK() OVER (PARTITION BY k ORDER BY p) AS r FROM a [NOW]",
            "window functions (OVER) other than ROW_NUMBER() are not supported",
            "RANK() OVER (PARTITION BY k ORDER BY p)",
        ),
        (
            "SELECT ROW_NUMBER() OVER (PARTITION BY window_start ORDER BY p) AS r",
            "ranks of a stream are final only within a window of time, and PARTITION BY has none",
            "ROW_NUMBER() OVER (PARTITION BY window_start ORDER BY p)",
        ),
    ],
)
def test_refusals_name_the_place_and_the_reason(text: str, problem: str, at: str) -> None:
    with pytest.raises(QueryError) as raised:
        parse(text, STREAMS)
    assert raised.value.problem == problem
    assert raised.value.hint
    span = raised.value.span
    assert span is not None
    assert text[span.start : span.end] == at


def test_over_a_network_ranks_are_refused() -> None:
    network = Topology.from_links([("x", "y", 1.0)])
    known = Statistics(rates={"a": 1}, sites={"a": "x"})
    with pytest.raises(PlanningError, match=r"queries with ROW_NUMBER\(\) run at one site"):
        braid.plan(f"SELECT k FROM a [RANGE 1 SECOND] QUALIFY {OVER} <= 3", known, network)
