"""`braid replan`: what it says of a change that it waits for, whenever the coordinator of the change looks."""

from collections.abc import Callable
from pathlib import Path

import pytest

from braid.hosts.registry import Registry
from braid.runtime.migration.change import Answered, Change, ChangeState, Fact, Promise, Ready, Verdict
from tests.cli.conftest import braid, registry, write_network


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A network file whose query is deployed, and wants another plan by now."""
    file = write_network(tmp_path)
    assert braid("deploy", file, "--wait", 0).exit_code == 0
    file.write_text(file.read_text().replace("sink: nice", "sink: lyon"))
    return file


def replan(
    file: Path, monkeypatch: pytest.MonkeyPatch, happens: Callable[[Registry, ChangeState], None]
) -> tuple[int, str]:
    """The exit code and the last line of the command, if something happens between its first look and its second."""

    def look(seconds: float) -> None:
        assert not looks, "the change is over, and the command waits"
        looks.append(seconds)
        state = registry(file).changes.under_way("pairs")
        assert state is not None
        happens(registry(file), state)

    looks: list[float] = []
    monkeypatch.setattr("braid.cli.replan.time.sleep", look)
    done = braid("replan", file)
    assert looks
    return done.exit_code, (done.stdout + done.stderr).strip().splitlines()[-1]


def complete(registry: Registry, state: ChangeState) -> None:
    change = state.change
    facts: list[Fact] = [*map(Ready, change.preparing), Verdict(go=True)]
    facts += [Promise(site, 7) for site in change.answering] + [Answered(site) for site in change.answering]
    for fact in facts:
        registry.changes.say(change, fact)


def forget(registry: Registry, state: ChangeState) -> None:
    """Do what the coordinator does with a change that is over."""
    complete(registry, state)
    over = registry.changes.state(state.change)
    registry.changes.record(over, 8.0, 0)
    registry.changes.end(over)


def test_a_change_that_is_not_recorded_yet_is_told_of(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert replan(file, monkeypatch, complete) == (0, "pairs has changed its plan")


def test_an_earlier_change_is_not_told_of(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    changes = registry(file).changes
    earlier = Change("pairs", 0, 1, preparing=("nice",), answering=("paris",))
    changes.record(ChangeState(earlier).told(Verdict(go=False, reason="an earlier one")), 1.0, 0)
    assert replan(file, monkeypatch, complete) == (0, "pairs has changed its plan")


def test_a_change_that_is_forgotten_already_is_told_of(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert replan(file, monkeypatch, forget) == (0, "pairs has changed its plan")


def test_another_change_that_has_begun_meanwhile_is_not_waited_for(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def replaced(registry: Registry, state: ChangeState) -> None:
        registry.changes.say(state.change, Verdict(go=False, reason="another change takes its place"))
        next_one = Change("pairs", 1, 3, preparing=("nice",), answering=("lyon",))
        assert registry.changes.begin(next_one, registry.deployment("pairs"))

    expected = "the change was aborted: another change takes its place"
    assert replan(file, monkeypatch, replaced) == (0, expected)


def test_a_change_that_went_with_its_query_is_told_of(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def drop(registry: Registry, state: ChangeState) -> None:
        registry.withdraw(registry.deployment("pairs"))

    expected = "the change is not there any more; query 'pairs' may have been dropped"
    assert replan(file, monkeypatch, drop) == (0, expected)
