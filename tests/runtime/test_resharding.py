"""Shards that become more or fewer between two batches: the results stay those of the oracle."""

import re
from dataclasses import replace

import numpy as np
import pytest

from braid.errors import BraidError
from braid.testing import assert_same_rows, oracle, random_case, without_late_rows
from braid.testing.case import Case
from braid.testing.cluster import ShardedCase, batches, holds_back, plain_case
from braid.testing.generators import random_existence, random_fixed_joins
from braid.testing.kept_engines import KeptEngines


def check_rescaled(case: Case, seed: int) -> None:
    """Run a case that changes its number of shards after random batches, with failed attempts."""
    generator = np.random.default_rng(seed)
    engines = KeptEngines(seed)
    cluster = ShardedCase(case, int(generator.integers(1, 9)), lambda: engines)
    for rows in batches(case):
        cluster.batch(rows, attempts=int(generator.integers(1, 3)))
        if generator.random() < 0.4:
            cluster.rescale(int(generator.integers(1, 9)))
    if holds_back(case):
        cluster.end()
    expected = oracle(case.text, without_late_rows(case), time=case.time)
    assert_same_rows(cluster.result(), expected, message=repr(case))


@pytest.mark.parametrize("seed", range(160))
def test_a_join_that_is_rescaled_equals_the_oracle(seed: int) -> None:
    check_rescaled(random_case(seed), seed)


@pytest.mark.parametrize("seed", range(80))
def test_an_existence_test_that_is_rescaled_equals_the_oracle(seed: int) -> None:
    check_rescaled(random_existence(seed), seed)


@pytest.mark.sweep
def test_sweep() -> None:
    for seed in range(1_000, 11_000):
        check_rescaled(random_existence(seed) if seed % 3 == 0 else random_case(seed), seed)


def check_rescaled_outer(seed: int) -> bool:
    """The same with outer, semi and anti joins; returns whether the case could be rescaled."""
    case = random_fixed_joins(seed)
    # A row that never ends is never certain to have no partner, unless the streams end.
    case = replace(case, text=re.sub(r"\[unbounded\]", "[RANGE 20000 DAYS]", case.text, flags=re.IGNORECASE))
    case = replace(case, batch_rows=case.batch_rows or 7)
    generator = np.random.default_rng(seed)
    engines = KeptEngines(seed)
    cluster = ShardedCase(case, int(generator.integers(1, 9)), lambda: engines)
    is_rescaled = False
    for rows in batches(case):
        cluster.batch(rows, attempts=int(generator.integers(1, 3)))
        if generator.random() < 0.4:
            try:
                cluster.rescale(int(generator.integers(1, 9)))
                is_rescaled = True
            except BraidError as refusal:
                assert "does not end by event time alone" in str(refusal)
    cluster.end()
    expected = oracle(case.text, without_late_rows(case), time=case.time)
    assert_same_rows(cluster.result_before_end(), expected, message=repr(case))
    return is_rescaled


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_an_outer_join_that_is_rescaled_equals_the_oracle(first: int) -> None:
    rescaled = [check_rescaled_outer(seed) for seed in range(first, first + 20)]
    assert sum(rescaled) >= 10, "cases must be rescaled for the test to mean anything"


@pytest.mark.sweep
def test_sweep_of_outer_joins() -> None:
    for seed in range(1_000, 11_000):
        check_rescaled_outer(seed)


def test_a_window_that_ends_by_its_rows_is_not_divided_behind_an_outer_join() -> None:
    case = plain_case(
        """SELECT a.n AS an, b.n AS bn FROM a [RANGE 1 HOUR] LEFT JOIN b [RANGE 1 HOUR] ON a.k = b.k
            LEFT SEMI JOIN c [UNTIL ends] ON c.k = a.k"""
    )
    streams = {**case.streams, "c": case.streams["a"].append_column("ends", case.streams["a"].column("ts"))}
    case = replace(case, streams=streams, time=dict.fromkeys("abc", "ts"), lateness=dict.fromkeys("abc", 0))
    cluster = ShardedCase(case, 2)
    cluster.batch(batches(case)[0])
    with pytest.raises(BraidError, match="cannot be divided among other shards, because the window of c"):
        cluster.rescale(4)


def test_each_kept_row_is_in_the_new_shards_once() -> None:
    case = plain_case()
    cluster = ShardedCase(case, 1)
    for rows in batches(case):
        cluster.batch(rows)
    cluster.rescale(4)
    rows_by_shard = [sum(entry.rows for entry in cluster.manifest(shard).all_entries) for shard in range(4)]
    assert sorted(rows_by_shard) == [0, 0, 0, 80], "all rows have one key"
