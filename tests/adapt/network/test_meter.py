"""The load of a site: seconds of work per second of event time."""

import pytest

from braid.adapt.network.meter import SECOND, LoadMeter
from braid.model.window import FOREVER


def test_the_load_is_that_of_the_last_seconds_of_event_time() -> None:
    meter = LoadMeter(seconds=10)
    for second in range(100):
        meter.work(0.2 if second < 50 else 0.7)
        meter.read(second * SECOND)
        if second == 40:
            assert meter.load == pytest.approx(0.2)
    assert meter.load == pytest.approx(0.7)


def test_work_while_event_time_stands_still_counts_with_the_next_reading() -> None:
    meter = LoadMeter(seconds=10)
    meter.read(0)
    for _ in range(4):
        meter.work(0.5)
        meter.read(0)
    assert meter.load is None
    meter.read(4 * SECOND)
    assert meter.load == pytest.approx(0.5)


def test_the_load_is_unknown_without_event_time_and_where_work_is_not_measured() -> None:
    meter = LoadMeter(seconds=10)
    meter.work(1.0)
    for reached in (-FOREVER, 7, FOREVER):
        meter.read(reached)
    assert meter.load is None
    idle = LoadMeter(seconds=10)
    for reached in (1, 2, 3):
        idle.work(0.0)
        idle.read(reached)
    assert idle.load is None
