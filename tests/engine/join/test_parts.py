"""Plans with a separate order for each part of the keys: the result is that of the oracle, however parts change."""

import numpy as np
import pyarrow as pa
import pytest

from braid.engine.engine import Engine
from braid.engine.segment import Segment
from braid.engine.transition import STRATEGIES
from braid.language import parse
from braid.model.plan import Plan, Written
from braid.model.stream import Stream
from braid.planning.lowering.one_site import lower
from braid.testing import random_case
from braid.testing.changes import random_sequences
from braid.testing.parts import random_part_changes, random_parts
from tests.conftest import Sweep
from tests.engine.conftest import check_changes, check_trials, hash_bits_of

SAMPLE = range(300)
SWEEP = range(1_000, 11_000)


def check_seed(seed: int) -> None:
    case, strategies = random_case(seed), sorted(STRATEGIES)
    strategy = strategies[seed // 2 % len(strategies)] if seed % 2 else "jisc"
    check_changes(case, random_part_changes(case, seed), strategy, hash_bits_of(seed))


@pytest.mark.parametrize("seed", SAMPLE)
def test_changes_of_parts_do_not_change_results(seed: int) -> None:
    check_seed(seed)


@pytest.mark.sweep
def test_sweep(sweep: Sweep) -> None:
    sweep(SWEEP, check_seed)


@pytest.mark.parametrize("seed", range(500, 530))
@pytest.mark.usefixtures("crowded")
def test_changes_of_parts_while_rows_get_new_ids(seed: int) -> None:
    case = random_case(seed)
    check_changes(case, random_part_changes(case, seed), "jisc")


@pytest.mark.parametrize("seed", range(60))
def test_parts_on_trial_give_the_results_of_the_oracle(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In every step, a random plan with parts is on trial against another one."""
    case = random_case(seed)
    check_trials(case, seed, monkeypatch, lambda choices, query: random_parts(choices, case, query, random_sequences))


CHAIN = """SELECT a.n AS a, b.n AS b, c.n AS c FROM a [RANGE 100 SECONDS], b [RANGE 100 SECONDS],
           c [RANGE 100 SECONDS] WHERE a.k = b.k AND b.k = c.k"""
LEFT = {"a": ["b", "c"], "b": ["a", "c"], "c": ["a", "b"]}
RIGHT = {"a": ["c", "b"], "b": ["c", "a"], "c": ["b", "a"]}
LEFT_TREE, RIGHT_TREE = (("a", "b"), "c"), ("a", ("b", "c"))


def chain_rows(generator: np.random.Generator, first: int) -> dict[str, pa.RecordBatch]:
    """Fifty rows of each stream with keys 0 to 4."""
    times = pa.array(np.full(50, first), pa.timestamp("us"))
    return {
        name: pa.RecordBatch.from_pydict({"ts": times, "n": np.arange(50), "k": generator.integers(0, 5, 50)})
        for name in "abc"
    }


def chain_engine(plan: Written) -> tuple[Engine, Plan]:
    schema = chain_rows(np.random.default_rng(0), 0)["a"].schema
    chosen = Plan.of(parse(CHAIN, {name: Stream(name, schema, "ts") for name in "abc"}), plan)
    return Engine(lower(chosen)), chosen


def feed(engine: Engine, seed: int) -> int:
    rows = chain_rows(np.random.default_rng(seed), seed)
    return sum(batch.num_rows for batch in engine.step([Segment(name, batch, 0) for name, batch in rows.items()]))


def test_each_row_goes_along_the_order_of_its_part_only() -> None:
    engine, _ = chain_engine([({"k": [1, 2]}, LEFT), ("rest", RIGHT)])
    rows = chain_rows(np.random.default_rng(1), 1)
    feed(engine, 1)
    first_probes = {(join.probe, join.stream): join.probes for join in engine.counts().joins if len(join.bound) == 1}
    rows_in_part = {name: int(np.isin(batch.column("k"), [1, 2]).sum()) for name, batch in rows.items()}
    assert first_probes["a", "b"] == rows_in_part["a"]
    assert first_probes["a", "c"] == 50 - rows_in_part["a"]
    assert first_probes["c", "a"] + first_probes["c", "b"] == 50


def test_the_join_states_of_parts_hold_their_own_keys_only() -> None:
    engine, _ = chain_engine([({"k": {"below": 2}}, LEFT_TREE), ("rest", RIGHT_TREE)])
    whole, _ = chain_engine(LEFT_TREE)
    for seed in (1, 2):
        assert feed(engine, seed) == feed(whole, seed)
    held = {name: state.held for name, state in engine.counts().join_states.items()}
    assert 0 < held["1:a+b"] < whole.counts().join_states["a+b"].held
    assert held.keys() == {"1:a+b", "b+c"}


def test_keys_without_a_part_take_over_the_join_states_of_all_keys() -> None:
    """The other part is completed just in time, so a change to parts loses nothing that was kept."""
    engine, plan = chain_engine(LEFT_TREE)
    feed(engine, 1)
    engine.change(lower(Plan.of(plan.query, [({"k": [1]}, RIGHT_TREE), ("rest", LEFT_TREE)])))
    states = engine.counts().join_states
    assert states["a+b"].complete and states["a+b"].held
    assert not states["1:b+c"].complete and not states["1:b+c"].held
    whole, _ = chain_engine(LEFT_TREE)
    feed(whole, 1)
    assert feed(engine, 2) == feed(whole, 2)
    assert engine.counts().join_states["1:b+c"].held


def test_a_part_that_stays_keeps_its_join_states() -> None:
    engine, plan = chain_engine([({"k": [1]}, LEFT_TREE), ({"k": [2]}, RIGHT_TREE), ("rest", LEFT_TREE)])
    feed(engine, 1)
    held = engine.counts().join_states["1:a+b"].held
    engine.change(lower(Plan.of(plan.query, [({"k": [2]}, LEFT_TREE), ({"k": [1]}, LEFT_TREE), ("rest", RIGHT)])))
    states = engine.counts().join_states
    assert states["2:a+b"].held == held > 0
    assert states["1:a+b"].held == 0


def test_an_engine_with_parts_continues_from_its_state() -> None:
    parts: Written = [({"k": [1, 3]}, LEFT_TREE), ("rest", RIGHT_TREE)]
    engine, _ = chain_engine(parts)
    feed(engine, 1)
    other, _ = chain_engine(parts)
    other.load(engine.state())
    assert feed(other, 2) == feed(fed_chain_engine(parts), 2)


def fed_chain_engine(plan: Written) -> Engine:
    engine, _ = chain_engine(plan)
    feed(engine, 1)
    return engine
