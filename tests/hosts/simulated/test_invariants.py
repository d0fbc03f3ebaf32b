"""The invariants of plan changes are checked at every step of a simulation: each protocol that is broken on purpose is
caught, at the step where it goes wrong."""

from collections.abc import Sequence
from typing import Any

import pytest

import braid
from braid.channels.batch import Entry
from braid.channels.memory import MemoryChannel
from braid.errors import InvariantError
from braid.hosts.simulated.change_messages import ChangeMessages
from braid.hosts.simulated.invariants import Invariants
from braid.hosts.simulated.run import Run
from braid.hosts.simulated.simulation import Simulation
from braid.hosts.simulated.site import Inputs, SimulatedSite
from braid.runtime.migration.change import Answered, Change, ChangeState, Promise, Verdict
from braid.runtime.migration.gate import Gate
from braid.runtime.sites import intake
from braid.testing import assert_same_rows, oracle
from braid.testing.stream_files import random_rows

TEXT = """SELECT a.n AS an, b.n AS bn, c.n AS cn
          FROM a [RANGE 9 SECONDS], b [RANGE 9 SECONDS], c [RANGE 9 SECONDS] WHERE a.k = b.k AND b.k = c.k"""
STREAMS = {name: random_rows(number, 60) for number, name in enumerate("abc")}
NETWORK = braid.Topology.from_links([("paris", "lyon", 0.04), ("lyon", "nice", 0.06), ("paris", "nice", 0.09)])
SITES = {"a": "paris", "b": "lyon", "c": "nice"}
KNOWN = braid.Statistics(rates=dict.fromkeys("abc", 1.0), selectivities={"a.k = b.k": 0.2, "b.k = c.k": 0.2})


def change_plans(seed: int = 0, faults: braid.Faults | str = "none", **options: Any) -> Simulation:
    """Probe sequences whose results come from all sites, then a tree, then sequences again."""
    return braid.simulate(
        TEXT,
        STREAMS,
        NETWORK,
        sites=SITES,
        planner="greedy",
        statistics=KNOWN,
        changes=[(20.0, "exact"), (40.0, "greedy")],
        batch_rows=3,
        lateness="1 second",
        seed=seed,
        faults=faults,
        **options,
    )


def test_the_protocol_that_is_not_broken_passes() -> None:
    for controller in ("central", "distributed"):
        simulation = change_plans(faults="all", controller=controller)
        assert_same_rows(simulation.results, oracle(TEXT, STREAMS))
        assert [str(change.phase) for change in simulation.changes] == ["done", "done"]


def test_results_outside_the_reign_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Gate, "passing", lambda gate, rows, event_time: rows)
    with pytest.raises(InvariantError, match="has no right to from"):
        change_plans()


def test_a_promise_that_was_broken_already_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def promise(gate: Gate, state: ChangeState, site: str, newest: int, margin: int) -> Promise:
        return Promise(site, newest - 5_000_000)

    monkeypatch.setattr(Gate, "promise", promise)
    with pytest.raises(InvariantError, match="promises no result"):
        change_plans()


def test_a_promise_that_a_site_forgets_when_it_dies_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Run, "_recall", lambda run, place: Gate())
    with pytest.raises(InvariantError, match="has no right to from"):
        for seed in range(40):
            change_plans(seed, braid.Faults(crash_rate=0.1, delays=0.5))


def test_an_old_plan_that_stops_too_early_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def answered(state: ChangeState, site: str, reached: int) -> Answered | None:
        is_news = site in state.change.answering and not state.has_said(Answered(site)) and state.moment is not None
        return Answered(site) if is_news else None

    monkeypatch.setattr(ChangeState, "answered", answered)
    with pytest.raises(InvariantError, match="and ended when it had come to"):
        change_plans()


