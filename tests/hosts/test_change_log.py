"""What is said about plan changes: garbage is rejected, and what was said properly counts."""

import json
import logging
from dataclasses import replace
from typing import Any

import pytest

from braid.channels.memory import MemoryChannels
from braid.hosts.change_log import CHANGE, ChangeLog
from braid.runtime.migration.change import (
    Answered,
    Change,
    Fact,
    Phase,
    Promise,
    Ready,
    Stopped,
    Verdict,
    fact_key,
)
from braid.runtime.sites.deployed import Deployed
from tests.hosts.conftest import before_write

MOVE = Change("gates", 1, 2, preparing=("nice",), answering=("paris", "lyon"))
NINTH = replace(MOVE, new=9)
NO_SITES: list[Any] = [[], {}, "lyon", {"lyon": 1}, ["lyon", "lyon"], [""], [["lyon"]], [None], 7, True]
NO_FIGURES: list[Any] = ["x", [], {}, True, [[]], float("nan"), float("inf"), "7"]
COUNTS = ("old", "new", "since", "level", "copied")
GATES = Deployed("gates", "SELECT ..", {}, newest=2)


@pytest.mark.parametrize(
    "garbage",
    [
        {},
        {"kind": "surrender", "site": "paris"},
        {"kind": "promise", "site": "paris"},
        {"kind": "promise", "site": "paris", "until": "soon"},
        {"kind": "promise", "site": "paris", "until": True},
        {"kind": "promise", "site": 7, "until": 7},
        {"kind": "promise", "site": "paris", "until": 10**40},
        {"kind": "verdict", "go": "yes"},
        {"kind": "verdict", "go": True, "reason": []},
        {"kind": "promise", "site": "paris", "until": 9},
        {"kind": "ready", "site": "nice", "color": "red"},
        {"kind": ["ready"], "site": "nice"},
    ],
)
def test_garbage_about_a_change_is_rejected_and_the_change_goes_on(
    garbage: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    channels = MemoryChannels()
    log = ChangeLog(channels)
    log.begin(MOVE, GATES)
    channels.announce("facts of gates #2", "garbage", garbage)
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            assert log.state(MOVE).phase is Phase.PREPARING
    (warning,) = caplog.messages
    assert "'garbage' of the plan change gates #2 is rejected" in warning
    assert log.rejected == 1
    for fact in (Ready("nice"), Verdict(go=True), Promise("paris", 5), Promise("lyon", 7)):
        log.say(MOVE, fact)
    assert log.state(MOVE).moment == 7


@pytest.mark.parametrize(
    ("fact", "garbage"),
    [
        (Promise("lyon", 7), {"kind": "promise", "site": "lyon", "until": "soon"}),
        (Promise("lyon", 7), {"kind": "promise", "site": "paris", "until": 5}),
        (Ready("nice"), {"kind": "ready", "site": ["nice"]}),
        (Answered("paris"), {"kind": "stopped", "site": "paris"}),
        (Stopped("2 paris"), {}),
        (Verdict(go=True), {"kind": "verdict", "go": "yes"}),
    ],
)
def test_garbage_under_the_key_of_a_fact_does_not_count_as_said(fact: Fact, garbage: dict[str, Any]) -> None:
    channels = MemoryChannels()
    log = ChangeLog(channels)
    log.begin(MOVE, GATES)
    for key in (fact_key(fact), f"2 {fact_key(fact)}"):
        channels.announce("facts of gates #2", key, garbage)
    assert not log.state(MOVE).has_said(fact)
    for _ in range(3):
        log.say(MOVE, fact)
    assert ChangeLog(channels).state(MOVE).facts == {fact_key(fact): fact}
    assert len(channels.announced("facts of gates #2")) == 3
    assert log.rejected == 2
    log.end(log.state(MOVE))
    assert not channels.announced("facts of gates #2")


def test_a_change_goes_on_although_garbage_was_there_before_each_fact() -> None:
    channels = MemoryChannels()
    log = ChangeLog(channels)
    log.begin(MOVE, GATES)
    said: list[Fact] = [Ready("nice"), Verdict(go=True), Promise("paris", 5), Promise("lyon", 7)]
    for fact in [*said, Answered("paris"), Answered("lyon")]:
        channels.announce("facts of gates #2", fact_key(fact), {"kind": "surrender"})
        log.say(MOVE, fact)
    assert log.state(MOVE).phase is Phase.DONE
    assert log.state(MOVE).moment == 7


def test_what_was_said_first_counts_also_if_garbage_had_its_key_and_is_removed() -> None:
    channels = MemoryChannels()
    log = ChangeLog(channels)
    channels.announce("facts of gates #2", "promise lyon", {"until": "soon"})
    log.say(MOVE, Promise("lyon", 7))
    channels.withdraw("facts of gates #2", "promise lyon")
    log.say(MOVE, Promise("lyon", 9))
    assert log.state(MOVE).promises == {"lyon": 7}


@pytest.mark.parametrize("number", range(2))
def test_of_two_verdicts_at_once_the_first_counts_also_where_garbage_was(
    number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another program says a verdict just before one of the writes with which this one says its own."""
    channels = MemoryChannels()
    log, other = ChangeLog(channels), ChangeLog(channels)
    channels.announce("facts of gates #2", "verdict", {"kind": "verdict", "go": "yes"})
    seen: list[Verdict | None] = []

    def abort() -> None:
        other.say(MOVE, Verdict(go=False))
        seen.append(other.state(MOVE).verdict)

    before_write(monkeypatch, number, abort)
    log.say(MOVE, Verdict(go=True))
    monkeypatch.undo()
    seen += [log.state(MOVE).verdict, other.state(MOVE).verdict]
    assert seen[0] is not None
    assert len(set(seen)) == 1


@pytest.mark.parametrize(
    "garbage",
    [
        {},
        {"query": "gates"},
        {**NINTH.to_json(), "preparing": None},
        {**NINTH.to_json(), "answering": [7]},
        {**NINTH.to_json(), "new": "2"},
        {**NINTH.to_json(), "color": "red"},
        {**NINTH.to_json(), "old": 9},
        {**NINTH.to_json(), "old": -1},
        {**NINTH.to_json(), "new": 10**40},
        {**NINTH.to_json(), "level": 10**40},
        *({**NINTH.to_json(), sites: wrong} for sites in ("preparing", "answering") for wrong in NO_SITES),
        *({**NINTH.to_json(), text: wrong} for text in ("query", "reason") for wrong in (None, [], {}, 1.5, True)),
        *({**NINTH.to_json(), "asked": wrong} for wrong in (*NO_FIGURES, None)),
        *({**NINTH.to_json(), "predicted": wrong} for wrong in NO_FIGURES),
        *({**NINTH.to_json(), count: wrong} for count in COUNTS for wrong in (*NO_FIGURES, None, 1.5)),
    ],
)
def test_a_document_that_is_no_change_is_rejected(garbage: dict[str, Any], caplog: pytest.LogCaptureFixture) -> None:
    """Each is under the key that it would have, and has one field that is wrong."""
    channels = MemoryChannels()
    channels.announce(CHANGE, "gates #9", garbage)
    log = ChangeLog(channels)
    log.begin(MOVE, GATES)
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            assert [state.change for state in log.states("gates")] == [MOVE]
    (warning,) = caplog.messages
    assert "the plan change gates #9 is rejected" in warning
    assert len(warning) < 300
    assert log.rejected == 1
    channels.announce(CHANGE, "gates #9", {"other": "garbage"})
    assert [state.change for state in log.states("gates")] == [MOVE]
    assert log.rejected == 2


@pytest.mark.parametrize("figure", ["predicted", "asked"])
@pytest.mark.parametrize("value", [-0.5, 0, 1, 1.5e9])
def test_a_change_keeps_its_figures(figure: str, value: float) -> None:
    change = replace(MOVE, **{figure: value})
    assert Change.from_json(json.loads(json.dumps(change.to_json()))) == change


def test_a_change_of_an_earlier_release_has_fewer_fields() -> None:
    needed = {"query": "gates", "old": 1, "new": 2, "preparing": ["nice"], "answering": ["paris", "lyon"]}
    assert Change.from_json(needed) == MOVE


def test_a_change_tells_which_sites_it_waits_for() -> None:
    """A site of the new plan that does not run is named, and so is one of the old plan that has not promised."""
    log = ChangeLog(MemoryChannels())
    log.begin(MOVE, GATES)
    waited = [log.state(MOVE).awaited]
    said: list[Fact] = [Ready("nice"), Verdict(go=True), Promise("paris", 5), Promise("lyon", 7), Answered("lyon")]
    for fact in [*said, Answered("paris")]:
        log.say(MOVE, fact)
        waited.append(log.state(MOVE).awaited)
    assert waited == [("nice",), (), ("paris", "lyon"), ("lyon",), ("paris", "lyon"), ("paris",), ()]
