"""The statistics of a monitor: close to the truth, quick to follow changes, and unknown without observations."""

import json

import numpy as np
import pytest

from braid.adapt.monitor import Interval, Monitor
from braid.adapt.observation import FanoutSeen, Observation, StreamSeen, TrialSeen
from braid.adapt.sketch import KeySketch
from braid.errors import ModelError
from braid.testing.worlds import star, world

SECOND = 1_000_000
AB = frozenset("ab")


def test_figures_are_close_to_the_truth() -> None:
    truth = world({"a": 100.0, "b": 20.0, "c": 400.0}, 2.0, ab=0.5)
    monitor, generator = Monitor(star(3)), np.random.default_rng(1)
    for second in range(30):
        monitor.observe(truth.see(generator, second), float(second))
    snapshot = monitor.snapshot()
    for name, rate in truth.rates.items():
        assert snapshot.streams[name].rate == pytest.approx(rate, rel=0.3)
        assert snapshot.streams[name].event_rate == pytest.approx(rate, rel=0.3)
        assert snapshot.streams[name].size == 20
    assert snapshot.shares[frozenset("ab")].estimate == pytest.approx(0.0005, rel=0.4)
    assert snapshot.shares[frozenset("bc")].estimate == pytest.approx(0.002, rel=0.3)
    statistics = snapshot.statistics
    assert statistics.rates["c"] == snapshot.streams["c"].rate
    assert statistics.selectivities[frozenset("ab")] == snapshot.shares[frozenset("ab")].estimate
    assert snapshot.fanouts["a", AB].estimate == pytest.approx(0.1, rel=0.5)


def test_a_change_shows_within_a_few_seconds() -> None:
    monitor = Monitor(star(2))
    for second in range(60):
        entered = 50 if second < 50 else 200
        monitor.observe(Observation({"a": seen(entered, second)}), float(second))
        rate = monitor.snapshot().streams["a"].rate
        if 5 < second < 50:
            assert rate == pytest.approx(50)
        if second == 55:
            assert rate is not None
            assert rate > 150
    assert rate == pytest.approx(200, rel=0.05)


def matches_after(monitor: Monitor, second: int, matches: float, rows: int = 300) -> Interval:
    """The known matches of a row, after one more batch in which each row had this many matches."""
    streams = {name: seen(rows, second) for name in "ab"}
    counted = FanoutSeen(rows, matches * rows, matches * rows, rows * 100.0, rows, rows)
    monitor.observe(Observation(streams, {("a", AB): counted}), float(second))
    return monitor.snapshot().fanouts["a", AB]


def test_rows_that_found_a_window_empty_tell_nothing_of_their_matches() -> None:
    """In the first batch no row sees later streams: an order that probes them first looked as if it cost nothing."""
    monitor = Monitor(star(3))
    compared = FanoutSeen(40, 200.0, 200.0, 1_600.0, 40, 40)
    nothing = FanoutSeen(40, 0.0, 0.0, 0.0, 40, 40)
    fanouts = {
        ("a", AB): compared,
        ("a", frozenset("ac")): nothing,
        ("a", frozenset("abc")): nothing,
        ("b", AB): compared,
    }
    monitor.observe(Observation({name: seen(40, 0) for name in "abc"}, fanouts), 0.0)
    assert set(monitor.snapshot().fanouts) == {("a", AB), ("b", AB)}


def test_a_batch_with_enough_rows_replaces_all_before_it() -> None:
    monitor = Monitor(star(2), half_life=1_000.0)
    for second, matches in enumerate([50.0, 50.0, 0.0, 0.01, 700.0]):
        assert matches_after(monitor, second, matches).estimate == pytest.approx(matches)


def test_of_small_batches_the_last_ones_count_together() -> None:
    monitor = Monitor(star(2), half_life=1_000.0)
    known = [matches_after(monitor, second, float(second % 2), rows=64).estimate for second in range(40)]
    assert known[0] == 0
    assert known[-2:] == pytest.approx([0.5, 0.5], abs=0.2)
    for second in range(40, 44):
        last = matches_after(monitor, second, 8.0, rows=64).estimate
    assert last > 5.0, "four batches have enough rows"
    faded = Monitor(star(2), half_life=0.001)
    for second in range(4):
        assert matches_after(faded, second, float(second), rows=64).estimate == pytest.approx(second)


@pytest.mark.parametrize("rows", [10, 64, 300])
def test_no_match_in_a_sample_is_an_interval(rows: int) -> None:
    none = matches_after(Monitor(star(2)), 0, 0.0, rows)
    assert none == Interval(0.0, pytest.approx(2 / rows))


def test_the_interval_of_a_fan_out_holds_the_truth() -> None:
    """In 19 of 20 samples or more; rows that match have 30 matches, and few rows match."""
    generator, held = np.random.default_rng(2), 0
    for _ in range(400):
        matches = 30 * (generator.random(64) < 0.1)
        mean, variance = float(matches.mean()), float(matches.var()) / 64
        counted = FanoutSeen(1_000, mean * 1_000, variance * 1_000**2, 0.0, 64, 1_000)
        held += counted.most / counted.rows >= 3.0
    assert held >= 380


def test_plans_are_compared_by_the_most_that_a_fan_out_may_be() -> None:
    monitor = Monitor(star(2))
    matches_after(monitor, 0, 0.0, rows=100)
    snapshot = monitor.snapshot()
    assert snapshot.statistics.fanouts["a", AB] == 0
    assert snapshot.cautious.fanouts["a", AB] == pytest.approx(0.02)
    assert snapshot.cautious.selectivities[AB] == pytest.approx(0.02 / 100)