def test_a_promise_that_is_not_written_down_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The site dies, comes back, and gives results behind its promise, or promises something else."""
    monkeypatch.setattr(ChangeMessages, "_note", lambda control, site, change: [])
    with pytest.raises(InvariantError, match=r"some know Promise|has no right to from"):
        for seed in range(40):
            change_plans(seed, braid.Faults(crash_rate=0.1, seconds=8.0))


def test_a_change_that_is_aborted_after_somebody_has_promised_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ChangeState, "must_promise", lambda state, site: site not in state.promises)
    with pytest.raises(InvariantError, match=r"was aborted, and .* had promised"):
        braid.simulate(
            TEXT,
            STREAMS,
            NETWORK,
            sites=SITES,
            planner="greedy",
            statistics=KNOWN,
            changes=[(20.0, "exact"), (20.05, "exact")],
        )


def test_a_batch_that_is_skipped_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = MemoryChannel.entries

    def skipping(channel: MemoryChannel, after: int, most_bytes: int | None = None) -> Sequence[Entry]:
        found = entries(channel, after, most_bytes)
        return found[1:] if len(found) > 2 and after > 0 else found

    monkeypatch.setattr(MemoryChannel, "entries", skipping)
    with pytest.raises(InvariantError, match="takes the batches"):
        change_plans(faults=braid.Faults(absences=4, seconds=30.0))


def test_a_step_that_takes_other_batches_when_it_runs_again_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    class ForgetfulLog(dict[int, Inputs]):
        def setdefault(self, number: int, inputs: Inputs) -> Inputs:  # type: ignore[override]
            self[number] = inputs
            return inputs

    come_back = SimulatedSite.come_back

    def come_back_later(site: SimulatedSite) -> None:
        come_back(site)
        site._log = ForgetfulLog()
        for alias, feed in site._feeds.items():
            if alias in site.available.sources:
                site.available.sources[alias] = len(feed)

    monkeypatch.setattr(SimulatedSite, "come_back", come_back_later)
    with pytest.raises(InvariantError, match="made once more from the same inputs"):
        for seed in range(10):
            change_plans(seed, "crashes")


def test_a_window_without_a_live_row_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Channels that do not keep what windows hold."""
    monkeypatch.setattr(intake, "_kept", lambda query, alias: 0)
    with pytest.raises(InvariantError, match="is ready, and its window of"):
        change_plans()


def test_a_site_that_is_ready_before_it_has_read_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    ready = ChangeState.ready
    monkeypatch.setattr(ChangeState, "ready", lambda state, site, reached: ready(state, site, state.change.level))
    with pytest.raises(InvariantError, match="is ready, and its window of"):
        change_plans()


@pytest.mark.parametrize("silent", ["decides", "must_promise", "answered"])
def test_a_change_that_hangs_is_caught(silent: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ChangeState, silent, lambda state, *given: None)
    with pytest.raises(InvariantError, match="seconds in which nothing went wrong"):
        change_plans()


def test_a_coordinator_that_tells_nobody_again_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """It died after it had written down that the change goes on, and before everybody knew."""
    monkeypatch.setattr(ChangeMessages, "_tell_again", lambda control: None)
    with pytest.raises(InvariantError, match=r"seconds in which nothing went wrong|never ends"):
        for seed in range(40):
            change_plans(seed, braid.Faults(crash_rate=0.1, until=0.6))


def test_a_failing_seed_fails_at_the_same_step_with_the_same_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Gate, "passing", lambda gate, rows, event_time: rows)
    texts = []
    for _ in range(2):
        with pytest.raises(InvariantError) as caught:
            change_plans(seed=3, faults="all", controller="distributed")
        texts.append((str(caught.value), caught.value.__notes__))
    assert texts[0] == texts[1]
    (note,) = texts[0][1]
    first, *lines = note.splitlines()
    assert first.startswith("in step ")
    assert "of the simulation with seed 3, at " in first
    assert any(line.endswith("plan change to #2 is switching") for line in lines)
    assert all(len(line) < 200 for line in lines)


def test_two_verdicts_are_caught() -> None:
    """What one site knows differs from what another one knows."""
    invariants = Invariants(lambda place: None, lambda query, generation: (0, True), keeps_rows=False, bound=None)
    change = ChangeState(Change("gates", 1, 2, ("lyon",), ("paris",)))
    invariants.said(change.told(Verdict(go=True)))
    with pytest.raises(InvariantError, match=r"some know Verdict\(go=True"):
        invariants.said(change.told(Verdict(go=False, reason="late")))
