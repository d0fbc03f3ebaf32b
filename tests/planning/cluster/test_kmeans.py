"""K-means: it finds separate groups, assigns points to the nearest mean, and handles unusual inputs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from braid.planning.cluster import kmeans
from braid.planning.cluster.kmeans import bounded_clusters, cluster


def test_separate_groups_are_found() -> None:
    generator = np.random.default_rng(3)
    means = np.array([[0.0, 0.0], [100.0, 0.0], [0.0, 100.0], [100.0, 100.0], [50.0, 300.0]])
    truth = np.repeat(np.arange(5), 20)
    points = means[truth] + generator.normal(size=(100, 2))
    labels = cluster(points, 5)
    assert len({(label, group) for label, group in zip(labels.tolist(), truth.tolist(), strict=True)}) == 5


@given(st.integers(0, 10_000), st.integers(2, 9), st.integers(1, 5))
@settings(max_examples=60, deadline=None)
def test_every_point_is_in_the_group_of_the_nearest_mean(seed: int, groups: int, dimensions: int) -> None:
    points = np.random.default_rng(seed).uniform(size=(60, dimensions))
    labels = cluster(points, groups)
    means = {label: points[labels == label].mean(axis=0) for label in np.unique(labels)}
    distances = np.array([((point - means[label]) ** 2).sum() for point, label in zip(points, labels, strict=True)])
    nearest = np.array([[((point - mean) ** 2).sum() for mean in means.values()] for point in points]).min(axis=1)
    # Rounds end when the centres hardly move, so a point between two means may be in the other group.
    assert distances.sum() <= nearest.sum() * 1.02
    assert np.array_equal(labels, cluster(points.copy(), groups))


def test_blocks_of_points_give_the_same_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    points = np.random.default_rng(1).uniform(size=(200, 7))
    whole = cluster(points, 12)
    monkeypatch.setattr(kmeans, "OPERATIONS_AT_A_TIME", 500)
    assert np.array_equal(cluster(points, 12), whole)


@pytest.mark.parametrize("points", [np.zeros((9, 2)), np.repeat([[0.0], [1.0]], 5, axis=0)])
def test_fewer_distinct_points_than_groups(points: np.ndarray) -> None:
    labels = cluster(points, 4)
    assert all(len({*labels[(points == point).all(axis=1)]}) == 1 for point in np.unique(points, axis=0))


def test_bounded_clusters_are_not_too_large() -> None:
    distances = np.zeros((23, 23))
    groups = bounded_clusters(distances, 4)
    assert sorted(np.concatenate(groups).tolist()) == list(range(23))
    assert max(map(len, groups)) <= 4
