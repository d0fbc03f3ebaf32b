"""Plans check themselves; `explain` shows the probes and the expected rows."""

from functools import reduce

import pyarrow as pa
import pytest

import braid
from braid.errors import PlanError
from braid.model.plan import Plan
from braid.model.statistics import Statistics

QUERY = braid.parse(
    """SELECT f.gate FROM flights [RANGE 5 MINUTES] AS f, bags [RANGE 1 MINUTE] AS b, checkins [ROWS 100] AS c
       WHERE f.num = b.flight AND b.bag = c.bag AND c.desk < f.gate AND f.carrier = 'DL'"""
)


def test_the_default_order_is_that_of_from_with_joined_streams_first() -> None:
    chain = braid.parse("SELECT a.x FROM a [NOW], b [NOW], c [NOW] WHERE a.x = b.x AND b.y = c.y")
    assert Plan.in_text_order(chain).sequences == {"a": ("b", "c"), "b": ("a", "c"), "c": ("b", "a")}


@pytest.mark.parametrize(
    ("sequences", "problem"),
    [
        ({"f": ["b", "c"], "b": ["f", "c"]}, "the plan has no probe sequence for head 'c'; add one"),
        ({"g": ["b"]}, "the plan has a head 'g', which is not a stream of the query; known: f, b, c"),
        (
            {"f": ["b"], "b": ["f", "c"], "c": ["f", "b"]},
            "the sequence of head 'f' must probe each of b, c once, not b",
        ),
        (
            {"f": ["b", "b"], "b": ["f", "c"], "c": ["f", "b"]},
            "the sequence of head 'f' must probe each of b, c once, not b, b",
        ),
        ({"f": ["f", "b"], "b": [], "c": []}, "the sequence of head 'f' probes 'f'; a head does not probe itself"),
        ({"f": ["x", "b"], "b": [], "c": []}, "the sequence of head 'f' probes 'x'; known: b, c"),
        ({"f": "bc"}, "the probe sequence of head 'f' is a list of streams, not 'bc'"),
        ([("f", "b")], "a join has at least two inputs, not 1"),
        (
            reduce(lambda tree, _: (tree, "f"), range(5_000), "b"),
            "the tree nests joins more than 3 deep; every join must add a stream",
        ),
    ],
)
def test_a_plan_that_does_not_fit_its_query_is_refused(sequences: object, problem: str) -> None:
    with pytest.raises(PlanError) as caught:
        Plan.of(QUERY, sequences)  # type: ignore[arg-type]
    assert str(caught.value) == problem


FIGURES = Statistics(
    rates={"f": 5, "b": 10, "c": 4},
    selectivities={"f.num = b.flight": 0.01, "b.bag = c.bag": 0.02, "c.desk < f.gate": 0.5},
)


def test_explain_shows_order_predicates_and_rows() -> None:
    assert Plan.in_text_order(QUERY).explain(FIGURES) == EXPLAINED


EXPLAINED = """\
join of 3 streams
  flights [RANGE 5 MINUTES] AS f
    where f.carrier = 'DL'
  bags [RANGE 1 MINUTE] AS b
  checkins [ROWS 100] AS c
new rows of f: about 5 rows/s
  1. probe b on f.num = b.flight: about 30 rows/s
  2. probe c on b.bag = c.bag and c.desk < f.gate: about 30 rows/s
new rows of b: about 10 rows/s
  1. probe f on f.num = b.flight: about 150 rows/s
  2. probe c on b.bag = c.bag and c.desk < f.gate: about 150 rows/s
new rows of c: about 4 rows/s
  1. probe f on c.desk < f.gate: about 3,000 rows/s
  2. probe b on f.num = b.flight and b.bag = c.bag: about 360 rows/s"""


def test_explain_shows_the_kept_combinations_of_a_tree() -> None:
    assert Plan.of(QUERY, (("f", "c"), "b")).explain(FIGURES) == EXPLAINED_TREE
    assert "probe (f ⋈ c) on f.num = b.flight and b.bag = c.bag: unknown rows/s" in Plan.of(
        QUERY, (("f", "c"), "b")
    ).explain(Statistics(rates={"b": 10}))
    assert "kept" not in Plan.of(QUERY, ("f", "c", "b")).explain()


EXPLAINED_TREE = """\
join of 3 streams
  flights [RANGE 5 MINUTES] AS f
    where f.carrier = 'DL'
  bags [RANGE 1 MINUTE] AS b
  checkins [ROWS 100] AS c
  kept: (f ⋈ c)
new rows of f: about 5 rows/s
  1. probe c on c.desk < f.gate: about 250 rows/s
  2. probe b on f.num = b.flight and b.bag = c.bag: about 30 rows/s
new rows of b: about 10 rows/s
  1. probe (f ⋈ c) on f.num = b.flight and b.bag = c.bag: about 150 rows/s
new rows of c: about 4 rows/s
  1. probe f on c.desk < f.gate: about 3,000 rows/s
  2. probe b on f.num = b.flight and b.bag = c.bag: about 360 rows/s"""


def test_explain_shows_unknown_rates() -> None:
    assert "probe b on f.num = b.flight: unknown rows/s" in Plan.in_text_order(QUERY).explain()


