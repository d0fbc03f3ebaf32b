"""Partition functions: ways to divide the values of a join attribute into parts."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from braid.planning.cluster.kmeans import cluster
from braid.planning.deadline import NO_DEADLINE, Deadline

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]


class PartitionFunction(Protocol):
    """Returns the part of each value, from 0 to `parts - 1`.

    `rates` is a matrix of rates: one row per stream, one column per value. A column may stand for several values that
    belong together; `counts` has the number of values in each column.
    """

    def __call__(
        self, rates: Floats, parts: int, deadline: Deadline = NO_DEADLINE, counts: Floats | None = None
    ) -> Labels: ...


def by_hash(rates: Floats, parts: int, deadline: Deadline = NO_DEADLINE, counts: Floats | None = None) -> Labels:
    """Values in random parts, always the same for the same values."""
    # Multiplying by an odd constant mixes numbers well (Knuth), in particular the high bits.
    numbers = np.arange(1, rates.shape[1] + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return ((numbers >> np.uint64(32)) % np.uint64(parts)).astype(np.int64)


def by_range(rates: Floats, parts: int, deadline: Deadline = NO_DEADLINE, counts: Floats | None = None) -> Labels:
    """Ranges of neighbouring values, with the same number of values in each part.

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
    """Values with a similar order of the streams by rate are in one part (k-means on rank vectors)."""
    return cluster(ranks(rates).astype(np.float64), parts, deadline)


def ranks(rates: Floats) -> Labels:
    """For each value, the rank of each stream by its rate there, from 1.

    >>> ranks(np.array([[20.0], [30.0], [10.0]]))
    array([[2, 3, 1]])
    """
    order = rates.argsort(axis=0, kind="stable")
    rank_of = np.empty_like(order)
    np.put_along_axis(rank_of, order, np.arange(1, len(rates) + 1)[:, None], axis=0)
    return rank_of.T.astype(np.int64)


FUNCTIONS: dict[str, PartitionFunction] = {"hash": by_hash, "range": by_range, "rate": by_rate}
