"""ROW_NUMBER: the best results of each partition are those of the oracle, however the rows come."""

import pytest

import braid
from braid.testing import assert_same_rows, oracle
from braid.testing.rank_cases import random_ranks


def check(seed: int) -> int:
    case = random_ranks(seed)
    expected = oracle(case.text, case.streams)
    result = braid.run(case.text, case.streams, batch_rows=case.batch_rows, lateness="100 seconds")
    assert_same_rows(result, expected, types=False, message=f"seed {seed}\n{case!r}")
    return expected.num_rows


@pytest.mark.parametrize("first", range(0, 120, 40))
def test_ranks(first: int) -> None:
    rows = sum(check(seed) for seed in range(first, first + 40))
    assert rows > 80


@pytest.mark.sweep
def test_sweep_of_ranks() -> None:
    for seed in range(1_000, 21_000):
        check(seed)
