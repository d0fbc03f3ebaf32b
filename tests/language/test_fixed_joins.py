"""Outer, semi and anti joins in the text: what they become, and the mixtures that are refused."""

import pyarrow as pa
import pytest

import braid
from braid import QueryError
from braid.model.output import Output
from braid.model.stream import Stream

SCHEMA = pa.schema({"ts": pa.timestamp("us"), "k": pa.int64(), "v": pa.string()})
STREAMS = {name: Stream(name, SCHEMA, "ts") for name in "abc"}


@pytest.mark.parametrize(
    ("joins", "expected"),
    [
        ("LEFT JOIN b [NOW] ON a.k = b.k", ["LEFT JOIN b [NOW] ON a.k = b.k"]),
        ("LEFT OUTER JOIN b [NOW] ON a.k = b.k", ["LEFT JOIN b [NOW] ON a.k = b.k"]),
        ("RIGHT JOIN b [NOW] AS x ON x.k > a.k", ["RIGHT JOIN b [NOW] AS x ON x.k > a.k"]),
        ("full outer join b [NOW] ON a.k = b.k AND a.v = 'x'", ["FULL JOIN b [NOW] ON a.k = b.k AND a.v = 'x'"]),
        ("LEFT SEMI JOIN b [ROWS 2] ON a.k = b.k", ["LEFT SEMI JOIN b [ROWS 2] ON a.k = b.k"]),
        ("SEMI JOIN b [NOW] ON a.k = b.k", ["LEFT SEMI JOIN b [NOW] ON a.k = b.k"]),
        ("ANTI JOIN b [NOW] ON a.k = b.k", ["LEFT ANTI JOIN b [NOW] ON a.k = b.k"]),
        ("LEFT JOIN b [NOW]", ["LEFT JOIN b [NOW] ON TRUE"]),
        (
            "FULL JOIN c [NOW] ON a.k = c.k LEFT ANTI JOIN b [NOW] ON a.k = b.k",
            ["FULL JOIN c [NOW] ON a.k = c.k", "LEFT ANTI JOIN b [NOW] ON a.k = b.k"],
        ),
        (
            "CROSS JOIN c [NOW] LEFT JOIN b [NOW] ON b.k = c.k AND b.k = a.k",
            ["LEFT JOIN b [NOW] ON b.k = c.k AND b.k = a.k"],
        ),
    ],
)
def test_fixed_joins(joins: str, expected: list[str]) -> None:
    query = braid.parse(f"SELECT a.k FROM a [NOW] {joins}", STREAMS)
    assert [str(join) for join in query.fixed_joins] == expected
    assert query.predicates == query.filters == ()


def test_a_star_shows_the_streams_in_the_order_of_the_text_but_not_those_of_semi_joins() -> None:
    text = "SELECT * FROM a [NOW] LEFT SEMI JOIN b [NOW] ON a.k = b.k LEFT JOIN c [NOW] ON a.k = c.k"
    selected = [str(expression) for expression in braid.parse(text, STREAMS).selected]
    assert selected == [f"{alias}.{name}" for alias in "ac" for name in SCHEMA.names]


@pytest.mark.parametrize(
    ("kind", "predicates", "filters"),
    [("LEFT", ["a.k > 1"], ["b.k < 5"]), ("FULL", [], ["a.k > 1", "b.k < 5"])],
)
def test_where_on_the_inner_joins_comes_first_if_that_changes_nothing(
    kind: str, predicates: list[str], filters: list[str]
) -> None:
    text = f"SELECT a.k FROM a [NOW] {kind} JOIN b [NOW] ON a.k = b.k WHERE a.k > 1 AND b.k < 5"
    query = braid.parse(text, STREAMS)
    assert [str(predicate) for predicate in query.predicates] == predicates
    assert [str(predicate) for predicate in query.filters] == filters


