"""New trees are judged by the work that is measured before and after the change."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from braid.adapt.adaptation import Adaptation
from braid.adapt.expectation import Expectation
from braid.adapt.observation import Observation
from braid.adapt.trial import MOST_BATCHES
from braid.model.plan import Plan
from braid.testing.worlds import Weather, World, star, world

QUERY = star(3)
OLD = Plan.of(QUERY, (("a", "b"), "c"))
NEW = Plan.of(QUERY, (("a", "c"), "b"))
RATES = dict.fromkeys("abc", 300.0)
GOOD = world(RATES, ab=20.0, ac=0.05, bc=1.0)
"""By its figures, the tree that joins a and c first is much cheaper."""

PerRow = Callable[[Plan, int], float]
"""The work per row under a plan in each second."""


class Life:
    """An adaptation of a tree, observed second by second."""

    def __init__(self, per_row: PerRow, seed: int = 1) -> None:
        self.adaptation = Adaptation(OLD)
        self._per_row = per_row
        self._generator = np.random.default_rng(seed)
        self.second = 0

    def see(self, state: World) -> Observation:
        observation = state.see(self._generator, self.second)
        rows = observation.rows("abc")
        return replace(observation, work=round(rows * self._per_row(self.adaptation.plan, self.second)))

    def live(self, weather: Weather, seconds: int) -> "Life":
        for _ in range(seconds):
            self.adaptation.observe(self.see(weather(self.second)), float(self.second), self.second)
            self.second += 1
        return self

    @property
    def verdicts(self) -> list[str]:
        return [change.verdict for change in self.adaptation.history.changes]


def always(state: World) -> Weather:
    return lambda second: state


def test_a_tree_that_saves_work_is_kept() -> None:
    life = Life(lambda plan, second: 100.0 if plan == OLD else 20.0).live(always(GOOD), 12)
    (change,) = life.adaptation.history.changes
    assert (change.verdict, change.after) == ("kept", NEW.written)
    assert change.predicted is not None and change.predicted > 0.2
    assert change.work_before == pytest.approx(100, rel=0.2)
    assert change.work_measured == pytest.approx(20, rel=0.01)
    assert change.measured == pytest.approx(0.8, rel=0.1)
    assert (life.adaptation.plan.keeps_combinations, life.adaptation.against) == (True, None)


def test_a_tree_that_overruns_is_taken_back_with_the_first_batch_and_remembered() -> None:
    life = Life(lambda plan, second: 100.0 if plan == OLD else 300.0).live(always(GOOD), 3)
    assert life.verdicts == ["taken back"]
    (change,) = life.adaptation.history.changes
    assert life.adaptation.plan == OLD
    assert change.measured == pytest.approx(-2.0, rel=0.2)
    life.live(always(GOOD), 60)
    assert life.verdicts == ["taken back"], "its figures have not moved"
    better = world(RATES, ab=500.0, ac=0.001, bc=0.001)
    life.live(always(better), 60)
    assert len(life.verdicts) > 1, "its figures have moved"


def test_a_tree_that_saves_nothing_is_taken_back_after_some_batches() -> None:
    life = Life(lambda plan, second: 100.0 if plan == OLD else 130.0).live(always(GOOD), 12)
    assert life.verdicts == ["taken back"]
    assert life.adaptation.plan == OLD


def test_a_tree_is_not_blamed_for_streams_that_grow() -> None:
    """Each second has more matches than the one before: the old tree would have taken ever more work, too."""

    def growing(second: int) -> World:
        return world(RATES, ab=20.0 * 1.3**second, ac=0.05 * 1.3**second, bc=1.3**second)

    life = Life(lambda plan, second: (100.0 if plan == OLD else 70.0) * 1.3**second).live(growing, 12)
    assert life.verdicts == ["kept"]
    (change,) = life.adaptation.history.changes
    assert change.measured is not None and 0.2 < change.measured < 0.7


def test_the_work_of_completing_join_states_is_left_out() -> None:
    life = Life(lambda plan, second: 100.0 if plan == OLD else 20.0)
    for _ in range(12):
        seen = life.see(GOOD)
        if life.adaptation.against is not None:
            seen = replace(seen, work=seen.work + 10_000_000, completion=10_000_000)
        life.adaptation.observe(seen, float(life.second), life.second)
        life.second += 1
    assert life.verdicts == ["kept"]


def test_a_tree_that_no_row_can_judge_does_not_block_later_changes() -> None:
    work = {str(OLD.tree): 100.0, str(NEW.tree): 20.0}
    life = Life(lambda plan, second: work.get(str(plan.tree), 5.0)).live(always(GOOD), 2)
    assert life.verdicts == ["trial"]
    nothing = Observation({})
    for _ in range(MOST_BATCHES):
        life.adaptation.observe(nothing, float(life.second), life.second)
        life.second += 1
    assert life.verdicts == ["not judged"]
    assert life.adaptation.history.changes[0].measured is None
    other = world(RATES, ab=1.0, ac=20.0, bc=0.05)
    life.live(always(other), 12)
    assert life.verdicts == ["not judged", "kept"]


def test_a_trial_that_the_checkpoint_has_goes_on_with_what_was_expected() -> None:
    adaptation, generator = Adaptation(OLD), np.random.default_rng(1)
    expected = Expectation(0.5, 100.0)
    for second in range(4):
        observation = GOOD.see(generator, second)
        work = observation.rows("abc") * 120
        observation = replace(observation, work=work)
        trial = (NEW, OLD, expected) if not second or adaptation.against is not None else (adaptation.plan, None)
        change = adaptation.observe(observation, float(second), second, *trial)
        if change is not None:
            assert (change.after, change.against) == (OLD, None)
            break
    resumed, tried = adaptation.history.changes
    assert (resumed.verdict, tried.verdict) == ("resumed", "taken back")
    assert (tried.predicted, tried.work_before) == (0.5, 100.0)
    assert tried.measured == pytest.approx(-0.2)
