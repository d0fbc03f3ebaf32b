"""When the plan changes: soon after the streams do, also if they change slowly, and never because of noise."""

import numpy as np
import pytest

from braid.adapt.adaptation import Adaptation
from braid.adapt.controller import Controller, PlanChange, Policy
from braid.adapt.costing import Costing
from braid.errors import ModelError
from braid.language import parse
from braid.model.plan import Plan
from braid.model.statistics import Statistics
from braid.testing.worlds import Weather, World, star, world

EQUAL = dict.fromkeys("abcd", 100.0)

TRIANGLE = parse(
    """SELECT a.n FROM a [RANGE 100 SECONDS], b [RANGE 100 SECONDS], c [RANGE 100 SECONDS]
       WHERE a.x = b.x AND b.y = c.y AND a.z = c.z"""
)
TWO_KEYS = Statistics(
    rates=dict.fromkeys("abc", 100.0),
    populations=dict.fromkeys("abc", 10_000.0),
    selectivities={frozenset("ab"): 5e-4, frozenset("bc"): 1e-5, frozenset("ac"): 1e-5},
)


def live(weather: Weather, seconds: int, seed: int = 0, streams: int = 4, adapt: bool | Policy = True) -> Adaptation:
    """Run an adaptation for some seconds, with one batch in each."""
    generator = np.random.default_rng(seed)
    adaptation = Adaptation(Plan.in_text_order(star(streams)), adapt)
    for second in range(seconds):
        adaptation.observe(weather(second).see(generator, second), float(second), second)
    return adaptation


def statistics_of(state: World) -> Statistics:
    return Statistics(
        rates=state.rates,
        populations={name: rate * 10 for name, rate in state.rates.items()},
        selectivities={ends: state.share(*ends) for ends in state.fanouts},
    )


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("fanout", [0.01, 0.3, 1.0, 3.0])
def test_noise_does_not_change_the_plan(seed: int, fanout: float) -> None:
    """All streams have the same figures, so every order costs the same, and all differences are noise."""
    same = world(EQUAL, fanout)
    assert live(lambda second: same, 120, seed).history.changes == ()


@pytest.mark.parametrize("patience", [1, 2, 3])
def test_the_plan_follows_a_break_after_two_batches_or_the_patience(patience: int) -> None:
    first, second = world(EQUAL, 50.0, ab=0.0, bc=0.0, bd=0.0), world(EQUAL, 50.0, ad=0.0, bd=0.0, cd=0.0)
    policy = Policy(patience=patience)
    changes = live(lambda now: first if now < 60 else second, 70, adapt=policy).history.changes
    assert changes[-1].batch == 59 + max(2, patience)
    assert changes[-1].after["a"][0] == "d"


@pytest.mark.parametrize("seed", range(5))
def test_the_plan_follows_a_flip_within_a_few_seconds_and_once(seed: int) -> None:
    """First hardly any row of b matches another stream, then hardly any row of d."""
    first = world(EQUAL, 2.0, ab=0.02, bc=0.02, bd=0.02)
    second = world(EQUAL, 2.0, ad=0.02, bd=0.02, cd=0.02)
    adaptation = live(lambda now: first if now < 60 else second, 120, seed)
    start, *flips = adaptation.history.changes
    assert start.batch < 10
    assert start.after["a"][0] == start.after["c"][0] == start.after["d"][0] == "b"
    assert flips[0].batch in range(60, 72)
    assert len(flips) <= 2, "at most one correction on the way"
    assert flips[-1].after["a"][0] == flips[-1].after["b"][0] == flips[-1].after["c"][0] == "d"


@pytest.mark.parametrize("seed", range(2))
def test_the_plan_follows_slow_drift(seed: int) -> None:
    """Figures move by 2% each second, but after minutes d is the stream to probe first."""

    def weather(second: int) -> World:
        grown = min(100.0, 1.02**second)
        return world(EQUAL, 2.0, ab=0.02 * grown, bc=0.02 * grown, bd=0.02 * grown, ad=2 / grown, cd=2 / grown)

    adaptation = live(weather, 300, seed)
    assert adaptation.history.changes[-1].after["a"][0] == "d"
    assert len(adaptation.history.changes) <= 5


