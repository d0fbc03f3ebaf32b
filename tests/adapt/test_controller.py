"""When the plan changes: soon after the streams do, also if they change slowly, and never because of noise."""

from dataclasses import replace

import numpy as np
import pytest

from braid.adapt.adaptation import Adaptation
from braid.adapt.controller import Controller, Failed, PlanChange, Policy, order_of
from braid.adapt.costing import Costing
from braid.adapt.dividing import work_per_row
from braid.adapt.observation import TrialSeen
from braid.errors import ModelError
from braid.language import parse
from braid.model.plan import Plan
from braid.model.statistics import Statistics
from braid.testing.worlds import Weather, World, star, world

EQUAL = dict.fromkeys("abcd", 100.0)
MANY = dict.fromkeys("abcd", 300.0)
"""So many rows in a batch that they show a fan-out well enough."""

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
        observation = weather(second).see(generator, second)
        trials = trials_in(weather(second), adaptation.plan, adaptation.against)
        adaptation.observe(replace(observation, trials=trials), float(second), second)
    return adaptation


def trials_in(state: World, plan: Plan, against: Plan | None) -> dict[str, TrialSeen]:
    """What 100 rows of each head would cost by either order."""
    if against is None:
        return {}
    statistics = statistics_of(state)
    old, new = (
        {head: round(100 * (work_per_row(one, [head], statistics, ()) or 0.0)) for head in one.sequences}
        for one in (against, plan)
    )
    return {head: TrialSeen(100, old[head], new[head], int(new[head] > old[head])) for head in plan.sequences}


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


def test_the_plan_follows_a_break_with_the_first_batch_that_shows_it() -> None:
    first, second = world(MANY, 50.0, ab=0.0, bc=0.0, bd=0.0), world(MANY, 50.0, ad=0.0, bd=0.0, cd=0.0)
    changes = live(lambda now: first if now < 60 else second, 70).history.changes
    assert (changes[-1].batch, changes[-1].verdict) == (60, "kept")
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
    assert [order.index("b") for order in afters[-2:]] == [0, 2]


def test_the_same_input_gives_the_same_plan_changes() -> None:
    first = world(EQUAL, 2.0, ab=0.02, bc=0.02, bd=0.02)
    second = world(EQUAL, 2.0, ad=0.02, bd=0.02, cd=0.02)
    runs = [live(lambda now: first if now < 30 else second, 60, seed=3).history.changes for _ in range(2)]
    assert runs[0] == runs[1]
    assert runs[0]


def test_a_plan_change_has_its_expected_costs() -> None:
    plan = Plan.in_text_order(star(3))
    controller = Controller(plan)
    statistics = statistics_of(world(dict.fromkeys("abc", 100.0), 5.0, ac=0.1, bc=0.1))
    change = controller.decide(statistics, 7.0)
    assert isinstance(change, PlanChange)
    assert (change.time, change.before, change.after.sequences["a"]) == (7.0, plan, ("c", "b"))
    assert change.cost_before == pytest.approx(Costing(plan.query, statistics).cost(plan))
    assert (change.against, change.heads) == (plan, ("a", "b"))
    gain = 1 - change.cost_after / change.cost_before
    assert change.reason == f"another order saves {gain:.0%} of the work; a later stream is now cheaper to probe " + (
        "first for new rows of a, b"
    )
    assert controller.decide(statistics, 8.0) is None, "the plan has been changed"


def test_with_unknown_figures_the_plan_is_not_changed() -> None:
    controller = Controller(Plan.in_text_order(star(3)))
    assert controller.decide(Statistics(rates={"a": 1.0}), 0.0) is None


def test_an_order_that_failed_waits_twice_as_long_each_time() -> None:
    plan = Plan.in_text_order(star(3))
    statistics = statistics_of(world(dict.fromkeys("abc", 100.0), 5.0, ac=0.1, bc=0.1))
    controller = Controller(plan)
    proposed = []
    for comparison in range(40):
        change = controller.decide(statistics, 100.0 * comparison)
        if change is not None:
            proposed.append(comparison)
            controller.fail(Failed(order_of(change.after, head)) for head in change.heads)
            controller.set_plan(plan, 100.0 * comparison)
    assert np.diff(proposed).tolist() == [2, 4, 8, 16]


def test_a_head_whose_order_failed_does_not_hold_up_the_others() -> None:
    statistics = statistics_of(world(dict.fromkeys("abc", 100.0), 5.0, ac=0.1, bc=0.1))
    controller = Controller(Plan.in_text_order(star(3)))
    controller.fail([Failed(("a", ((None, ("c", "b")),)))])
    change = controller.decide(statistics, 0.0)
    assert change is not None
    assert change.heads == ("b",)


