"""Tumbling windows, and rows that know when they end: the results are those of the oracle."""

import re
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import braid
from braid.testing import Case, assert_same_rows, oracle, random_case, without_late_rows
from braid.testing.changes import random_changes
from braid.testing.cluster import run_with_faults
from braid.testing.generators import random_fixed_joins

SECOND = 1_000_000


def tumbling(case: Case) -> Case:
    """The case with tumbling windows instead of ranges."""
    pattern = r"\[range ([0-9]+ [a-z]+)( slide [0-9]+ [a-z]+)?\]"
    return replace(case, text=re.sub(pattern, r"[TUMBLE \1]", case.text, flags=re.IGNORECASE))


def check_tumbling(seed: int) -> None:
    case = tumbling(random_fixed_joins(seed) if seed % 2 else random_case(seed))
    expected = oracle(case.text, without_late_rows(case), time=case.time)
    changes = random_changes(case, seed)
    options = case.options | {"plan": changes.plan, "switches": changes.switches}
    assert_same_rows(braid.run(case.text, case.streams, **options), expected, message=repr(case))


@pytest.mark.parametrize("first", range(0, 100, 20))
def test_tumbling_windows(first: int) -> None:
    for seed in range(first, first + 20):
        check_tumbling(seed)


@pytest.mark.sweep
def test_sweep_of_tumbling_windows() -> None:
    for seed in range(1_000, 11_000):
        check_tumbling(seed)


def test_rows_of_one_tumbling_window_join_and_no_others() -> None:
    """Also those exactly at a boundary, where the next window begins, and those before 1970."""
    times = [-11, -10, -1, 0, 5, 9, 10, 19, 20]
    table = pa.table({"ts": pa.array([second * SECOND for second in times], pa.timestamp("us")), "n": times})
    text = "SELECT a.n AS an, b.n AS bn FROM s [TUMBLE 10 SECONDS] AS a, s [TUMBLE 10 SECONDS] AS b"
    result = braid.run(text, {"s": table})
    expected = {(left, right) for left in times for right in times if left // 10 == right // 10}
    assert set(zip(*result.to_pydict().values(), strict=True)) == expected
    assert result.num_rows == len(expected)


UNTIL = {
    "inner": "SELECT a.n AS an, b.n AS bn FROM a [UNTIL ends] AS a, b [RANGE 3 SECONDS] AS b WHERE a.k = b.k",
    "theta": "SELECT a.n AS an, b.n AS bn FROM a [UNTIL ENDS] AS a, b [UNTIL ends] AS b WHERE a.k < b.k",
    "left": "SELECT a.n AS an, b.n AS bn FROM a [UNTIL ends] AS a LEFT JOIN b [UNTIL ends] AS b ON a.k = b.k",
    "full": "SELECT a.n AS an, b.n AS bn FROM a [UNTIL ends] AS a FULL JOIN b [UNTIL ends] AS b ON a.k = b.k",
    "not exists": "SELECT n FROM a [NOW] WHERE NOT EXISTS (SELECT 1 FROM b [UNTIL ends] AS b WHERE b.k = a.k)",
}


def lasting(seed: int, *, open_ended: bool) -> pa.Table:
    """Rows in order of event time that end at a time of their own; some end before they begin, some never."""
    generator = np.random.default_rng(seed)
    times = np.sort(generator.integers(-20 * SECOND, 40 * SECOND, 60))
    ends = times + generator.integers(-2 * SECOND, 12 * SECOND, 60)
    never = generator.random(60) < (0.1 if open_ended else 0)
    return pa.table(
        {
            "ts": pa.array(times, pa.timestamp("us")),
            "ends": pa.array(ends, pa.timestamp("us"), mask=never).cast(pa.timestamp("ns")),
            "k": generator.integers(0, 6, 60),
            "n": np.arange(60),
        }
    )


@pytest.mark.parametrize("name", UNTIL)
@pytest.mark.parametrize("batch_rows", [None, 7])
def test_rows_that_know_when_they_end(name: str, batch_rows: int | None) -> None:
    for seed in range(0, 20, 2):
        tables = {"a": lasting(seed, open_ended=True), "b": lasting(seed + 1, open_ended=True)}
        expected = oracle(UNTIL[name], tables)
        assert expected.num_rows
        assert_same_rows(braid.run(UNTIL[name], tables, batch_rows=batch_rows), expected)


@pytest.mark.parametrize("name", UNTIL)
def test_rows_that_know_when_they_end_in_shards(name: str) -> None:
    for seed in range(0, 10, 2):
        tables = {"a": lasting(seed, open_ended=False), "b": lasting(seed + 1, open_ended=False)}
        case = Case(UNTIL[name], tables, dict.fromkeys("ab", "ts"), dict.fromkeys("ab", 0), None, 9)
        cluster = run_with_faults(case, seed)
        cluster.end()
        assert_same_rows(cluster.result_before_end(), oracle(case.text, tables), message=repr(case))


@pytest.mark.parametrize("window", ["[TUMBLE 5 SECONDS]", "[UNTIL ends]"])
def test_these_windows_run_at_one_site(window: str) -> None:
    text = f"SELECT a.n FROM a {window}, b [NOW] WHERE a.k = b.k"
    with pytest.raises(braid.PlanningError, match="runs at one site"):
        braid.plan(text, braid.Statistics(), braid.Topology.from_links([("x", "y", 1.0)]))