@pytest.mark.parametrize(
    ("text", "problem", "at", "hint"),
    [
        (
            "a [NOW], c [NOW] LEFT JOIN b [NOW] ON a.k = b.k",
            "'a' cannot be used in this ON",
            "a",
            "a comma joins later",
        ),
        (
            "a [NOW] LEFT JOIN b [NOW] ON a.k = b.k, c [NOW] LEFT JOIN a [NOW] AS d ON c.k = d.k",
            "outer, semi and anti joins on both sides of a comma",
            "c [NOW]",
            "one after the other",
        ),
        (
            "a [NOW] SEMI JOIN b [NOW] ON a.k = b.k JOIN (c [NOW] LEFT JOIN a [NOW] AS d ON c.k = d.k) ON a.k = c.k",
            "JOIN of two entries that both have outer, semi or anti joins",
            "(c [NOW] LEFT JOIN a [NOW] AS d ON c.k = d.k)",
            "one after the other",
        ),
        (
            "(a [NOW] JOIN b [NOW] ON a.k = b.k) LEFT JOIN (c [NOW] JOIN a [NOW] AS d ON c.k = d.k) ON a.k = c.k",
            "LEFT JOIN takes one stream on one side",
            "(c [NOW] JOIN a [NOW] AS d ON c.k = d.k)",
            "one after the other",
        ),
        (
            "a [UNBOUNDED] LEFT JOIN b [NOW] ON a.k = b.k FULL OUTER JOIN c [NOW] ON a.k = c.k",
            "how long rows live before the FULL JOIN of 'c' is not known",
            "c [NOW]",
            "rows of LEFT JOIN without a partner come when they end",
        ),
        ("a [NOW] LEFT JOIN b [NOW] USING (k)", "JOIN .. USING is not supported", "k", "ON a.k = b.k"),
        ("a [NOW] NATURAL LEFT JOIN b [NOW]", "NATURAL LEFT JOIN is not supported", "NATURAL LEFT JOIN", "ON"),
        ("a [NOW] LEFT JOIN b [NOW] ON c.k = b.k LEFT JOIN c [NOW]", "'c' cannot be used in this ON", "c", "a, b"),
        (
            "a [NOW] SEMI JOIN b [NOW] ON a.k = b.k LEFT JOIN c [NOW] ON c.k = b.k",
            "'b' cannot be used in this ON",
            "b",
            "joins, a, c",
        ),
        ("a [NOW] JOIN c [NOW] ON a.k = b.k LEFT JOIN b [NOW]", "'b' cannot be used here", "b.k", "what follows"),
        ("a [ROWS 3] LEFT JOIN b [NOW]", "'a' before LEFT JOIN has a window that counts", "a [ROWS 3]", "RANGE"),
        ("a [NOW] RIGHT JOIN b [ROWS 2]", "'b' in RIGHT JOIN has a window that counts rows", "b [ROWS 2]", "RANGE"),
        (
            "a [NOW] LEFT JOIN b [ROWS 2] ANTI JOIN c [NOW] ON a.k = c.k",
            "'b' before LEFT ANTI JOIN has a window that counts rows",
            "b [ROWS 2]",
            "when a row ends",
        ),
        (
            "a [NOW] SEMI JOIN b [NOW] ANTI JOIN c [ROWS 2] ON a.k = c.k",
            "'c' after LEFT SEMI JOIN has a window that counts rows",
            "c [ROWS 2]",
            "EXISTS",
        ),
        ("a [NOW] LEFT JOIN b [NOW] ON EXISTS (SELECT 1 FROM c [NOW])", "cannot stand in the ON of", None, "WHERE"),
        ("a [NOW] LEFT JOIN b [NOW] ON k = b.k", "column 'k' is in several streams: a, b", "k", "a.k or b.k"),
        ("a [NOW] LEFT JOIN a [NOW] ON TRUE", "two streams are called 'a'", "a [NOW]", "another name"),
        ("a [NOW] LEFT JOIN b ON TRUE", "stream 'b' has no window", "b", "[RANGE 5 MINUTES]"),
        ("a [NOW] LEFT JOIN d [NOW] ON TRUE", "there is no stream 'd'", "d", ""),
        ("a [NOW] LEFT JOIN b [NOW] ON a.k", "a condition is true or false", "a.k", "compare it"),
    ],
)
def test_refused_mixtures(text: str, problem: str, at: str | None, hint: str) -> None:
    full = f"SELECT a.k FROM {text}"
    with pytest.raises(QueryError) as caught:
        braid.parse(full, STREAMS)
    assert problem in caught.value.problem
    assert hint in (caught.value.hint or "")
    span = caught.value.span
    assert span is not None
    assert at is None or full[span.start : span.end] == at


