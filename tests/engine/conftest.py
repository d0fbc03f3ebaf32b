"""Runs in which plans change, or are on trial, compared with the oracle."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import braid
from braid.engine.join import trial
from braid.engine.transition import STRATEGIES
from braid.engine.window import window_state
from braid.hosts.local.streams import LocalStreams
from braid.language import bind, parse
from braid.model.duration import duration_text
from braid.model.plan import Plan
from braid.model.query import Query
from braid.runtime.arrival import steps
from braid.runtime.shard import Shard, ShardSettings
from braid.testing import Case, assert_same_rows, oracle, without_late_rows
from braid.testing.changes import PlannedChanges, random_changes
from braid.testing.choices import SeededChoices


@pytest.fixture
def crowded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes windows so small that rows get new ids all the time."""
    monkeypatch.setattr(window_state, "SMALLEST_CAPACITY", 2)


def check_random_changes(case: Case, seed: int) -> None:
    """Check a run with plan changes, a transition strategy and a width of hashes that the seed chooses."""
    strategies = sorted(STRATEGIES)
    check_changes(case, random_changes(case, seed), strategies[seed % len(strategies)], hash_bits_of(seed))


def hash_bits_of(seed: int) -> int:
    """Every fourth seed has hashes of 3 bits, so that different keys collide."""
    return 3 if seed % 4 == 3 else 64


def check_changes(case: Case, changes: PlannedChanges, strategy: str, hash_bits: int = 64) -> None:
    """Check that a run with plan changes gives the results of the oracle."""
    message = f"The case, with {changes}, strategy={strategy}, hash_bits={hash_bits}:\n{case!r}"
    options = case.options | {"plan": changes.plan, "switches": changes.switches, "strategy": strategy}
    try:
        actual = braid.run(case.text, case.streams, hash_bits=hash_bits, **options)
    except Exception as problem:
        problem.add_note(message)
        raise
    assert_same_rows(actual, oracle(case.text, without_late_rows(case), time=case.time), message=message)


def check_trials(
    case: Case, seed: int, monkeypatch: pytest.MonkeyPatch, make_plan: Callable[[SeededChoices, Query], Any]
) -> None:
    """Check a run against the oracle in which, in every step, a new plan is on trial against yet another one."""
    choices = SeededChoices(seed)
    monkeypatch.setattr(trial, "HARMLESS", choices.pick([0, 10, 10_000]))
    monkeypatch.setattr(trial, "FIRST_HEADS", choices.pick([1, 2, 16]))
    monkeypatch.setattr(trial, "SAMPLE", choices.pick([1, 2, 16]))
    monkeypatch.setattr(trial, "FAR_MORE", choices.pick([1.0, 2.0]))
    monkeypatch.setattr(trial, "LEAST_EXCESS", choices.pick([0, 10]))
    lateness = {name: duration_text(length) for name, length in case.lateness.items()}
    streams = LocalStreams(case.streams, case.time, lateness)
    query = bind(parse(case.text), streams)
    shard = Shard(query, Plan.of(query, case.plan), ShardSettings())
    results = []
    windows = [(source.declared.name, source.window) for source in query.inputs]
    for segments in steps(streams.read, case.batch_rows, windows):
        plan, against = (Plan.of(query, make_plan(choices, query)) for _ in range(2))
        shard.change(plan, against)
        results += shard.step(segments)[0]
    table = pa.Table.from_batches(results + shard.finish(), shard.engine.schema)
    if query.grouping is None:
        assert_same_rows(table, oracle(case.text, without_late_rows(case), time=case.time), message=repr(case))
