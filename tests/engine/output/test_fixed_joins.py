"""Outer, semi and anti joins give the oracle's result, whatever the plan, the batches, the shards and the faults."""

import re
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import braid
from braid.testing import Case, assert_same_rows, oracle, without_late_rows
from braid.testing.cluster import ShardedCase, batches, run_with_faults
from braid.testing.generators import random_fixed_joins
from tests.engine.conftest import check_random_changes
from tests.engine.output.conftest import interrupted


def check(case: Case, actual: pa.Table, description: object) -> None:
    expected = oracle(case.text, without_late_rows(case), time=case.time)
    assert_same_rows(actual, expected, message=f"{description}\n{case!r}")


def check_seed(seed: int) -> None:
    check_random_changes(random_fixed_joins(seed), seed)


@pytest.mark.parametrize("first", range(0, 200, 10))
def test_plan_changes_do_not_change_results(first: int) -> None:
    for seed in range(first, first + 10):
        check_seed(seed)


@pytest.mark.sweep
def test_sweep() -> None:
    for seed in range(1_000, 21_000):
        check_seed(seed)


def check_interrupted(seed: int) -> None:
    case = random_fixed_joins(seed)
    case = replace(case, batch_rows=case.batch_rows or 3)
    check(case, interrupted(case, seed), ("interrupted", seed))


@pytest.mark.parametrize("first", range(200, 240, 10))
def test_interruptions_do_not_change_results(first: int) -> None:
    for seed in range(first, first + 10):
        check_interrupted(seed)


@pytest.mark.sweep
def test_sweep_of_interruptions() -> None:
    for seed in range(1_000, 11_000):
        check_interrupted(seed)


def check_sharded(seed: int) -> None:
    case = random_fixed_joins(seed)
    # A row that never ends is never certain to have no partner, unless the streams end.
    case = replace(case, text=re.sub(r"\[unbounded\]", "[RANGE 20000 DAYS]", case.text, flags=re.IGNORECASE))
    cluster = run_with_faults(case, seed)
    cluster.end()
    cluster.assert_results_are_not_late()
    check(case, cluster.result_before_end(), ("sharded", seed))


@pytest.mark.parametrize("first", range(300, 360, 10))
def test_shards_and_faults_do_not_change_results(first: int) -> None:
    for seed in range(first, first + 10):
        check_sharded(seed)


@pytest.mark.sweep
def test_sweep_of_shards() -> None:
    for seed in range(1_000, 11_000):
        check_sharded(seed)


def test_a_key_that_an_outer_join_makes_out_of_nulls_finds_its_partners_in_any_shard() -> None:
    """A row without a partner in b joins c on the key 0, but it is in the shard of its own key."""
    text = """SELECT a.n AS an, b.n AS bn, c.n AS cn FROM a [RANGE 3 SECONDS]
              LEFT JOIN b [RANGE 3 SECONDS] ON a.k = coalesce(b.k, 0)
              LEFT JOIN c [RANGE 3 SECONDS] ON coalesce(b.k, 0) = c.k"""
    generator = np.random.default_rng(0)
    streams = {}
    for name in "abc":
        times = np.sort(generator.integers(0, 20_000_000, 30))
        columns = {"ts": pa.array(times, pa.timestamp("us")), "k": generator.integers(0, 12, 30), "n": np.arange(30)}
        streams[name] = pa.table(columns)
    case = Case(text, streams, dict.fromkeys("abc", "ts"), dict.fromkeys("abc", 0), None, 10)
    cluster = ShardedCase(case, 5)
    for rows in batches(case):
        cluster.batch(rows)
    cluster.end()
    check(case, cluster.result_before_end(), "coalesce")


def seconds(*times: int) -> pa.Table:
    return pa.table({"ts": pa.array([time * 1_000_000 for time in times], pa.timestamp("us")), "k": [1] * len(times)})


def test_a_comma_joins_what_the_joins_after_it_give() -> None:
    """With `a CROSS JOIN b` first, the result of the row of `c`, which has no partner, would have a null for `a`."""
    text = "SELECT a.ts AS first, c.k FROM a [UNBOUNDED], b [UNBOUNDED] FULL JOIN c [RANGE 1 SECOND] ON b.ts = c.ts"
    streams = {"a": seconds(0), "b": seconds(3), "c": seconds(5)}
    actual = braid.run(text, streams, time="ts")
    assert actual.column("first").null_count == 0
    assert actual.num_rows == 2
    assert_same_rows(actual, oracle(text, streams))


@pytest.mark.parametrize(("second", "expected"), [(2, 0), (11, 0), (12, 1), (13, 0)])
def test_a_right_row_behind_a_left_join_is_alone_when_no_late_row_can_be_its_partner(
    second: int, expected: int
) -> None:
    """The row of c ends at second 2. A row of a without a partner in b comes 10 seconds later, when it ends."""
    text = (
        "SELECT c.k FROM a [RANGE 10 SECONDS] LEFT JOIN b [NOW] ON b.k = a.k "
        "FULL JOIN c [RANGE 2 SECONDS] ON c.k = b.k WHERE EXISTS (SELECT * FROM d [NOW] WHERE d.k = c.k)"
    )
    streams = {"a": seconds(0), "b": seconds(30), "c": seconds(0), "d": seconds(second)}
    actual = braid.run(text, streams, time="ts", batch_rows=1)
    assert actual.num_rows == expected
    assert_same_rows(actual, oracle(text, streams))