def test_a_selectivity_is_found_whichever_side_comes_first() -> None:
    query = braid.parse("SELECT a.x FROM a [ROWS 10], b [ROWS 10] WHERE b.x = a.x AND b.y > a.y")
    known = Statistics(rates={"a": 1, "b": 1}, selectivities={"b.x = a.x": 0.5, "a.y < b.y": 0.5})
    assert "probe b on a.x = b.x and b.y > a.y: about 2.5 rows/s" in Plan.in_text_order(query).explain(known)


def test_plans_and_statistics_are_immutable() -> None:
    plan = Plan.in_text_order(QUERY)
    with pytest.raises(TypeError):
        plan.sequences["f"] = ("b",)  # type: ignore[index]
    with pytest.raises(TypeError):
        Statistics(rates={"f": 1}).rates["f"] = -1  # type: ignore[index]


def test_explain_keeps_the_brackets_of_a_condition_beside_others() -> None:
    query = braid.parse(
        """SELECT COUNT(*) AS n FROM a [NOW], b [NOW]
           WHERE a.x = b.x AND (a.z > b.z OR a.w = 1) AND (a.v = 1 OR a.v = 2)
             AND NOT EXISTS (SELECT * FROM c [NOW] WHERE c.x = a.x AND (c.y = 1 OR c.y = 2))
           HAVING COUNT(*) > 3 OR MAX(a.x) > 2"""
    )
    explained = Plan.in_text_order(query).explain()
    assert "    where (a.v = 1) OR (a.v = 2)\n" in explained
    assert "probe b on a.x = b.x and ((a.z > b.z) OR (a.w = 1)): " in explained
    assert "NOT EXISTS (c [NOW] WHERE c.x = a.x AND ((c.y = 1) OR (c.y = 2)))" in explained
    assert explained.endswith("having (COUNT(*) > 3) OR (MAX(a.x) > 2)")


BANDED = braid.parse(
    "SELECT a.k FROM a [NOW], b [NOW], c [NOW] WHERE a.k = b.k AND abs(a.p - b.p) <= 5 AND b.x = c.x",
    {
        name: braid.Stream(
            name, pa.schema({"ts": pa.timestamp("us"), **dict.fromkeys(("k", "p", "x"), pa.int64())}), "ts"
        )
        for name in "abc"
    },
)


def test_access_paths_are_part_of_a_plan() -> None:
    default = Plan.of(BANDED, {"a": ["b", "c"], "b": ["a", "c"], "c": ["b", "a"]})
    by_key = Plan.of(BANDED, {"a": [{"b": "key"}, "c"], "b": ["a", "c"], "c": ["b", {"a": "band"}]})
    assert by_key != default
    assert by_key.paths == {("a", "b"): "key", ("c", "a"): "band"}
    assert Plan.of(BANDED, by_key.written) == by_key
    assert Plan.of(BANDED, {"a": [{"b": "key and band"}, "c"], "b": ["a", "c"], "c": ["b", "a"]}) == default
    assert by_key.with_paths({}) == default
    assert "1. probe b on a.k = b.k and ABS((a.p - b.p)) <= 5, by an index of key and band" in default.explain()
    explained = by_key.explain()
    assert (
        "new rows of a: unknown rows/s\n  1. probe b on a.k = b.k and ABS((a.p - b.p)) <= 5, by a key index"
        in explained
    )
    assert "2. probe a on a.k = b.k and ABS((a.p - b.p)) <= 5, by a band index" in explained
    assert "probe c on b.x = c.x: " in explained


def test_heads_can_be_taken_from_another_plan_with_their_access_paths() -> None:
    default = Plan.of(BANDED, {"a": ["b", "c"], "b": ["a", "c"], "c": ["b", "a"]})
    other = Plan.of(BANDED, {"a": [{"b": "key"}, "c"], "b": ["c", "a"], "c": ["b", {"a": "band"}]})
    taken = default.with_orders_of(other, ["a", "b"])
    assert taken == Plan.of(BANDED, {"a": [{"b": "key"}, "c"], "b": ["c", "a"], "c": ["b", "a"]})
    assert taken.with_orders_of(default, ["a", "b"]) == default
    assert (other.steps("a"), other.steps("b")) == ((("b", "key"), "c"), ("c", "a"))


@pytest.mark.parametrize(
    ("step", "problem"),
    [
        ({"b": "scan"}, "new rows of 'a' reach 'b' by key and band or by key or by band, not by 'scan'"),
        ({"b": "hash"}, "not by 'hash'; write one of these, or only the name of the stream"),
        (
            {"b": "key", "c": "key"},
            "a step of head 'a' is a stream, or a stream with its access path such as {'b': 'key'}",
        ),
        ({"b": 7}, "a step of head 'a' is a stream"),
        (7, "a step of head 'a' is a stream"),
    ],
)
def test_an_access_path_that_is_not_possible_is_refused(step: object, problem: str) -> None:
    with pytest.raises(PlanError) as caught:
        Plan.of(BANDED, {"a": [step, "c"], "b": ["a", "c"], "c": ["b", "a"]})  # type: ignore[list-item]
    assert problem in str(caught.value)


def test_without_a_band_only_the_key_index_is_accepted() -> None:
    with pytest.raises(PlanError, match="new rows of 'b' reach 'c' by key, not by 'band'"):
        Plan.of(BANDED, {"a": ["b", "c"], "b": ["a", {"c": "band"}], "c": ["b", "a"]})
