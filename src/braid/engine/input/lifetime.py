"""The lifetimes of rows: from event times to starts and ends, in microseconds."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from braid.engine.arrays.jit import Words
from braid.model.window import FOREVER, Window


def event_times(column: pa.Array) -> Words:
    """Event times in whole microseconds; finer ones are rounded down. The column holds no nulls."""
    stored: Words = column.view(pa.int64()).to_numpy(zero_copy_only=False)
    if column.type.unit == "ns":
        return stored // 1_000
    # The smallest 64-bit number has no negative; one microsecond more has.
    stored = np.maximum(stored, -FOREVER)
    scale = {"us": 1, "ms": 1_000, "s": 1_000_000}[column.type.unit]
    if scale == 1:
        return stored
    latest = FOREVER // scale
    return np.clip(stored, -latest, latest) * scale


def lifetimes(times: Words, window: Window) -> tuple[Words, Words]:
    """Starts and ends of rows. An end that the window alone does not tell is FOREVER."""
    starts = starts_of(times, window)
    if window.ends_at is not None:
        return starts, _add(starts, window.ends_at - starts % window.ends_at)
    if window.lifetime is None or window.lifetime == FOREVER:
        return starts, np.full(len(times), FOREVER)
    return starts, _add(starts, window.lifetime)


def ends_in(column: pa.Array) -> Words:
    """The ends that a column of timestamps holds; FOREVER where it is null."""
    ends = np.full(len(column), FOREVER)
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    ends[valid] = event_times(column.drop_null())
    return ends


def starts_of(times: Words, window: Window) -> Words:
    """When the lifetimes of rows start: at their event times, or at the next multiple of the slide."""
    return times if window.slide is None else _round_up(times, window.slide)


def _round_up(times: Words, multiple: int) -> Words:
    return _add(times, -times % multiple)


def _add(times: Words, length: int | Words) -> Words:
    """A sum that is at most FOREVER, instead of wrapping around."""
    return np.where(times > FOREVER - length, FOREVER, times + length)
