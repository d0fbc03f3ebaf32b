"""Rows that follow each other in a ring: one stretch of memory, or two where they go round its end.

Copying stretches is several times as fast as going to each row by its place.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

import numpy as np

from braid.engine.arrays.jit import Records, Words, compiled

Values = TypeVar("Values", bound=np.ndarray[Any, Any])


def stretches(first: int, count: int, capacity: int) -> Iterator[tuple[slice, slice]]:
    """Where the rows with ids from `first` on lie in a ring, and which of them these are."""
    done = 0
    while done < count:
        place = (first + done) & (capacity - 1)
        length = min(count - done, capacity - place)
        yield slice(place, place + length), slice(done, done + length)
        done += length


def write(ring: Values, first: int, values: Values) -> None:
    """Put values into a ring for the rows from `first` on."""
    place = first & (len(ring) - 1)
    if place + len(values) <= len(ring):
        ring[place : place + len(values)] = values
        return
    for places, rows in stretches(first, len(values), len(ring)):
        ring[places] = values[rows]


def read(ring: Values, first: int, last: int) -> Values:
    """A copy of the values of the rows from `first` up to `last`."""
    place, count = first & (len(ring) - 1), last - first
    if place + count <= len(ring):
        return ring[place : place + count].copy()  # type: ignore[return-value]
    values: Values = np.empty((last - first, *ring.shape[1:]), ring.dtype)  # type: ignore[assignment]
    for places, rows in stretches(first, last - first, len(ring)):
        values[rows] = ring[places]
    return values


@compiled
def lay_one(ring: Records, first: int, column: int, values: Words) -> None:
    """Put values into one column of a ring of tables' rows, from `first` on."""
    mask = len(ring) - 1
    for row in range(len(values)):
        ring[(first + row) & mask, column] = values[row]


@compiled
def lay_all(ring: Records, first: int, columns: Words, stored: Records, ids: Words) -> None:
    """Put rows of another ring, each of its columns where `columns` says, into this one from `first` on."""
    mask, stored_mask = len(ring) - 1, len(stored) - 1
    for row in range(len(ids)):
        place, source = (first + row) & mask, ids[row] & stored_mask
        for column in range(len(columns)):
            ring[place, columns[column]] = stored[source, column]


@compiled
def all_below(rows: Records, limits: Words) -> Words:
    """Which rows of a table are below the limit of each of its columns."""
    places, found = np.empty(len(rows), np.int64), 0
    for row in range(len(rows)):
        below = True
        for column in range(len(limits)):
            below &= rows[row, column] < limits[column]
        places[found] = row
        found += below
    return places[:found]
