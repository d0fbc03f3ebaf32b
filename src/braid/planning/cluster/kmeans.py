"""Groups of things that are near each other, none larger than allowed.

K-means as everybody knows it (greedy k-means++ to begin with, then Lloyd's rounds), written out here because planning
may have a deadline: a library does it in one call of seconds on a large network, after an import of seconds.
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
"""The better of so many results, each from other first centres."""
MOST_ROUNDS = 300
SETTLED = 1e-4
"""Rounds end when the centres move, squared and in all, by no more than this share of the mean variance."""
OPERATIONS_AT_A_TIME = 1 << 29
"""So many multiplications happen before the deadline is looked at again: some hundredths of a second."""


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
    """Points far from each other: of a few drawn by their distance to those before, always the one that helps most."""
    chosen = [int(generator.uniform() * len(points))]
    nearest = _apart(points, squares, chosen)[0]
    trials = 2 + int(log(groups))
    while len(chosen) < groups:
        deadline.check()
        drawn = generator.uniform(size=trials) * nearest.sum()
        candidates = np.minimum(np.searchsorted(np.cumsum(nearest), drawn), len(points) - 1)
        apart = np.minimum(nearest, _apart(points, squares, candidates.tolist()))
        best = int(apart.sum(axis=1).argmin())
        nearest = apart[best]
        chosen.append(int(candidates[best]))
    return points[chosen]


def _apart(points: Floats, squares: Floats, chosen: list[int]) -> Floats:
    """Squared distances from some of the points (rows) to all of them."""
    apart: Floats = squares[chosen][:, None] + squares - 2.0 * (points[chosen] @ points.T)
    return np.maximum(apart, 0.0)


def _settle(points: Floats, squares: Floats, centres: Floats, deadline: Deadline) -> tuple[Labels, float]:
    """Lloyd's rounds: points to the nearest centre, centres to the middle of their points; a centre without stays."""
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
    """The centre that is nearest to each point, and the sum of squared distances to them."""
    lengths = np.einsum("ij,ij->i", centres, centres)
    labels, spread = np.empty(len(points), np.int64), 0.0
    at_a_time = max(1, OPERATIONS_AT_A_TIME // centres.size)
    for start in range(0, len(points), at_a_time):
        deadline.check()
        rows = slice(start, start + at_a_time)
        # The square of the point itself is the same for all centres.
        beyond = lengths - 2.0 * (points[rows] @ centres.T)
        labels[rows] = beyond.argmin(axis=1)
        spread += float((beyond.min(axis=1) + squares[rows]).sum())
    return labels, spread


def bounded_clusters(distances: Floats, most: int, deadline: Deadline = NO_DEADLINE) -> list[Labels]:
    """Split things into groups of at most `most`, near ones together, given the distances between all of them."""
    return _split(distances, np.arange(len(distances), dtype=np.int64), most, deadline)


def _split(distances: Floats, chosen: Labels, most: int, deadline: Deadline) -> list[Labels]:
    if len(chosen) <= most:
        return [chosen]
    groups = ceil(len(chosen) / most)
    labels = cluster(distances[np.ix_(chosen, chosen)], groups, deadline)
    if len(np.unique(labels)) == 1:
        # All at one place: any split is as good as any other.
        labels = np.arange(len(chosen), dtype=np.int64) % groups
    return [part for label in np.unique(labels) for part in _split(distances, chosen[labels == label], most, deadline)]