@pytest.mark.parametrize("seed", range(2))
def test_figures_that_swing_around_the_threshold_do_not_make_the_plan_flap(seed: int) -> None:
    """Two orders take turns at being a few percent better, which is less than the threshold."""
    ways = world(EQUAL, 1.0, ab=0.9, ac=1.1), world(EQUAL, 1.0, ab=1.1, ac=0.9)
    assert len(live(lambda second: ways[second // 7 % 2], 200, seed).history.changes) <= 1


def test_the_rate_of_one_stream_counts() -> None:
    """As in figure 4 of the NOS paper: what a probe finds grows with the rate of the stream it probes."""
    slow = world(dict.fromkeys("abcd", 100.0) | {"b": 50.0}, 1.0)
    fast = world(dict.fromkeys("abcd", 100.0) | {"b": 200.0}, 1.0)
    policy = Policy(threshold=0.1)
    adaptation = live(lambda second: slow if second // 40 % 2 == 0 else fast, 160, adapt=policy)
    afters = [change.after["a"] for change in adaptation.history.changes]
    assert [order.index("b") for order in afters[-3:]] in ([2, 0, 2], [0, 2])


def test_the_same_input_gives_the_same_plan_changes() -> None:
    first = world(EQUAL, 2.0, ab=0.02, bc=0.02, bd=0.02)
    second = world(EQUAL, 2.0, ad=0.02, bd=0.02, cd=0.02)
    runs = [live(lambda now: first if now < 30 else second, 60, seed=3).history.changes for _ in range(2)]
    assert runs[0] == runs[1]
    assert runs[0]


def test_a_plan_change_has_its_expected_costs() -> None:
    plan = Plan.in_text_order(star(3))
    controller = Controller(plan, Policy(patience=1))
    statistics = statistics_of(world(dict.fromkeys("abc", 100.0), 5.0, ac=0.1, bc=0.1))
    change = controller.decide(statistics, 7.0)
    assert isinstance(change, PlanChange)
    assert (change.time, change.before, change.after.sequences["a"]) == (7.0, plan, ("c", "b"))
    assert change.cost_before == pytest.approx(Costing(plan.query, statistics).cost(plan))
    assert change.gain == pytest.approx(1 - change.cost_after / change.cost_before)
    assert (
        change.reason
        == f"another order saves {change.gain:.0%} of the work; a later stream is now cheaper to probe "
        + ("first for new rows of a, b")
    )
    assert controller.decide(statistics, 8.0) is None, "the plan has been changed"


def test_with_unknown_figures_the_plan_is_not_changed() -> None:
    controller = Controller(Plan.in_text_order(star(3)), Policy(patience=1))
    assert controller.decide(Statistics(rates={"a": 1.0}), 0.0) is None


def test_patience_needs_several_comparisons_in_a_row() -> None:
    good = statistics_of(world(dict.fromkeys("abc", 100.0), 1.0))
    bad = statistics_of(world(dict.fromkeys("abc", 100.0), 5.0, ac=0.1, bc=0.1))
    controller = Controller(Plan.in_text_order(star(3)), Policy(patience=3))
    snapshots = [good, bad, bad, good, bad, bad, bad]
    changed = [controller.decide(statistics, float(time)) is not None for time, statistics in enumerate(snapshots)]
    assert changed == [False] * 6 + [True]


def test_a_change_must_save_its_own_cost_within_the_horizon() -> None:
    """With windows on two keys, another order needs new indexes, of 10,000 rows each."""
    query, statistics = TRIANGLE, TWO_KEYS
    plan = Plan.in_text_order(query)
    costing = Costing(query, statistics)
    costs = costing.transition(plan, costing.best(plan))
    saved = costing.cost(plan) - costing.cost(costing.best(plan))
    assert costs > 0
    too_late = Policy(patience=1, horizon=costs / saved * 0.9)
    in_time = Policy(patience=1, horizon=costs / saved * 1.1)
    assert Controller(plan, too_late).decide(statistics, 0.0) is None
    assert Controller(plan, in_time).decide(statistics, 0.0) is not None


def test_a_change_that_comes_too_soon_after_another_is_considered_again() -> None:
    """The figures stay the same. The horizon grows with the time since the last change."""
    controller, earns = recently_changed(0.0)
    assert controller.decide(TWO_KEYS, 0.5 * earns) is None
    assert controller.decide(TWO_KEYS, 0.9 * earns) is None
    assert controller.decide(TWO_KEYS, 1.1 * earns) is not None


def recently_changed(time: float) -> tuple[Controller, float]:
    """A controller whose plan was set to one that is not the best, and the seconds in which a change saves its cost."""
    plan, costing = Plan.in_text_order(TRIANGLE), Costing(TRIANGLE, TWO_KEYS)
    best = costing.best(plan)
    earns = costing.transition(plan, best) / (costing.cost(plan) - costing.cost(best))
    controller = Controller(best, Policy(patience=1, horizon=10 * earns))
    controller.set_plan(plan, time)
    return controller, earns


def test_the_clock_may_be_set_back() -> None:
    controller, earns = recently_changed(3_600.0)
    assert controller.decide(TWO_KEYS, 0.0) is None
    assert controller.decide(TWO_KEYS, 1.1 * earns) is not None


def test_a_stream_without_rows_is_probed_first() -> None:
    """Neither the size of its rows is known, nor the share that matches."""
    quiet = world(dict.fromkeys("abc", 100.0) | {"c": 0.0}, 5.0)
    adaptation = live(lambda second: quiet, 20, streams=3)
    assert adaptation.plan.sequences["a"] == ("c", "b")
    assert adaptation.history.changes[-1].confirmed is not None


def test_a_pinned_plan_is_not_changed() -> None:
    controller = Controller(Plan.in_text_order(star(3)), Policy(patience=1))
    controller.pinned = True
    assert controller.decide(statistics_of(world(dict.fromkeys("abc", 100.0), 5.0, ac=0.1, bc=0.1)), 0.0) is None


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"threshold": 1.5}, "the threshold is a share of the cost: give 0 or more and less than 1, not 1.5"),
        ({"threshold": "0.1"}, "the threshold of a policy must be a number, not '0.1'"),
        ({"half_life": None}, "the half_life of a policy must be a number, not None"),
        ({"patience": 1.5}, "the patience of a policy must be a whole number, not 1.5"),
        ({"patience": 0}, "the patience of a policy must be 1 or more, not 0"),
        ({"horizon": -1.0}, "horizon, half-life and drift cannot be -1.0, 2.0 and 0.15; give positive numbers"),
    ],
)
def test_an_invalid_policy_is_refused(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        Policy(**wrong)  # type: ignore[arg-type]
