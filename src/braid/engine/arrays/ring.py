"""Consecutive rows in a ring: one stretch of memory, or two if they wrap around its end.

A ring's length is a power of two; the row with an id lies in slot `id & (length - 1)`. Copying stretches is several
times as fast as copying row by row.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

import numpy as np

from braid.engine.arrays.jit import Records, Words, compiled

Values = TypeVar("Values", bound=np.ndarray[Any, Any])


def stretches(first: int, count: int, capacity: int) -> Iterator[tuple[slice, slice]]:
    """The stretches of `count` rows with ids from `first` on: slots in the ring, and positions among the rows."""
    done = 0
    while done < count:
        slot = (first + done) & (capacity - 1)
        length = min(count - done, capacity - slot)
        yield slice(slot, slot + length), slice(done, done + length)
        done += length


def write(ring: Values, first: int, values: Values) -> None:
    """Write the values of rows with ids from `first` on into a ring."""
    slot = first & (len(ring) - 1)
    if slot + len(values) <= len(ring):
        ring[slot : slot + len(values)] = values
        return
    for slots, rows in stretches(first, len(values), len(ring)):
        ring[slots] = values[rows]


def read(ring: Values, first: int, last: int) -> Values:
    """A copy of the values of the rows from `first` up to `last`."""
    slot, count = first & (len(ring) - 1), last - first
    if slot + count <= len(ring):
        return ring[slot : slot + count].copy()  # type: ignore[return-value]
    values: Values = np.empty((count, *ring.shape[1:]), ring.dtype)  # type: ignore[assignment]
    for slots, rows in stretches(first, count, len(ring)):
        values[rows] = ring[slots]
    return values


@compiled
def write_column(ring: Records, first: int, column: int, values: Words) -> None:
    """Write values into one column of a ring of records, for the rows from `first` on."""
    mask = len(ring) - 1
    for row in range(len(values)):
        ring[(first + row) & mask, column] = values[row]


@compiled
def copy_rows(ring: Records, first: int, columns: Words, stored: Records, ids: Words) -> None:
    """Copy rows of the ring `stored` into another from `first` on; `columns` says into which column each one goes."""
    mask, stored_mask = len(ring) - 1, len(stored) - 1
    for row in range(len(ids)):
        slot, stored_slot = (first + row) & mask, ids[row] & stored_mask
        for column in range(len(columns)):
            ring[slot, columns[column]] = stored[stored_slot, column]


@compiled
def rows_below(rows: Records, limits: Words) -> Words:
    """The positions of rows that are below the limit of every column."""
    positions, count = np.empty(len(rows), np.int64), 0
    for row in range(len(rows)):
        below = True
        for column in range(len(limits)):
            below &= rows[row, column] < limits[column]
        positions[count] = row
        count += below
    return positions[:count]
