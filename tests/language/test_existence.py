"""EXISTS, IN and EXCEPT: the existence tests that they become, and the forms that are refused."""

import pyarrow as pa
import pytest

import braid
from braid import QueryError
from braid.model.stream import Stream

SCHEMA = pa.schema({"ts": pa.timestamp("us"), "k": pa.int64(), "v": pa.string()})
STREAMS = {name: Stream(name, SCHEMA, "ts") for name in "abc"}


def existences(text: str) -> list[str]:
    return [str(existence) for existence in braid.parse(text, STREAMS).existences]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT k FROM a [NOW] EXCEPT SELECT k FROM b [ROWS 2]", ["b [ROWS 2] WHERE a.k = b.k"]),
        ("SELECT a.k + 1 AS x FROM a [NOW], c [NOW] MINUS (SELECT k FROM b [NOW])", ["b [NOW] WHERE (a.k + 1) = b.k"]),
        (
            "SELECT k, v FROM a [NOW] EXCEPT SELECT k, v FROM b [NOW] WHERE v = 'x' EXCEPT SELECT k, v FROM c [NOW]",
            ["b [NOW] WHERE b.v = 'x' AND a.k = b.k AND a.v = b.v", "c [NOW] WHERE a.k = c.k AND a.v = c.v"],
        ),
        (
            "SELECT v FROM a [NOW] WHERE k > 1 AND (NOT EXISTS (SELECT 1 FROM b [NOW] x WHERE x.k = a.k AND v = 'y'))",
            ["b [NOW] AS x WHERE x.k = a.k AND x.v = 'y'"],
        ),
        ("SELECT * FROM a [NOW] WHERE NOT EXISTS (SELECT x.* FROM a [UNBOUNDED] AS x)", ["a [UNBOUNDED] AS x"]),
        (
            "SELECT a.k FROM a [NOW] JOIN c [NOW] ON a.k = c.k AND NOT EXISTS (SELECT * FROM b [NOW] WHERE b.k > c.k)",
            ["b [NOW] WHERE b.k > c.k"],
        ),
    ],
)
def test_negated_tests(text: str, expected: list[str]) -> None:
    assert existences(text) == [f"NOT EXISTS ({existence})" for existence in expected]
    assert {output.name for output in braid.parse(text, STREAMS).outputs} <= {"k", "v", "x", "ts"}  # type: ignore[union-attr]


EXISTS = "SELECT k FROM a [NOW] WHERE "


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("EXISTS (SELECT * FROM b [NOW] WHERE b.k = a.k)", "EXISTS (b [NOW] WHERE b.k = a.k)"),
        ("k = 1 AND (EXISTS (SELECT 1 FROM b [NOW]))", "EXISTS (b [NOW])"),
        ("k IN (SELECT k FROM b [NOW])", "EXISTS (b [NOW] WHERE a.k = b.k)"),
        ("k + 1 IN (SELECT b.k FROM b [NOW] WHERE v = 'x')", "EXISTS (b [NOW] WHERE b.v = 'x' AND (a.k + 1) = b.k)"),
        ("NOT k IN (SELECT k FROM b [NOW])", "NOT EXISTS (b [NOW] WHERE COALESCE((a.k = b.k), TRUE))"),
        ("k NOT IN ((SELECT k FROM b [NOW]))", "NOT EXISTS (b [NOW] WHERE COALESCE((a.k = b.k), TRUE))"),
    ],
)
def test_exists_and_in(condition: str, expected: str) -> None:
    assert existences(EXISTS + condition) == [expected]


