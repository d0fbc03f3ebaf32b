"""What is said about plan changes: garbage is rejected, and what was said properly counts."""

import logging
from typing import Any

import pytest

from braid.channels.memory import MemoryChannels
from braid.hosts.change_log import CHANGE, ChangeLog
from braid.runtime.migration.change import Answered, Change, Fact, Phase, Promise, Ready, Verdict
from braid.runtime.sites.deployed import Deployed

MOVE = Change("gates", 1, 2, preparing=("nice",), answering=("paris", "lyon"))
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
        {"kind": "verdict", "go": "yes"},
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
    "garbage",
    [
        {},
        {"query": "gates"},
        {**MOVE.to_json(), "preparing": None},
        {**MOVE.to_json(), "answering": [7]},
        {**MOVE.to_json(), "new": "2"},
        {**MOVE.to_json(), "color": "red"},
    ],
)
def test_a_document_that_is_no_change_is_rejected(garbage: dict[str, Any], caplog: pytest.LogCaptureFixture) -> None:
    channels = MemoryChannels()
    channels.announce(CHANGE, "gates #9", garbage)
    log = ChangeLog(channels)
    log.begin(MOVE, GATES)
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            assert [state.change for state in log.states("gates")] == [MOVE]
    (warning,) = caplog.messages
    assert "the plan change gates #9 is rejected" in warning
    assert log.rejected == 1
    channels.announce(CHANGE, "gates #9", {"other": "garbage"})
    assert [state.change for state in log.states("gates")] == [MOVE]
    assert log.rejected == 2


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