def test_each_head_keeps_the_order_that_costs_less() -> None:
    """The statistics promise a lot for a and b; the trial shows that only b keeps the promise."""
    good = world(dict.fromkeys("abc", 300.0), 5.0, ac=0.1, bc=0.1)
    plan = Plan.in_text_order(star(3))
    adaptation, generator = Adaptation(plan), np.random.default_rng(1)
    changes = []
    for second in range(4):
        trials = {} if adaptation.against is None else {"a": TrialSeen(50, 100, 999, 1), "b": TrialSeen(50, 100, 10)}
        observation = replace(good.see(generator, second), trials=trials)
        changes.append(adaptation.observe(observation, float(second), second))
    asked, verdict = (change for change in changes if change is not None)
    assert (asked.against, verdict.against) == (plan, None)
    assert dict(adaptation.plan.sequences) == {"a": ("b", "c"), "b": ("c", "a"), "c": ("a", "b")}
    (recorded,) = adaptation.history.changes
    assert (recorded.verdict, recorded.taken_back, recorded.after) == ("kept", ("a",), verdict.after.written)
    assert (recorded.work_before, recorded.work_measured) == (2.0, 1009 / 100)
    assert recorded.predicted is not None
    assert recorded.predicted > 0.2
    assert recorded.work_predicted == (1 - recorded.predicted) * 2.0
    assert recorded.measured == pytest.approx(1 - 1009 / 200)


def test_a_trial_with_too_few_rows_goes_on() -> None:
    good = world(dict.fromkeys("abc", 300.0), 5.0, ac=0.1, bc=0.1)
    adaptation, generator = Adaptation(Plan.in_text_order(star(3))), np.random.default_rng(1)
    verdicts = []
    for second in range(6):
        trials = {} if adaptation.against is None else {head: TrialSeen(12, 90, 30) for head in "ab"}
        adaptation.observe(replace(good.see(generator, second), trials=trials), float(second), second)
        verdicts.append(adaptation.history.changes[-1].verdict if adaptation.history.changes else None)
    assert verdicts == [None, "trial", "trial", "trial", "kept", "kept"]


def test_an_order_that_was_left_in_the_last_batch_is_not_kept_yet() -> None:
    """Its sampled rows cost less, but the other rows cost more: there may be rare rows that cost a lot."""
    good = world(dict.fromkeys("abc", 300.0), 5.0, ac=0.1, bc=0.1)
    adaptation, generator = Adaptation(Plan.in_text_order(star(3))), np.random.default_rng(1)
    for second in range(12):
        trials = {} if adaptation.against is None else {head: TrialSeen(100, 90, 30, 1) for head in "ab"}
        adaptation.observe(replace(good.see(generator, second), trials=trials), float(second), second)
        if second == 4:
            assert adaptation.history.changes[-1].verdict == "trial"
    assert adaptation.history.changes[0].verdict == "taken back"


def test_a_trial_that_the_checkpoint_has_goes_on() -> None:
    text = Plan.in_text_order(star(3))
    tried = Plan.of(star(3), {"a": ["c", "b"], "b": ["a", "c"], "c": ["a", "b"]})
    calm = world(dict.fromkeys("abc", 300.0), 1.0)
    adaptation, generator = Adaptation(text), np.random.default_rng(1)
    trials = {"a": TrialSeen(50, 100, 999, 1)}
    change = adaptation.observe(replace(calm.see(generator, 0), trials=trials), 0.0, 7, tried, text)
    assert change is not None
    assert (change.after, change.against) == (text, None)
    assert [change.verdict for change in adaptation.history.changes] == ["resumed", "taken back"]


def test_a_plan_that_the_user_asks_for_ends_a_trial() -> None:
    good = world(dict.fromkeys("abc", 300.0), 5.0, ac=0.1, bc=0.1)
    adaptation, generator = Adaptation(Plan.in_text_order(star(3))), np.random.default_rng(1)
    for second in range(2):
        adaptation.observe(good.see(generator, second), float(second), second)
    assert adaptation.against is not None
    wanted = Plan.of(star(3), {"a": ["b", "c"], "b": ["a", "c"], "c": ["b", "a"]})
    adaptation.set_plan(wanted, 1.0, 1, "replan")
    assert (adaptation.plan, adaptation.against) == (wanted, None)
    assert [change.verdict for change in adaptation.history.changes] == ["not judged", "asked for"]


def test_a_change_must_save_its_own_cost_within_the_horizon() -> None:
    """With windows on two keys, another order needs new indexes, of 10,000 rows each."""
    query, statistics = TRIANGLE, TWO_KEYS
    plan = Plan.in_text_order(query)
    costing = Costing(query, statistics)
    costs = costing.transition(plan, costing.best(plan))
    saved = costing.cost(plan) - costing.cost(costing.best(plan))
    assert costs > 0
    too_late = Policy(horizon=costs / saved * 0.9)
    in_time = Policy(horizon=costs / saved * 1.1)
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
    controller = Controller(best, Policy(horizon=10 * earns))
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
    assert adaptation.history.changes[-1].verdict == "kept"


def test_a_pinned_plan_is_not_changed() -> None:
    controller = Controller(Plan.in_text_order(star(3)))
    controller.pinned = True
    assert controller.decide(statistics_of(world(dict.fromkeys("abc", 100.0), 5.0, ac=0.1, bc=0.1)), 0.0) is None


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"threshold": 1.5}, "the threshold is a share of the cost: give 0 or more and less than 1, not 1.5"),
        ({"threshold": "0.1"}, "the threshold of a policy must be a number, not '0.1'"),
        ({"half_life": None}, "the half_life of a policy must be a number, not None"),
        ({"horizon": -1.0}, "horizon, half-life and drift cannot be -1.0, 2.0 and 0.15; give positive numbers"),
    ],
)
def test_an_invalid_policy_is_refused(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        Policy(**wrong)  # type: ignore[arg-type]
