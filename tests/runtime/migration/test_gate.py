"""The gate before the results of a generation holds a site to its promise."""

import pyarrow as pa

from braid.model.window import FOREVER
from braid.runtime.migration.change import Answered, Change, ChangeState, Phase, Promise, Ready, Verdict
from braid.runtime.migration.gate import Gate

CHANGE = Change("gates", 1, 3, preparing=("nice",), answering=("lyon", "paris"), since=100, level=50)
UNDER_WAY = ChangeState(CHANGE).told(Ready("nice"), Verdict(go=True))


def results(*moments: int) -> pa.RecordBatch:
    return pa.record_batch({"event_time": pa.array(moments, pa.timestamp("us"))})


def test_a_promise_is_later_than_every_result_and_than_what_the_new_plan_lacks() -> None:
    assert Gate().promise(UNDER_WAY, "lyon", newest=70, margin=0) == Promise("lyon", 100)
    assert Gate().promise(UNDER_WAY, "lyon", newest=170, margin=5) == Promise("lyon", 176)
    assert Gate().promise(UNDER_WAY, "lyon", newest=FOREVER, margin=5) == Promise("lyon", FOREVER)


def test_results_behind_the_promise_wait_until_all_have_promised() -> None:
    gate = Gate()
    assert gate.admits(10_000)
    state = UNDER_WAY.told(gate.promise(UNDER_WAY, "lyon", newest=150, margin=10))
    assert gate.admits(160)
    assert not gate.admits(161)
    gate.learn(state, "lyon")
    assert not gate.admits(161)
    assert state.phase is Phase.PROMISING
    gate.learn(state.told(Promise("paris", 300)), "lyon")
    assert gate.admits(10_000)
    assert gate.passing(results(160, 161, 299, 300, 301), "event_time").num_rows == 3


def test_results_from_the_moment_on_are_not_told_to_be_complete() -> None:
    """A reader that does not know of the change yet would take results of the new plan for late."""
    gate = Gate()
    gate.learn(UNDER_WAY.told(Promise("lyon", 150)), "lyon")
    assert gate.watermark(400) == 400  # What is later than the promise waits, so nothing was left out.
    gate.learn(UNDER_WAY.told(Promise("lyon", 150), Promise("paris", 300)), "lyon")
    assert (gate.watermark(299), gate.watermark(400), gate.watermark(FOREVER)) == (299, 300, 300)


def test_a_site_that_comes_back_is_held_to_what_it_had_promised() -> None:
    gate = Gate()
    gate.learn(UNDER_WAY.told(Promise("lyon", 150)), "lyon")
    assert gate.admits(149)
    assert not gate.admits(150)


def test_an_aborted_change_that_is_heard_of_late_opens_no_gate() -> None:
    """Found by a simulation: a site that had been away heard of an aborted change after it had promised in the next."""
    gate = Gate()
    gate.learn(UNDER_WAY.told(Promise("lyon", 150), Promise("paris", 200)), "lyon")
    aborted = Change("gates", 1, 2, preparing=("nice",), answering=("lyon", "paris"))
    gate.learn(ChangeState(aborted).told(Verdict(go=False)), "lyon")
    assert gate.passing(results(199, 200), "event_time").num_rows == 1


def test_phases_follow_from_what_was_said_whatever_its_order() -> None:
    facts = [Ready("nice"), Verdict(go=True), Promise("lyon", 150), Promise("paris", 200)]
    answered = [Answered("paris"), Answered("lyon")]
    assert ChangeState(CHANGE).phase is Phase.PREPARING
    assert ChangeState(CHANGE).told(facts[0]).phase is Phase.READY
    assert ChangeState(CHANGE).told(*facts[:2]).phase is Phase.PROMISING
    assert ChangeState(CHANGE).told(*reversed(facts)).phase is Phase.SWITCHING
    assert ChangeState(CHANGE).told(*reversed(facts)).moment == 200
    assert ChangeState(CHANGE).told(*answered, *facts).phase is Phase.DONE
    assert ChangeState(CHANGE).told(Verdict(go=False), *facts).phase is Phase.ABORTED
    said = ChangeState(CHANGE).told(*facts)
    assert said.told(Promise("lyon", 999), Verdict(go=False)) == said
