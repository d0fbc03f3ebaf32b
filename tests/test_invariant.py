"""The one invariant: the result is a function of the input alone, and it is what the oracle says.

Every failure prints the case in a form that can be pasted into a test.
"""

import math
import random
import sys
from dataclasses import replace
from itertools import permutations, product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings

import braid
from braid.testing import Case, assert_same_rows, cases, oracle, random_case, without_late_rows

SAMPLE = range(300)
SWEEP = range(1_000, 21_000)
LONG = 10**15
"""Microseconds of lateness that nothing exceeds."""


def run(case: Case, **changes: Any) -> pa.Table:
    return braid.run(case.text, case.streams, **(case.options | changes))


def expected(case: Case) -> pa.Table:
    return oracle(case.text, without_late_rows(case), time=case.time)


def check(case: Case, **changes: Any) -> None:
    message = f"The case, with {changes or 'its own options'}:\n{case!r}"
    try:
        actual = run(case, **changes)
    except Exception as problem:
        problem.add_note(message)
        raise
    assert_same_rows(actual, expected(case), message=message)


def nothing_late(case: Case) -> Case:
    return replace(case, lateness=dict.fromkeys(case.streams, LONG))


def as_bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


@pytest.mark.parametrize("seed", SAMPLE)
def test_the_engine_gives_what_the_oracle_gives(seed: int) -> None:
    check(random_case(seed))


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(cases())
def test_small_cases(case: Case) -> None:
    check(case)


@pytest.mark.sweep
def test_sweep(capsys: pytest.CaptureFixture[str]) -> None:
    failures: list[str] = []
    for count, seed in enumerate(SWEEP, 1):
        try:
            check(random_case(seed))
        except Exception as problem:
            failures.append(f"seed {seed}: {type(problem).__name__}: {problem}")
        if count % 500 == 0:
            with capsys.disabled():
                print(f"{count} of {len(SWEEP)} cases, {len(failures)} failed", file=sys.stderr, flush=True)
    assert not failures, f"{len(failures)} cases failed, the first:\n" + "\n\n".join(failures[:5])


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
    chance = np.random.default_rng(seed)
    other_order = {name: rows.take(chance.permutation(rows.num_rows)) for name, rows in case.streams.items()}
    assert_same_rows(run(replace(case, streams=other_order)), run(case), message=repr(case))


@pytest.mark.parametrize("seed", range(370, 430))
@pytest.mark.parametrize("hash_bits", [0, 4])
def test_collisions_do_not_matter(seed: int, hash_bits: int) -> None:
    check(random_case(seed), hash_bits=hash_bits)


FOUR_WAYS = {
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


WHOLE_PLANS = [
    dict(zip(WINDOWS, sequences, strict=True))
    for sequences in product(*(permutations(alias for alias in WINDOWS if alias != head) for head in WINDOWS))
]
"""Every way for each of the four to probe the other three."""


def four_streams(seed: int, rows: int = 14) -> dict[str, pa.Table]:
    chance = np.random.default_rng(seed)
    return {
        alias: pa.table(
            {
                "ts": pa.array(np.sort(chance.integers(0, 12, rows)) * 1_000_000, pa.timestamp("us")),
                "k": chance.integers(0, 3, rows),
                "l": chance.choice(["x", "y"], rows).tolist(),
                "v": chance.integers(0, 5, rows),
                "id": np.arange(rows),
            }
        )
        for alias in WINDOWS
    }


def check_plans(name: str, plans: list[dict[str, tuple[str, ...]]]) -> None:
    tables = ", ".join(f"{alias} {window}" for alias, window in WINDOWS.items())
    text = f"SELECT a.id, b.id, c.id, d.id FROM {tables} WHERE {FOUR_WAYS[name]}"
    query, streams = braid.parse(text), four_streams(len(name))
    right = oracle(query, streams)
    assert right.num_rows > 0
    for plan, batch_rows in product(plans, (None, 4)):
        actual = braid.run(query, streams, plan=plan, batch_rows=batch_rows)
        assert_same_rows(actual, right, message=f"plan={plan}, batch_rows={batch_rows}")


@pytest.mark.parametrize("name", FOUR_WAYS)
def test_every_order_of_each_head_gives_one_result(name: str) -> None:
    default = WHOLE_PLANS[0]
    single = [plan for plan in WHOLE_PLANS if sum(plan[head] != default[head] for head in plan) <= 1]
    check_plans(name, single + random.Random(name).sample(WHOLE_PLANS, 10))


@pytest.mark.sweep
@pytest.mark.parametrize("name", FOUR_WAYS)
def test_every_order_of_a_join_gives_one_result(name: str) -> None:
    assert len(WHOLE_PLANS) == 6**4
    check_plans(name, WHOLE_PLANS)


def test_the_sign_of_zero_travels_through_a_join() -> None:
    """The comparison of tables takes both zeros for equal, so this is looked at apart."""
    rows = pa.table({"ts": pa.array([1, 1], pa.timestamp("us")), "x": [0.0, -0.0]})
    found = braid.run("SELECT a.x, b.x FROM s [NOW] AS a, s [NOW] AS b WHERE a.x = b.x", {"s": rows})
    signs = [[math.copysign(1, value) for value in column.to_pylist()] for column in found.columns]
    assert sorted(zip(*signs, strict=True)) == [(-1, -1), (-1, 1), (1, -1), (1, 1)]


def test_a_parsed_query_is_as_good_as_its_text() -> None:
    case = random_case(3)
    query = braid.parse(case.text)
    assert_same_rows(braid.run(query, case.streams, **case.options), run(case))
    assert_same_rows(oracle(query, case.streams, time=case.time), oracle(case.text, case.streams, time=case.time))
