"""When a stream is idle, and which watermark it then gets."""

from datetime import timedelta

import pytest

from braid.errors import StreamError
from braid.model.duration import Duration
from braid.runtime.idleness import IdleTracker, idle_seconds
from braid.runtime.report import StreamProgress

SECONDS = 1_000_000


def progress(now: int, *inactive: str) -> dict[str, StreamProgress]:
    """Streams a, b and c; those that are active have reached the current time."""
    return {
        name: StreamProgress(False, 0) if name in inactive else StreamProgress(True, now * SECONDS) for name in "abc"
    }


def test_a_stream_is_passed_once_it_has_been_inactive_for_the_timeout() -> None:
    tracker = IdleTracker(10)
    assert [tracker.update(progress(now, "b"), now) for now in range(12)] == [
        *[{}] * 10,
        {"b": 10 * SECONDS},
        {"b": 11 * SECONDS},
    ]


def test_a_stream_that_becomes_active_again_gets_the_whole_timeout_again() -> None:
    tracker = IdleTracker(2)
    assert not any(tracker.update(progress(now, *("b" if now % 2 else "")), now) for now in range(20))


def test_idle_streams_follow_the_slowest_active_stream() -> None:
    tracker = IdleTracker(2)
    slow = {"a": StreamProgress(True, 7), "b": StreamProgress(True, 9), "c": StreamProgress(False, 0)}
    assert [tracker.update(slow, now) for now in range(4)] == [{}, {}, {"c": 7}, {}]


def test_no_stream_is_passed_when_all_are_idle() -> None:
    tracker = IdleTracker(2)
    assert not any(tracker.update(progress(now, *"abc"), now) for now in range(20))


def test_a_long_gap_between_batches_makes_no_stream_idle() -> None:
    """Each gap counts for at most half the timeout; a clock that is set back counts for nothing."""
    tracker = IdleTracker(30)
    times = [0, 1, -7_200, 3_601, 3_602]
    assert not any(tracker.update(progress(now, "b"), now) for now in times)
    assert tracker.update(progress(3_620, "b"), 3_620)


@pytest.mark.parametrize("timeout", ["0 seconds", timedelta(seconds=-1)])
def test_the_timeout_must_be_greater_than_zero(timeout: Duration) -> None:
    with pytest.raises(StreamError, match=r"idle_timeout is (0|-1) seconds; it must be greater than 0"):
        idle_seconds(timeout)
