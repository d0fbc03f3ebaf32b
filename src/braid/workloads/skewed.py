"""Streams joined on one attribute with a skewed distribution of values, as in the PMJoin paper."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from braid.model.network.generators import fully_connected
from braid.planning.cost.models import MODELS
from braid.planning.partition.inputs import star_query
from braid.planning.partition.values import ByValue
from braid.planning.problem import Problem

Floats = NDArray[np.float64]
ShareFunction = Callable[[int], Floats]
"""A distribution: given the number of values, the share of rows that each value has."""


def uniform(values: int) -> Floats:
    return np.full(values, 1 / values)


def normal(deviation: float) -> ShareFunction:
    """A normal distribution around the middle value; the deviation is a share of the range of values."""

    def shares(values: int) -> Floats:
        apart = (np.arange(values) - values / 2) / (deviation * values)
        weights = np.exp(-(apart**2) / 2)
        return np.asarray(weights / weights.sum(), np.float64)

    return shares


def zipf(skew: float) -> ShareFunction:
    def shares(values: int) -> Floats:
        weights = np.arange(1, values + 1, dtype=np.float64) ** -skew
        return np.asarray(weights / weights.sum(), np.float64)

    return shares


def self_similar(share: float) -> ShareFunction:
    """The first `share` of the values has `1 - share` of the weight, and within it the same again."""

    def shares(values: int) -> Floats:
        power = np.log(1 - share) / np.log(share)
        ends = (np.arange(values + 1) / values) ** power
        return np.diff(ends)

    return shares


def any_distribution(generator: np.random.Generator) -> ShareFunction:
    """One of the distributions above at random, with random settings in the ranges of the paper."""
    kind = int(generator.integers(4))
    if kind == 0:
        return uniform
    if kind == 1:
        return normal(float(generator.uniform(0.02, 0.3)))
    if kind == 2:
        return zipf(float(generator.uniform(0.1, 1.5)))
    return self_similar(float(generator.uniform(0.1, 0.9)))


def similar_distribution(generator: np.random.Generator) -> ShareFunction:
    """A distribution with little skew, in the same direction for all streams."""
    return zipf(float(generator.uniform(0.1, 0.3)))


@dataclass(frozen=True)
class Spread:
    """How values are distributed: alike in all streams or not, and with frequent values side by side or anywhere."""

    similar: bool
    contiguous: bool = True

    def draw(self, generator: np.random.Generator, streams: int, values: int) -> Floats:
        """The share of each value (columns) in each stream (rows)."""
        choose = similar_distribution if self.similar else any_distribution
        rows = []
        for _ in range(streams):
            shares = choose(generator)(values)
            if not self.similar:
                # Different streams have different frequent values.
                shares = np.roll(shares, int(generator.integers(values)))
            rows.append(shares)
        table = np.array(rows)
        return table if self.contiguous else table[:, generator.permutation(values)]


def skewed_join(rates: Floats, shares: Floats, seconds: Floats, sites: Sequence[int] | None = None) -> Problem:
    """A join of streams on one attribute. Each stream has its own site, unless `sites` gives the sites."""
    names = tuple(f"S{stream}" for stream in range(len(rates)))
    origins = tuple(range(len(rates))) if sites is None else tuple(sites)
    figures = ByValue(names, rates[:, None] * shares, np.ones(shares.shape[1]), seconds)
    topology = fully_connected(max(2, max(origins) + 1))
    return Problem(star_query(names), topology, figures, MODELS["communication"], origins)
