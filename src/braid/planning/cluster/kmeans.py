"""K-means clustering, and clusters of bounded size.

This is the usual k-means (greedy k-means++ for the first centres, then Lloyd's algorithm). It is written out here
because planning may have a deadline: a library takes seconds in one call on a large network, and seconds to import.
"""

from __future__ import annotations

from math import ceil, inf, log

import numpy as np
from numpy.typing import NDArray

from braid.planning.deadline import NO_DEADLINE, Deadline

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]

SEED = 1
STARTS = 2
"""The number of runs, each from other first centres; the best one counts."""
MOST_ROUNDS = 300
"""The most rounds of Lloyd's algorithm in a run."""
SETTLED = 1e-4
"""Rounds end when the sum of squared moves of the centres is at most this share of the mean variance."""
OPERATIONS_AT_A_TIME = 1 << 29
"""The multiplications between two checks of the deadline: some hundredths of a second."""


def cluster(points: Floats, groups: int, deadline: Deadline = NO_DEADLINE) -> Labels:
    """The group of each point, by k-means; always the same for the same points.

    >>> cluster(np.array([[0.0], [10.0], [0.1], [10.1]]), 2)
    array([1, 0, 1, 0])
    """
    if groups >= len(points):
        return np.arange(len(points), dtype=np.int64)
    generator = np.random.RandomState(SEED)
    points = points - points.mean(axis=0)
    squares = np.einsum("ij,ij->i", points, points)
    best, least = np.zeros(len(points), np.int64), inf
    for _ in range(STARTS):
        centres = _first_centres(points, squares, groups, generator, deadline)
        labels, spread = _settle(points, squares, centres, deadline)
        if spread < least:
            best, least = labels, spread
    return best


def _first_centres(
    points: Floats, squares: Floats, groups: int, generator: np.random.RandomState, deadline: Deadline
) -> Floats:
    """The first centres, by greedy k-means++: points far from each other.

    Each round draws a few points, with a probability by their squared distance to the nearest centre so far, and takes
    the one that lowers the sum of these distances most.
    """
    chosen = [int(generator.uniform() * len(points))]
    nearest = _squared_distances(points, squares, chosen)[0]
    trials = 2 + int(log(groups))
    while len(chosen) < groups:
        deadline.check()
        drawn = generator.uniform(size=trials) * nearest.sum()
        candidates = np.minimum(np.searchsorted(np.cumsum(nearest), drawn), len(points) - 1)
        distances = np.minimum(nearest, _squared_distances(points, squares, candidates.tolist()))
        best = int(distances.sum(axis=1).argmin())
        nearest = distances[best]
        chosen.append(int(candidates[best]))
    return points[chosen]


def _squared_distances(points: Floats, squares: Floats, chosen: list[int]) -> Floats:
    """Squared distances from the chosen points (rows) to all points."""
    distances: Floats = squares[chosen][:, None] + squares - 2.0 * (points[chosen] @ points.T)
    return np.maximum(distances, 0.0)


def _settle(points: Floats, squares: Floats, centres: Floats, deadline: Deadline) -> tuple[Labels, float]:
    """Lloyd's algorithm: assign points to the nearest centre, move centres to the mean of their points, and repeat.

    A centre without points stays where it is.
    """
    from scipy.sparse import csr_array

    tolerance = SETTLED * float(points.var(axis=0).mean())
    labels = np.full(len(points), -1, np.int64)
    for _ in range(MOST_ROUNDS):
        before = labels
        labels, spread = _nearest(points, squares, centres, deadline)
        if np.array_equal(labels, before):
            return labels, spread
        deadline.check()
        counts = np.bincount(labels, minlength=len(centres))
        members = csr_array((np.ones(len(points)), (labels, np.arange(len(points)))), (len(centres), len(points)))
        moved = np.where(counts[:, None] > 0, (members @ points) / np.maximum(counts, 1)[:, None], centres)
        shift = float(((moved - centres) ** 2).sum())
        centres = moved
        if shift <= tolerance:
            break
    return _nearest(points, squares, centres, deadline)


def _nearest(points: Floats, squares: Floats, centres: Floats, deadline: Deadline) -> tuple[Labels, float]:
    """The nearest centre of each point, and the sum of squared distances to them."""
    lengths = np.einsum("ij,ij->i", centres, centres)
    labels, spread = np.empty(len(points), np.int64), 0.0
    at_a_time = max(1, OPERATIONS_AT_A_TIME // centres.size)
    for start in range(0, len(points), at_a_time):
        deadline.check()
        rows = slice(start, start + at_a_time)
        # The squared distance is this plus the square of the point, which is the same for all centres.
        relative = lengths - 2.0 * (points[rows] @ centres.T)
        labels[rows] = relative.argmin(axis=1)
        spread += float((relative.min(axis=1) + squares[rows]).sum())
    return labels, spread


def bounded_clusters(distances: Floats, most: int, deadline: Deadline = NO_DEADLINE) -> list[Labels]:
    """Split points into groups of at most `most` near points, given the distances between all points."""
    return _split(distances, np.arange(len(distances), dtype=np.int64), most, deadline)


def _split(distances: Floats, chosen: Labels, most: int, deadline: Deadline) -> list[Labels]:
    if len(chosen) <= most:
        return [chosen]
    groups = ceil(len(chosen) / most)
    labels = cluster(distances[np.ix_(chosen, chosen)], groups, deadline)
    if len(np.unique(labels)) == 1:
        # All points are at the same place: any split is as good as any other.
        labels = np.arange(len(chosen), dtype=np.int64) % groups
    split: list[Labels] = []
    for label in np.unique(labels):
        split += _split(distances, chosen[labels == label], most, deadline)
    return split
