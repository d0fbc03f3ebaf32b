"""Every transition strategy gives the result of the oracle, however plans change.

A failure prints the case in a form that can be pasted into a test.
"""

import numpy as np
import pyarrow as pa
import pytest

import braid
from braid.engine.join.completion import HEADS_AT_ONCE
from braid.engine.transition import STRATEGIES
from braid.engine.window import window_state
from braid.testing import Case, assert_same_rows, oracle, random_case
from braid.testing.changes import PlannedChanges, random_changes
from tests.conftest import Sweep
from tests.engine.conftest import check_changes, check_random_changes, hash_bits_of

SAMPLE = range(300)
SWEEP = range(1_000, 21_000)


def check_seed(seed: int) -> None:
    check_random_changes(random_case(seed), seed)


@pytest.mark.parametrize("seed", SAMPLE)
def test_plan_changes_do_not_change_results(seed: int) -> None:
    check_seed(seed)


@pytest.mark.parametrize("strategy", sorted(STRATEGIES))
@pytest.mark.parametrize("seed", range(500, 515))
@pytest.mark.usefixtures("crowded")
def test_every_strategy_while_rows_get_new_ids(seed: int, strategy: str) -> None:
    case = random_case(seed)
    check_changes(case, random_changes(case, seed), strategy)


EIGHT = "abcdefgh"
PLANS_OF_EIGHT = [
    ("a", "b", "c", "d", "e", "f", ("g", "h")),
    (("a", "b"), "c", "d", "e", "f", "g", "h"),
    ("a", ("b", "c"), "d", "e", "f", ("g", "h")),
    {name: [other for other in EIGHT if other != name] for name in EIGHT},
]


@pytest.mark.parametrize("strategy", sorted(STRATEGIES))
@pytest.mark.parametrize("seed", range(4))
def test_the_prefilter_ignores_incomplete_join_states(seed: int, strategy: str) -> None:
    """From six inputs on, heads are prefiltered. If a join state lacks a key, it may be incomplete."""
    generator = np.random.default_rng(seed)
    streams = {
        name: pa.table(
            {
                "ts": pa.array(np.sort(generator.integers(0, 20_000_000, 40)), pa.timestamp("us")),
                "k": generator.integers(0, 9, 40),
                "n": np.arange(40),
            }
        )
        for name in EIGHT
    }
    sources = ", ".join(f"{name} [RANGE 6 SECONDS]" for name in EIGHT)
    condition = " AND ".join(f"a.k = {name}.k" for name in EIGHT[1:])
    text = f"SELECT {', '.join(f'{name}.n AS {name}n' for name in EIGHT)} FROM {sources} WHERE {condition}"
    plans = [PLANS_OF_EIGHT[choice] for choice in generator.permutation(len(PLANS_OF_EIGHT))]
    expected = oracle(text, streams)
    assert expected.num_rows
    switches = dict(zip((2, 4, 5), plans[1:], strict=True))
    options = {"plan": plans[0], "switches": switches, "strategy": strategy}
    assert_same_rows(braid.run(text, streams, batch_rows=6, lateness="20 s", **options), expected)


@pytest.mark.parametrize("strategy", sorted(STRATEGIES))
def test_steps_of_more_than_heads_at_once(strategy: str) -> None:
    rows = HEADS_AT_ONCE + 9_000
    generator = np.random.default_rng(3)
    streams = {
        name: pa.table(
            {
                "ts": pa.array(np.arange(rows), pa.timestamp("ms")),
                "k": generator.integers(0, rows, rows),
                "n": np.arange(rows),
            }
        )
        for name in "abcd"
    }
    sources = ", ".join(f"{name} [RANGE 30 SECONDS]" for name in streams)
    text = f"SELECT a.n AS a, b.n AS b, c.n AS c, d.n AS d FROM {sources} WHERE a.k = b.k AND b.k = c.k AND c.k = d.k"
    before, after = ((("a", "b"), "c"), "d"), (("b", "c"), ("d", "a"))
    actual = braid.run(
        text, streams, plan=before, switches={1: after}, strategy=strategy, batch_rows=rows - 4_000, lateness="1 hour"
    )
    expected = oracle(text, streams)
    assert expected.num_rows > HEADS_AT_ONCE // 2
    assert_same_rows(actual, expected)


JOINS = {
    "one key": "a.k = b.k AND b.k = c.k AND c.k = d.k AND d.k = e.k",
    "a chain of two attributes": "a.k = b.k AND b.n = c.n AND c.k = d.k AND d.n = e.n",
    "a star with a band": "a.k = b.k AND a.n = c.n AND a.s = d.s AND abs(d.n - e.n) < 1",
    "a cycle": "a.k = b.k AND b.n = c.n AND c.s = d.s AND d.k = e.k AND e.n = a.n",
}


def busy_case(join: str, seed: int) -> Case:
    """Five streams, in many small steps, where most rows are part of a result."""
    generator = np.random.default_rng(seed)
    windows = ["[RANGE 6 SECONDS]", "[RANGE 5 SECONDS SLIDE 2 SECONDS]", "[ROWS 6]", "[PARTITION BY k ROWS 2]"]
    order = generator.permutation(4) if seed % 2 else [0] * 4
    names = "abcde"
    sources = ", ".join(f"{name} {windows[number]}" for name, number in zip(names, [*order, 0], strict=True))
    streams = {
        name: pa.table(
            {
                "ts": pa.array(
                    np.sort(generator.integers(0, 20_000, 40)) + generator.integers(0, 900, 40), pa.timestamp("ms")
                ),
                "k": generator.integers(0, 4, 40),
                "n": generator.integers(0, 4, 40),
                "s": pa.array([f"s{number}" for number in generator.integers(0, 4, 40)]),
                "id": np.arange(40),
            }
        )
        for name in names
    }
    selected = ", ".join(f"{name}.id AS {name}" for name in names)
    text = f"SELECT {selected} FROM {sources} WHERE {JOINS[join]}"
    return Case(text, streams, dict.fromkeys(names, "ts"), dict.fromkeys(names, 1_000_000), None, 2)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("join", JOINS)
def test_busy_streams(join: str, seed: int) -> None:
    case = busy_case(join, seed)
    changes = random_changes(case, seed)
    busy = PlannedChanges(changes.plan, {4 * step: plan for step, plan in changes.switches.items()})
    for strategy in ("jisc", sorted(STRATEGIES)[seed % len(STRATEGIES)]):
        check_changes(case, busy, strategy, hash_bits_of(seed))


@pytest.mark.sweep
def test_sweep(sweep: Sweep, monkeypatch: pytest.MonkeyPatch) -> None:
    def check_in_windows_of_any_size(seed: int) -> None:
        monkeypatch.setattr(window_state, "SMALLEST_CAPACITY", 2 if seed % 2 else 1 << 10)
        check_seed(seed)

    sweep(SWEEP, check_in_windows_of_any_size)
