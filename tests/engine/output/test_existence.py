"""Existence tests give the oracle's result, whatever the plan, the batches, the plan changes and the interruptions."""

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import braid
from braid.engine.engine import Engine
from braid.hosts.local.streams import LocalStreams
from braid.language import bind, parse
from braid.model.plan import Plan
from braid.planning.lowering.one_site import lower
from braid.runtime.arrival import steps
from braid.testing import Case, assert_same_rows, oracle, without_late_rows
from braid.testing.generators import random_existence
from tests.engine.conftest import check_random_changes
from tests.engine.output.conftest import interrupted

SECOND = 1_000_000


def check(case: Case, actual: pa.Table, description: object) -> None:
    expected = oracle(case.text, without_late_rows(case), time=case.time)
    assert_same_rows(actual, expected, message=f"{description}\n{case!r}")


def check_seed(seed: int) -> None:
    check_random_changes(random_existence(seed), seed)


@pytest.mark.parametrize("seed", range(60))
def test_plan_changes_do_not_change_results(seed: int) -> None:
    check_seed(seed)


@pytest.mark.sweep
def test_sweep() -> None:
    for seed in range(1_000, 11_000):
        check_seed(seed)


@pytest.mark.parametrize("equality", ["b.k = a.k AND", ""], ids=["one key", "none"])
def test_the_matching_row_may_be_found_after_many_others(equality: str) -> None:
    """Each result is compared with a hundred rows, of which one or none matches it."""
    times = pa.array([SECOND] * 100, pa.timestamp("us"))
    streams = {
        "a": pa.table({"ts": times, "k": [1] * 100, "v": range(100)}),
        "b": pa.table({"ts": times, "k": [1] * 100, "w": [7 * row for row in range(100)]}),
    }
    text = f"""SELECT a.v FROM a [RANGE 5 SECONDS]
               WHERE NOT EXISTS (SELECT * FROM b [RANGE 5 SECONDS] WHERE {equality} b.w - a.v = 350)"""
    result = braid.run(text, streams)
    assert 0 < result.num_rows < 100
    assert_same_rows(result, oracle(text, streams))


@pytest.mark.parametrize("seed", range(200, 230))
def test_interruptions_do_not_change_results(seed: int) -> None:
    case = random_existence(seed)
    case = replace(case, batch_rows=case.batch_rows or 3)
    check(case, interrupted(case, seed), "interrupted")


def table(*rows: tuple[Any, ...]) -> pa.Table:
    """A stream of rows, each given by its time in seconds, its key and a number."""
    times, keys, numbers = zip(*rows, strict=True) if rows else ((), (), ())
    return pa.table(
        {
            "ts": pa.array([time * SECOND for time in times], pa.timestamp("us")),
            "k": pa.array(keys, pa.int64()),
            "n": pa.array(numbers, pa.int64()),
        }
    )


WITHOUT_MATCH = (
    "SELECT a.n FROM a [RANGE 9 SECONDS] WHERE NOT EXISTS (SELECT * FROM b [RANGE 5 SECONDS] WHERE b.k = a.k)"
)


def numbers(text: str, a: pa.Table, b: pa.Table, **options: Any) -> list[int]:
    """The column `n` of a result, which must be that of the oracle."""
    actual = braid.run(text, {"a": a, "b": b}, **options).column("n").to_pylist()
    assert sorted(oracle(text, {"a": a, "b": b}).column("n").to_pylist()) == sorted(actual)
    return sorted(actual)


def test_only_rows_alive_at_the_event_time_of_a_result_match_it() -> None:
    """A row is alive from its start on, and not at its end any more."""
    for start, expected in ((10, []), (6, []), (5, [7]), (11, [7])):
        assert numbers(WITHOUT_MATCH, table((10, 1, 7)), table((start, 1, 0))) == expected


@pytest.mark.parametrize("batch_rows", [1, 2, None])
def test_the_order_of_arrival_does_not_matter(batch_rows: int | None) -> None:
    rows = [(10, 1, 7), (12, 2, 8), (13, 1, 9)]
    matching = [(10, 1, 0), (13, 3, 0), (11, 2, 0)]
    for a, b in itertools.product(itertools.permutations(rows), itertools.permutations(matching)):
        assert numbers(WITHOUT_MATCH, table(*a), table(*b), batch_rows=batch_rows, lateness="1 minute") == []
    assert numbers(WITHOUT_MATCH, table(*rows), table((10, 3, 0)), batch_rows=batch_rows) == [7, 8, 9]


def test_null_matches_nothing() -> None:
    assert numbers(WITHOUT_MATCH, table((1, None, 7)), table((1, None, 0))) == [7]
    assert numbers(WITHOUT_MATCH.replace("=", "<=>"), table((1, None, 7)), table((1, None, 0))) == []


