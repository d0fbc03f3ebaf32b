"""Moments of event time, in microseconds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from braid.errors import ModelError
from braid.model.window import FOREVER

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def moment_of(given: int | datetime | None) -> int:
    """A moment as microseconds since 1970. A time without a zone is in UTC; None is before all moments.

    >>> moment_of(datetime(1970, 1, 2)), moment_of(5)
    (86400000000, 5)
    """
    if given is None:
        return -FOREVER
    if isinstance(given, datetime):
        return ((given if given.tzinfo is not None else given.replace(tzinfo=UTC)) - EPOCH) // timedelta(microseconds=1)
    if isinstance(given, bool) or not isinstance(given, int) or not -FOREVER <= given <= FOREVER:
        raise ModelError(f"a moment is a datetime, or a whole number of microseconds since 1970, not {given!r:.80}")
    return given