@pytest.mark.parametrize(
    ("text", "problem", "hint"),
    [
        (f"{EXISTS}k = 1 OR EXISTS (SELECT * FROM b [NOW])", "EXISTS cannot stand here", "between ANDs"),
        (f"{EXISTS}k = 1 OR k IN (SELECT k FROM b [NOW])", "IN (SELECT ..) cannot stand here", "between ANDs"),
        (f"{EXISTS}(k, v) IN (SELECT k FROM b [NOW])", "the subquery of IN selects 2 columns", "SELECT b.k, b.l"),
        (f"{EXISTS}(k, v) IN (SELECT * FROM b [NOW])", "the subquery of IN selects 2 columns", "SELECT b.k, b.l"),
        (f"{EXISTS}k IN (SELECT k, v FROM b [NOW])", "the subquery of IN selects one column", "SELECT b.k"),
        (f"{EXISTS}k IN (SELECT * FROM b [NOW])", "the subquery of IN selects one column", "SELECT b.k"),
        (f"{EXISTS}k IN (SELECT v FROM b [NOW])", "cannot compare a.k", "cast one of them"),
        (f"{EXISTS}k IN (SELECT k FROM b [NOW] JOIN c [NOW] ON b.k = c.k)", "test rows of one stream only", "FROM b"),
        (f"{EXISTS}k = 1 OR NOT EXISTS (SELECT * FROM b [NOW])", "EXISTS cannot stand here", "between ANDs"),
        (f"{EXISTS}NOT NOT EXISTS (SELECT * FROM b [NOW])", "EXISTS cannot stand here", "between ANDs"),
        ("SELECT NOT EXISTS (SELECT * FROM b [NOW]) FROM a [NOW]", "EXISTS cannot stand here", "between ANDs"),
        (
            f"{EXISTS}NOT EXISTS (SELECT * FROM b [NOW] WHERE NOT EXISTS (SELECT * FROM c [NOW]))",
            "EXISTS cannot stand here",
            "between ANDs",
        ),
        (
            f"{EXISTS}NOT EXISTS (SELECT * FROM b [NOW], c [NOW])",
            "EXISTS, IN and EXCEPT test rows of one stream only",
            "FROM b",
        ),
        (f"{EXISTS}NOT EXISTS (SELECT 1)", "EXISTS, IN and EXCEPT test rows of one stream only", "FROM b"),
        (f"{EXISTS}NOT EXISTS (SELECT COUNT(*) FROM b [NOW])", "the aggregate COUNT cannot stand here", "SELECT"),
        (f"{EXISTS}NOT EXISTS (SELECT k FROM b [NOW] GROUP BY k)", "GROUP is not supported", ""),
        (f"{EXISTS}NOT EXISTS (SELECT k FROM b [NOW] LIMIT 1)", "LIMIT is not supported", ""),
        (f"{EXISTS}NOT EXISTS (SELECT * FROM b)", "stream 'b' has no window", "b [RANGE 5 MINUTES]"),
        (f"{EXISTS}NOT EXISTS (SELECT * FROM a [NOW])", "two streams are called 'a'", "another name"),
        (f"{EXISTS}NOT EXISTS (SELECT * FROM d [NOW])", "there is no stream 'd'", ""),
        (f"{EXISTS}NOT EXISTS (SELECT * FROM b [NOW] WHERE b.q = 1)", "stream 'b' has no column 'q'", "known"),
        (
            f"{EXISTS}NOT EXISTS (SELECT * FROM b [NOW] WHERE q = 1)",
            "no stream of this query has a column 'q'",
            "known",
        ),
        (f"{EXISTS}NOT EXISTS (SELECT * FROM b [NOW] WHERE c.k = 1)", "'c' is not a stream of this query", "known"),
        (f"{EXISTS}NOT EXISTS (SELECT * FROM b [NOW] WHERE b.k)", "a condition is true or false", "compare it"),
        ("SELECT b.k FROM a [NOW] WHERE NOT EXISTS (SELECT * FROM b [NOW])", "'b' is not a stream of this query", ""),
        ("SELECT k FROM a [NOW] EXCEPT ALL SELECT k FROM b [NOW]", "EXCEPT ALL is not supported", "write EXCEPT"),
        ("SELECT k FROM a [NOW] EXCEPT DISTINCT SELECT k FROM b [NOW]", "EXCEPT DISTINCT is not", "write EXCEPT"),
        ("SELECT * FROM a [NOW] EXCEPT SELECT k FROM b [NOW]", "so * is not allowed", "name the columns"),
        ("SELECT k, v FROM a [NOW] EXCEPT SELECT k FROM b [NOW]", "EXCEPT compares 2 with 1 columns", "as many"),
        ("SELECT k FROM a [NOW], c [NOW] EXCEPT SELECT k FROM b [NOW]", "which stream does column 'k'", "stream.k"),
        ("SELECT k FROM a [NOW] EXCEPT SELECT a.k FROM b [NOW]", "'a' is not a stream of this side", "NOT EXISTS"),
        (
            "SELECT COUNT(*) FROM a [NOW] EXCEPT SELECT k FROM b [NOW]",
            "EXCEPT cannot be combined with GROUP BY or aggregates",
            "NOT EXISTS",
        ),
        ("SELECT k FROM a [NOW] EXCEPT SELECT k FROM a [NOW]", "two streams are called 'a'", "another name"),
        ("SELECT k FROM a [NOW] EXCEPT SELECT b.k FROM b [NOW], c [NOW]", "test rows of one stream only", ""),
        ("SELECT k FROM a [NOW] EXCEPT (SELECT k FROM b [NOW] EXCEPT SELECT k FROM c [NOW])", "right side", ""),
        ("SELECT k FROM a [NOW] EXCEPT SELECT k FROM b [NOW] LIMIT 3", "LIMIT is not supported", ""),
        ("SELECT k FROM a [NOW] EXCEPT SELECT v FROM b [NOW]", "cannot compare a.k", "cast one of them"),
    ],
)
def test_refused_forms(text: str, problem: str, hint: str) -> None:
    with pytest.raises(QueryError) as caught:
        braid.parse(text, STREAMS)
    assert problem in caught.value.problem
    assert hint in (caught.value.hint or "")
