"""Who has been silent for too long, and how far they are taken to have come."""

from datetime import timedelta

import pytest

from braid.errors import StreamError
from braid.model.duration import Duration
from braid.runtime.idleness import Heard, IdleTracker, idle_seconds

SECONDS = 1_000_000


def heard(now: int, *silent: str) -> dict[str, Heard]:
    """Streams that are as far as the clock, but for those that are silent."""
    return {name: Heard(name not in silent, 0 if name in silent else now * SECONDS) for name in "abc"}


def test_a_stream_is_passed_by_once_it_has_been_silent_for_too_long() -> None:
    silence = IdleTracker(10)
    assert [silence.passed(heard(now, "b"), now) for now in range(12)] == [
        *[{}] * 10,
        {"b": 10 * SECONDS},
        {"b": 11 * SECONDS},
    ]


def test_whoever_speaks_again_starts_anew() -> None:
    silence = IdleTracker(2)
    assert not any(silence.passed(heard(now, *("b" if now % 2 else "")), now) for now in range(20))


def test_those_who_are_passed_by_follow_the_slowest_of_the_others() -> None:
    silence = IdleTracker(2)
    slow = {"a": Heard(True, 7), "b": Heard(True, 9), "c": Heard(False, 0)}
    assert [silence.passed(slow, now) for now in range(4)] == [{}, {}, {"c": 7}, {}]


def test_nobody_is_passed_by_when_all_are_silent() -> None:
    silence = IdleTracker(2)
    assert not any(silence.passed(heard(now, *"abc"), now) for now in range(20))


def test_a_query_that_stood_still_waits_for_those_who_are_slow_to_come_back() -> None:
    """Nor does a clock that was set back make anybody silent."""
    silence = IdleTracker(30)
    times = [0, 1, -7_200, 3_601, 3_602]
    assert not any(silence.passed(heard(now, "b"), now) for now in times)
    assert silence.passed(heard(3_620, "b"), 3_620)


@pytest.mark.parametrize("timeout", ["0 seconds", timedelta(seconds=-1)])
def test_no_time_is_too_short_to_be_silent_for(timeout: Duration) -> None:
    with pytest.raises(StreamError, match=r"idle_timeout is (0|-1) seconds"):
        idle_seconds(timeout)
