"""Moments of event time, in microseconds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from braid.errors import ModelError
from braid.model.window import FOREVER

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def moment_of(moment: int | datetime | None) -> int:
    """A moment as microseconds since 1970. A time without a zone is in UTC; None is before all moments.

    >>> moment_of(datetime(1970, 1, 2)), moment_of(5)
    (86400000000, 5)
    """
    if moment is None:
        return -FOREVER
    if isinstance(moment, datetime):
        return ((moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)) - EPOCH) // timedelta(
            microseconds=1
        )
    if isinstance(moment, bool) or not isinstance(moment, int) or not -FOREVER <= moment <= FOREVER:
        raise ModelError(f"a moment is a datetime, or a whole number of microseconds since 1970, not {moment!r:.80}")
    return moment