def test_the_stream_of_a_semi_join_is_not_selected() -> None:
    with pytest.raises(QueryError, match="'b' cannot be used here") as caught:
        braid.parse("SELECT b.k FROM a [NOW] LEFT SEMI JOIN b [NOW] ON a.k = b.k", STREAMS)
    assert "its own ON: write conditions there; to select its columns, use JOIN" in (caught.value.hint or "")


def test_explain_shows_fixed_joins_in_the_order_of_the_text() -> None:
    text = "SELECT a.k FROM a [NOW] RIGHT JOIN b [NOW] ON a.k = b.k LEFT JOIN c [NOW] ON b.k = c.k WHERE b.k > 1"
    explained = braid.Plan.of(braid.parse(text, STREAMS), None).explain()
    assert explained.splitlines()[-4:] == [
        "then in this order, because what is joined before decides which rows have a partner:",
        "then RIGHT JOIN b [NOW] ON a.k = b.k",
        "then LEFT JOIN c [NOW] ON b.k = c.k",
        "then where b.k > 1",
    ]


@pytest.mark.parametrize(
    ("text", "inner", "fixed", "columns"),
    [
        (
            "a [NOW] LEFT JOIN b [NOW] ON a.k = b.k JOIN c [NOW] ON a.k = c.k",
            "a",
            ["LEFT JOIN b [NOW] ON a.k = b.k", "JOIN c [NOW] ON a.k = c.k"],
            "abc",
        ),
        (
            "a [NOW], b [NOW] LEFT JOIN c [NOW] ON b.k = c.k WHERE a.k = c.k AND b.k > 1",
            "b",
            ["LEFT JOIN c [NOW] ON b.k = c.k", "JOIN a [NOW] ON a.k = c.k"],
            "abc",
        ),
        (
            "a [NOW] LEFT JOIN (b [NOW] JOIN c [NOW] ON b.k = c.k) ON a.k = b.k",
            "bc",
            ["RIGHT JOIN a [NOW] ON a.k = b.k"],
            "abc",
        ),
        (
            "a [NOW] RIGHT JOIN b [NOW] ON a.k = b.k, c [NOW] WHERE a.k = c.k",
            "a",
            ["RIGHT JOIN b [NOW] ON a.k = b.k", "JOIN c [NOW] ON a.k = c.k"],
            "abc",
        ),
        (
            "a [NOW] ANTI JOIN b [NOW] ON a.k = b.k JOIN (c [NOW] JOIN b [NOW] AS d ON c.k = d.k) ON a.k = c.k",
            "a",
            ["LEFT ANTI JOIN b [NOW] ON a.k = b.k", "JOIN c [NOW] ON a.k = c.k", "JOIN b [NOW] AS d ON c.k = d.k"],
            "acd",
        ),
    ],
)
def test_joins_become_one_after_the_other(text: str, inner: str, fixed: list[str], columns: str) -> None:
    query = braid.parse(f"SELECT * FROM {text}", STREAMS)
    assert query.aliases == tuple(inner)
    assert [str(join).removesuffix(" AND TRUE") for join in query.fixed_joins] == fixed
    assert [str(output.expression)[0] for output in query.outputs if isinstance(output, Output)] == [
        alias for alias in columns for _ in STREAMS["a"].schema.names
    ]
    assert query.filters == ()


def test_a_condition_does_not_move_before_a_join_that_gives_right_rows_alone() -> None:
    text = (
        "SELECT c.k FROM a [NOW] LEFT JOIN b [NOW] ON a.k = b.k JOIN c [NOW] ON a.k = c.k AND b.k > 1 "
        "FULL JOIN b [NOW] AS d ON d.k = c.k WHERE c.k > 2"
    )
    query = braid.parse(text, STREAMS)
    assert [str(predicate) for predicate in query.fixed_joins[1].predicates] == ["a.k = c.k", "b.k > 1"]
    assert [str(predicate) for predicate in query.filters] == ["c.k > 2"]


@pytest.mark.parametrize("kind", ["LEFT", "RIGHT", "FULL", "LEFT SEMI", "LEFT ANTI"])
def test_fixed_joins_run_at_one_site(kind: str) -> None:
    text = f"SELECT a.k FROM a [NOW] {kind} JOIN b [NOW] ON a.k = b.k"
    with pytest.raises(braid.PlanningError, match=f"queries with {kind} JOIN run at one site"):
        braid.plan(text, braid.Statistics(), braid.Topology.from_links([("x", "y", 1.0)]))
