"""The statistics of a monitor: close to the truth, quick to follow changes, and unknown without observations."""

import json

import numpy as np
import pytest

from braid.adapt.monitor import Monitor
from braid.adapt.observation import Observation, PairSeen, StreamSeen
from braid.adapt.sketch import KeySketch
from braid.errors import ModelError
from braid.testing.worlds import star, world

SECOND = 1_000_000


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
    assert snapshot.shares[frozenset("ab")] == pytest.approx(0.0005, rel=0.4)
    assert snapshot.shares[frozenset("bc")] == pytest.approx(0.002, rel=0.3)
    statistics = snapshot.statistics
    assert statistics.rates["c"] == snapshot.streams["c"].rate
    assert statistics.selectivities[frozenset("ab")] == snapshot.shares[frozenset("ab")]


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


def share_after(monitor: Monitor, second: int, matches: float) -> float:
    """The known matches per row of two streams, after one more batch in which each row had this many matches."""
    streams = {name: seen(100, second) for name in "ab"}
    pairs = {("a", "b"): PairSeen(100.0, matches * 100), ("b", "a"): PairSeen(100.0, matches * 100)}
    monitor.observe(Observation(streams, pairs), float(second))
    return monitor.snapshot().shares[frozenset("ab")] * streams["a"].held


@pytest.mark.parametrize(("before", "after"), [(50.0, 0.0), (0.01, 50.0), (90.0, 9.0)])
def test_a_break_in_matches_shows_at_once_and_one_deviating_batch_does_not(before: float, after: float) -> None:
    monitor = Monitor(star(2), half_life=1_000.0)
    for second in range(20):
        assert share_after(monitor, second, before) == pytest.approx(before)
    assert share_after(monitor, 20, after) == pytest.approx(before)
    calm = share_after(monitor, 21, before)
    assert calm == pytest.approx((21 * before + after) / 22, rel=0.01)
    assert share_after(monitor, 22, after) == pytest.approx(calm)
    assert monitor.agreed == 1
    assert share_after(monitor, 23, after) == pytest.approx(after)
    assert monitor.agreed == 2
    monitor.observe(Observation({}), 24.0)
    assert monitor.agreed == 1, "the break was in an earlier batch"


def test_the_batch_in_which_a_break_happens_is_dropped() -> None:
    monitor = Monitor(star(2), half_life=1_000.0)
    for second, matches in enumerate([50.0, 50.0, 10.0]):
        share_after(monitor, second, matches)
    assert share_after(monitor, 3, 0.0) == 0


def test_batches_that_deviate_in_different_directions_are_no_break() -> None:
    monitor = Monitor(star(2), half_life=1_000.0)
    for second in range(20):
        share_after(monitor, second, 10.0)
    for second in range(20, 40):
        assert 5 < share_after(monitor, second, 0.0 if second % 2 else 100.0) < 60
        assert monitor.agreed == 1


def test_batches_with_few_rows_are_no_break() -> None:
    monitor = Monitor(star(2), half_life=1_000.0)
    for second in range(40):
        streams = {name: seen(3, second) for name in "ab"}
        monitor.observe(Observation(streams, {("a", "b"): PairSeen(3.0, 0.0 if second % 4 > 1 else 90.0)}), second)
        assert monitor.agreed == 1


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
    assert snapshot.shares[frozenset("ab")] == pytest.approx(1 / 250, rel=0.3)
    assert snapshot.keys["a.k"].distinct == pytest.approx(250, rel=0.1)
    monitor.observe(Observation({"a": seen(10, 1), "b": seen(10, 1)}, {("a", "b"): PairSeen(10, 50)}, sketches), 1.0)
    assert monitor.snapshot().shares[frozenset("ab")] == 50 / (10 * 100), "probes come before estimates"


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
    parts[0] = Observation(parts[0].streams, parts[0].pairs, {("a", 0): sketch}, 5)
    merged = Observation.merged(Observation.from_plain(json.loads(json.dumps(part.to_plain()))) for part in parts)
    assert merged.rows("ab") == sum(part.rows("ab") for part in parts)
    assert merged.work == 5
    assert merged.streams["a"].held == sum(part.streams["a"].held for part in parts)
    assert merged.pairs["a", "b"].probes == sum(part.pairs["a", "b"].probes for part in parts)
    assert merged.keys["a", 0].distinct == pytest.approx(20, rel=0.01)


@pytest.mark.parametrize("text", ["[]", "{}", '{"streams": {"a": {"unknown": 1}}, "pairs": [], "keys": []}'])
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
