"""The invariant: the result depends only on the input and equals that of the oracle.

It does not depend on plans, batches, order of arrival or hash collisions. Every failure prints the case as Python code
that can be pasted into a test.
"""

import math
import random
from dataclasses import replace
from itertools import permutations, product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings

import braid
from braid.testing import Case, assert_same_rows, cases, oracle, random_case, without_late_rows
from tests.conftest import Sweep

SAMPLE = range(300)
SWEEP = range(1_000, 21_000)
LONGEST_LATENESS = 10**15
"""A lateness in microseconds that no row exceeds."""


def run(case: Case, **changes: Any) -> pa.Table:
    return braid.run(case.text, case.streams, **(case.options | changes))


def expected(case: Case) -> pa.Table:
    return oracle(case.text, without_late_rows(case), time=case.time)


def check(case: Case, **changes: Any) -> None:
    message = f"The case, with {changes or 'its own options'}:\n{case!r}"
    try:
        actual = run(case, **changes)
    except Exception as error:
        error.add_note(message)
        raise
    assert_same_rows(actual, expected(case), message=message)


def nothing_late(case: Case) -> Case:
    return replace(case, lateness=dict.fromkeys(case.streams, LONGEST_LATENESS))


def as_bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


@pytest.mark.parametrize("seed", SAMPLE)
def test_the_engine_equals_the_oracle(seed: int) -> None:
    check(random_case(seed))


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(cases())
def test_small_cases_from_hypothesis(case: Case) -> None:
    check(case)


@pytest.mark.sweep
def test_sweep(sweep: Sweep) -> None:
    sweep(SWEEP, lambda seed: check(random_case(seed)))


@pytest.mark.parametrize("seed", range(0, 60, 2))
def test_the_same_input_gives_the_same_bytes(seed: int) -> None:
    case = random_case(seed)
    assert as_bytes(run(case)) == as_bytes(run(case))


@pytest.mark.parametrize("seed", range(300, 340))
def test_batching_does_not_matter(seed: int) -> None:
    case = nothing_late(replace(random_case(seed), batch_rows=None))
    at_once = run(case)
    for batch_rows in (1, 7):
        assert_same_rows(run(case, batch_rows=batch_rows), at_once, message=f"batch_rows={batch_rows}\n{case!r}")


@pytest.mark.parametrize("seed", range(340, 370))
def test_order_of_arrival_does_not_matter(seed: int) -> None:
    case = nothing_late(replace(random_case(seed), batch_rows=3))
    generator = np.random.default_rng(seed)
    other_order = {name: rows.take(generator.permutation(rows.num_rows)) for name, rows in case.streams.items()}
    assert_same_rows(run(replace(case, streams=other_order)), run(case), message=repr(case))


@pytest.mark.parametrize("seed", range(370, 430))
@pytest.mark.parametrize("hash_bits", [0, 4])
def test_hash_collisions_do_not_matter(seed: int, hash_bits: int) -> None:
    check(random_case(seed), hash_bits=hash_bits)


FOUR_WAY_CONDITIONS = {
    "one attribute": "a.k = b.k AND b.k = c.k AND c.k = d.k",
    "chain": "a.k = b.k AND b.l = c.l AND c.k = d.k",
    "star": "a.k = b.k AND a.l = c.l AND a.v = d.v",
    "cycle": "a.k = b.k AND b.l = c.l AND c.k = d.k AND d.l = a.l",
    "several columns": "a.k = b.k AND a.l = b.l AND b.k = c.k AND b.l = c.l AND c.k = d.k",
    "theta": "a.k = b.k AND a.v < c.v AND abs(c.v - d.v) <= 1",
    "three at once": "a.k = b.k AND a.v + b.v = c.v AND c.k = d.k",
    "cross": "a.v = b.v AND c.l = 'x'",
}
WINDOWS = {
    "a": "[RANGE 9 SECONDS]",
    "b": "[ROWS 8]",
    "c": "[RANGE 8 SECONDS SLIDE 2 SECONDS]",
    "d": "[UNBOUNDED]",
}


ALL_PLANS = [
    dict(zip(WINDOWS, sequences, strict=True))
    for sequences in product(*(permutations(alias for alias in WINDOWS if alias != head) for head in WINDOWS))
]
"""Every combination of probe sequences for the four heads."""


def four_streams(seed: int, rows: int = 14) -> dict[str, pa.Table]:
    generator = np.random.default_rng(seed)
    return {
        alias: pa.table(
            {
                "ts": pa.array(np.sort(generator.integers(0, 12, rows)) * 1_000_000, pa.timestamp("us")),
                "k": generator.integers(0, 3, rows),
                "l": generator.choice(["x", "y"], rows).tolist(),
                "v": generator.integers(0, 5, rows),
                "id": np.arange(rows),
            }
        )
        for alias in WINDOWS
    }


def check_plans(name: str, plans: list[dict[str, tuple[str, ...]]]) -> None:
    tables = ", ".join(f"{alias} {window}" for alias, window in WINDOWS.items())
    text = f"SELECT a.id, b.id, c.id, d.id FROM {tables} WHERE {FOUR_WAY_CONDITIONS[name]}"
    query, streams = braid.parse(text), four_streams(len(name))
    result = oracle(query, streams)
    assert result.num_rows > 0
    for plan, batch_rows in product(plans, (None, 4)):
        actual = braid.run(query, streams, plan=plan, batch_rows=batch_rows)
        assert_same_rows(actual, result, message=f"plan={plan}, batch_rows={batch_rows}")


@pytest.mark.parametrize("name", FOUR_WAY_CONDITIONS)
def test_every_probe_sequence_of_each_head_gives_the_same_result(name: str) -> None:
    default = ALL_PLANS[0]
    one_head_changed = [plan for plan in ALL_PLANS if sum(plan[head] != default[head] for head in plan) <= 1]
    check_plans(name, one_head_changed + random.Random(name).sample(ALL_PLANS, 10))


@pytest.mark.sweep
@pytest.mark.parametrize("name", FOUR_WAY_CONDITIONS)
def test_every_plan_gives_the_same_result(name: str) -> None:
    assert len(ALL_PLANS) == 6**4
    check_plans(name, ALL_PLANS)


def test_a_join_keeps_the_sign_of_zero() -> None:
    """Tested separately, because the comparison of tables counts both zeros as equal."""
    rows = pa.table({"ts": pa.array([1, 1], pa.timestamp("us")), "x": [0.0, -0.0]})
    result = braid.run("SELECT a.x, b.x FROM s [NOW] AS a, s [NOW] AS b WHERE a.x = b.x", {"s": rows})
    signs = [[math.copysign(1, value) for value in column.to_pylist()] for column in result.columns]
    assert sorted(zip(*signs, strict=True)) == [(-1, -1), (-1, 1), (1, -1), (1, 1)]


def test_a_parsed_query_gives_the_same_as_its_text() -> None:
    case = random_case(3)
    query = braid.parse(case.text)
    assert_same_rows(braid.run(query, case.streams, **case.options), run(case))
    assert_same_rows(oracle(query, case.streams, time=case.time), oracle(case.text, case.streams, time=case.time))
