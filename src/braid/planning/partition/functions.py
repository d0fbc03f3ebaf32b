"""Ways to divide the values of a join attribute into parts."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from braid.planning.cluster.kmeans import cluster
from braid.planning.deadline import NO_DEADLINE, Deadline

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]


class PartitionFunction(Protocol):
    """The part, from 0 to `parts - 1`, of each value, given the rates of all streams (rows) at all values (columns).

    A column may stand for several values that go together: `counts` says for how many.
    """

    def __call__(
        self, rates: Floats, parts: int, deadline: Deadline = NO_DEADLINE, counts: Floats | None = None
    ) -> Labels: ...


def by_hash(rates: Floats, parts: int, deadline: Deadline = NO_DEADLINE, counts: Floats | None = None) -> Labels:
    """Values thrown together at random, but always in the same way."""
    # Multiplying by an odd constant mixes numbers well (Knuth); the high bits are the good ones.
    numbers = np.arange(1, rates.shape[1] + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return ((numbers >> np.uint64(32)) % np.uint64(parts)).astype(np.int64)


def by_range(rates: Floats, parts: int, deadline: Deadline = NO_DEADLINE, counts: Floats | None = None) -> Labels:
    """Values next to each other together, the same number of them in each part.

    >>> by_range(np.zeros((1, 6)), 3)
    array([0, 0, 1, 1, 2, 2])
    >>> by_range(np.zeros((1, 4)), 2, counts=np.array([1.0, 1.0, 1.0, 3.0]))
    array([0, 0, 0, 1])
    """
    counts = np.ones(rates.shape[1]) if counts is None else counts
    before = np.cumsum(counts) - counts
    labels: Labels = (before * parts // max(counts.sum(), 1.0)).astype(np.int64)
    return labels


def by_rate(rates: Floats, parts: int, deadline: Deadline = NO_DEADLINE, counts: Floats | None = None) -> Labels:
    """Values together at which the streams, sorted by rate, are in a similar order (k-means on rank vectors)."""
    return cluster(ranks(rates).astype(np.float64), parts, deadline)


def ranks(rates: Floats) -> Labels:
    """For each value, the place of each stream in order of its rate there, from 1.

    >>> ranks(np.array([[20.0], [30.0], [10.0]]))
    array([[2, 3, 1]])
    """
    order = rates.argsort(axis=0, kind="stable")
    places = np.empty_like(order)
    np.put_along_axis(places, order, np.arange(1, len(rates) + 1)[:, None], axis=0)
    return places.T.astype(np.int64)


FUNCTIONS: dict[str, PartitionFunction] = {"hash": by_hash, "range": by_range, "rate": by_rate}