def test_unknown_is_not_zero() -> None:
    monitor = Monitor(star(2))
    nothing = monitor.snapshot()
    assert nothing.streams["a"].rate is None
    assert nothing.statistics.rates == {}
    assert nothing.shares == {}
    monitor.observe(Observation({"a": seen(10, 0)}), 0.0)
    assert monitor.snapshot().streams["a"].rate is None, "the duration of the first batch is not known"
    assert monitor.snapshot().streams["b"].population is None
    monitor.observe(Observation({"a": seen(10, 1)}), 1.0)
    assert monitor.snapshot().streams["a"].rate == 10
    assert monitor.snapshot().streams["b"].rate == 0, "a second has passed without a row"


def test_lateness_is_the_longest_of_recent_rows() -> None:
    monitor = Monitor(star(2), half_life=2.0)
    monitor.observe(Observation({"a": StreamSeen(10, 8, 2, 10, 100, SECOND, 4 * SECOND)}), 0.0)
    assert monitor.snapshot().streams["a"].lateness == 4.0
    assert monitor.snapshot().streams["a"].late == 0.2
    monitor.observe(Observation({"a": StreamSeen(10, 10, 0, 10, 100, SECOND, 0)}), 2.0)
    assert monitor.snapshot().streams["a"].lateness == 2.0


def test_a_snapshot_is_immutable() -> None:
    monitor = Monitor(star(2))
    monitor.observe(Observation({"a": seen(10, 0)}), 0.0)
    before = monitor.snapshot()
    monitor.observe(Observation({"a": seen(99, 1)}), 1.0)
    assert before.time == 0.0
    assert before.streams["a"].rate is None


def test_pairs_that_were_not_probed_are_estimated_from_their_keys() -> None:
    monitor = Monitor(star(2))
    sketches = {}
    for alias in "ab":
        sketches[alias, 0] = KeySketch()
        sketches[alias, 0].feed(np.random.default_rng(1).integers(0, 300, 500))
    monitor.observe(Observation({"a": seen(10, 0), "b": seen(10, 0)}, {}, sketches), 0.0)
    snapshot = monitor.snapshot()
    assert snapshot.shares[AB].estimate == pytest.approx(1 / 250, rel=0.3)
    assert 1 / 250 < snapshot.shares[AB].most < 1 / 40, "sketches of 64 hash classes do not rule out more"
    assert snapshot.keys["a.k"].distinct == pytest.approx(250, rel=0.1)
    probed = {("a", AB): FanoutSeen(10, 50, 0.0, 10 * 100, 10)}
    monitor.observe(Observation({"a": seen(10, 1), "b": seen(10, 1)}, probed, sketches), 1.0)
    assert monitor.snapshot().shares[AB].estimate == 50 / (10 * 100), "probes come before estimates"


def test_old_keys_are_forgotten() -> None:
    monitor = Monitor(star(2), half_life=1.0)
    for second in range(20):
        sketch = KeySketch()
        sketch.feed(np.arange(100) if second < 10 else np.arange(10))
        monitor.observe(Observation({"a": seen(10, second)}, {}, {("a", 0): sketch}), float(second))
    assert monitor.snapshot().keys["a.k"].distinct == pytest.approx(10, rel=0.1)


def test_observations_of_shards_add_up() -> None:
    truth, generator = world({"a": 50.0, "b": 50.0}), np.random.default_rng(2)
    parts = [truth.see(generator, 1) for _ in range(3)]
    sketch = KeySketch()
    sketch.feed(np.arange(20))
    parts[0] = Observation(parts[0].streams, parts[0].fanouts, {("a", 0): sketch}, 5, {"a": TrialSeen(1, 2, 3, 1)})
    parts[1] = Observation(parts[1].streams, parts[1].fanouts, trials={"a": TrialSeen(4, 5, 6, 0)})
    merged = Observation.merged(Observation.from_plain(json.loads(json.dumps(part.to_plain()))) for part in parts)
    assert merged.rows("ab") == sum(part.rows("ab") for part in parts)
    assert merged.work == 5
    assert merged.streams["a"].held == sum(part.streams["a"].held for part in parts)
    assert merged.fanouts["a", AB].rows == sum(part.fanouts["a", AB].rows for part in parts)
    assert merged.trials == {"a": TrialSeen(5, 7, 9, 1)}
    assert merged.keys["a", 0].distinct == pytest.approx(20, rel=0.01)


@pytest.mark.parametrize("text", ["[]", "{}", '{"streams": {"a": {"unknown": 1}}, "fanouts": [], "keys": []}'])
def test_invalid_observations_are_refused(text: str) -> None:
    with pytest.raises(ModelError, match="this is not an observation of a batch"):
        Observation.from_plain(json.loads(text))


def test_a_half_life_of_zero_is_refused() -> None:
    with pytest.raises(ModelError, match="the half-life of a monitor must be greater than 0 seconds, not 0"):
        Monitor(star(2), 0)


def seen(entered: int, second: int) -> StreamSeen:
    return StreamSeen(entered, entered, 0, 100, entered * 20, second * SECOND, 0)


def test_a_pause_is_forgotten_as_quickly_as_other_observations() -> None:
    monitor = Monitor(star(2))
    for second in [*range(10), *range(3_600, 3_610)]:
        monitor.observe(Observation({"a": seen(50, second)}), float(second))
    figures = monitor.snapshot().streams["a"]
    assert figures.rate == pytest.approx(50, rel=0.1)
    assert figures.event_rate == pytest.approx(50, rel=0.1)


def test_the_clock_may_be_set_back() -> None:
    monitor = Monitor(star(2))
    for second in range(10):
        monitor.observe(Observation({"a": seen(50, second)}), 3_600.0 + second)
    for second in range(10, 20):
        monitor.observe(Observation({"a": seen(200, second)}), float(second))
    assert monitor.snapshot().streams["a"].rate == pytest.approx(200, rel=0.1)
