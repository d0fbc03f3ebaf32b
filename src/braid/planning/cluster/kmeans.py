"""Groups of things that are near each other, none larger than allowed."""

from __future__ import annotations

import warnings
from math import ceil

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]

SEED = 1


def cluster(points: Floats, groups: int) -> Labels:
    """The group of each point, by k-means; always the same for the same points."""
    if groups >= len(points):
        return np.arange(len(points), dtype=np.int64)
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        # Fewer distinct points than groups is no error here: some groups stay empty.
        warnings.simplefilter("ignore", ConvergenceWarning)
        labels = KMeans(groups, n_init=2, random_state=SEED).fit_predict(points)
    return np.asarray(labels, np.int64)


def bounded_clusters(distances: Floats, most: int) -> list[Labels]:
    """Split things into groups of at most `most`, near ones together, given the distances between all of them."""
    return _split(distances, np.arange(len(distances), dtype=np.int64), most)


def _split(distances: Floats, chosen: Labels, most: int) -> list[Labels]:
    if len(chosen) <= most:
        return [chosen]
    groups = ceil(len(chosen) / most)
    labels = cluster(distances[np.ix_(chosen, chosen)], groups)
    if len(np.unique(labels)) == 1:
        # All at one place: any split is as good as any other.
        labels = np.arange(len(chosen), dtype=np.int64) % groups
    return [part for label in np.unique(labels) for part in _split(distances, chosen[labels == label], most)]