def test_a_late_row_matches_nothing() -> None:
    a, b = table((1, 1, 7), (30, 2, 8)), table((20, 9, 0), (1, 1, 0))
    assert braid.run(WITHOUT_MATCH, {"a": a, "b": b}, batch_rows=1).column("n").to_pylist() == [7, 8]


def test_results_wait_for_the_tested_stream_but_not_longer() -> None:
    arrivals = LocalStreams(
        {"a": table((1, 1, 7), (2, 2, 8), (9, 3, 9)), "b": table((1, 5, 0), (2, 5, 0), (4, 5, 0))}, "ts", "0 s"
    )
    engine = Engine(lower(Plan.of(bind(parse(WITHOUT_MATCH), arrivals), None)))
    emitted, waiting = [], []
    for segments in steps(arrivals.read, 1, []):
        emitted.append([row["n"] for batch in engine.step(segments) for row in batch.to_pylist()])
        waiting.append(engine.counts().waiting)
    assert (emitted, waiting) == ([[], [], [7]], [1, 2, 2])
    assert [row["n"] for batch in engine.finish() for row in batch.to_pylist()] == [8, 9]


def test_the_tested_window_forgets_expired_rows() -> None:
    rows = table(*((second, second % 7, second) for second in range(400)))
    arrivals = LocalStreams({"a": rows, "b": rows}, "ts", "0 s")
    engine = Engine(lower(Plan.of(bind(parse(WITHOUT_MATCH), arrivals), None)))
    for segments in steps(arrivals.read, 10, []):
        engine.step(segments)
        assert engine.counts().streams["b"].held <= 30
        assert engine.counts().waiting <= 20


def without_match(a: pa.Table, b: pa.Table) -> list[int]:
    """The column `n` of the rows of `a` that EXCEPT on keys keeps, by its definition."""

    def matches(left: dict[str, Any], right: dict[str, Any]) -> bool:
        return left["k"] == right["k"] and 0 <= (left["ts"] - right["ts"]).total_seconds() < 5

    rows, others = a.to_pylist(), b.to_pylist()
    return sorted(row["n"] for row in rows if not any(matches(row, other) for other in others))


def random_table(generator: np.random.Generator) -> pa.Table:
    times, keys = np.sort(generator.integers(0, 60, 40)), generator.integers(0, 6, 40)
    return table(*((int(times[row]), int(keys[row]), row) for row in range(40)))


@pytest.mark.parametrize("seed", range(5))
def test_except_against_its_definition(seed: int) -> None:
    generator = np.random.default_rng(seed)
    a, b = random_table(generator), random_table(generator)
    text = "SELECT k FROM a [NOW] EXCEPT SELECT k FROM b [RANGE 5 SECONDS]"
    expected = [row["k"] for row in a.to_pylist() if row["n"] in without_match(a, b)]
    assert 0 < len(expected) < 40
    for batch_rows in (None, 3):
        keys = braid.run(text, {"a": a, "b": b}, batch_rows=batch_rows).column("k").to_pylist()
        assert sorted(keys) == sorted(expected)
    exists = "SELECT n FROM a [NOW] WHERE NOT EXISTS (SELECT * FROM b [RANGE 5 SECONDS] WHERE b.k = a.k)"
    assert numbers(exists, a, b) == without_match(a, b)


def test_groups_of_results_without_match() -> None:
    text = "SELECT k, COUNT(*) AS n FROM a [NOW] WHERE NOT EXISTS (SELECT * FROM b [NOW] WHERE b.n = a.n) GROUP BY k"
    a, b = table((1, 1, 1), (2, 1, 2), (3, 2, 3)), table((2, 0, 2), (3, 0, 4))
    groups = braid.run(text, {"a": a, "b": b})
    assert sorted(groups.to_pylist(), key=lambda group: group["k"]) == [{"k": 1, "n": 1}, {"k": 2, "n": 1}]
    assert_same_rows(groups, oracle(text, {"a": a, "b": b}))


def test_a_query_with_an_existence_test_adapts() -> None:
    case = random_existence(11)
    actual = braid.run(case.text, case.streams, **(case.options | {"batch_rows": 2, "adapt": True}))
    check(Case(case.text, case.streams, case.time, case.lateness, case.plan, 2), actual, "adapting")


def test_explain_shows_existence_tests() -> None:
    explained = Plan.of(parse(WITHOUT_MATCH), None).explain()
    assert explained.splitlines()[-1] == "then NOT EXISTS (b [RANGE 5 SECONDS] WHERE b.k = a.k)"


def test_queries_with_existence_tests_are_not_placed_on_a_topology() -> None:
    with pytest.raises(braid.PlanningError, match="run at one site"):
        braid.plan(WITHOUT_MATCH, braid.Statistics(), braid.Topology.from_links([("x", "y", 1.0)]))
