"""What shipping between sites costs: the topology as planners see it under one cost model.

The one hard step of planning on a network is `spread`: given what a result costs at each site without shipping, find
what it costs at each site if it may be shipped there. `Dense`, `Uniform` and `Sparse` each do it in a different way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from braid.planning.shortest_paths import spread_along

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Floats = NDArray[np.float64]

ROWS_AT_A_TIME = 64
"""The rows of a distance matrix that are handled together: few enough to stay in the processor's cache."""


class Transport(Protocol):
    """The cost per second of shipping a stream of a given volume per second."""

    @property
    def sites(self) -> int: ...

    def spread(self, values: Floats, volume: float) -> Floats:
        """For each site v the least of `values[u] + cost(volume, u, v)` over all sites u."""
        ...

    def costs_to(self, volume: float, target: int) -> Floats:
        """The cost of shipping to one site, from each site."""
        ...

    def cost(self, volume: float, source: int, target: int) -> float:
        """The cost of shipping from one site to another."""
        ...

    def matrix(self, volume: float, sites: Sequence[int]) -> Floats:
        """The cost of shipping between the given sites, from rows to columns."""
        ...

    def most(self, volume: float) -> float:
        """An upper bound of the cost of shipping from any site to any other."""
        ...


@dataclass(frozen=True, eq=False)
class Dense:
    """All distances are known, and a cost is volume times distance."""

    distances: Floats

    @property
    def sites(self) -> int:
        return len(self.distances)

    def spread(self, values: Floats, volume: float) -> Floats:
        nearest = int(values.argmin())
        reached: Floats = volume * self.distances[nearest]
        reached += values[nearest]
        # A site no cheaper than shipping from the cheapest site cannot improve any other site.
        cheaper = np.flatnonzero(values < reached)
        for start in range(0, len(cheaper), ROWS_AT_A_TIME):
            rows = cheaper[start : start + ROWS_AT_A_TIME]
            costs = self.distances[rows]
            costs *= volume
            costs += values[rows, None]
            np.minimum(reached, costs.min(axis=0), out=reached)
        return reached

    def costs_to(self, volume: float, target: int) -> Floats:
        return volume * self.distances[:, target]

    def cost(self, volume: float, source: int, target: int) -> float:
        return float(volume * self.distances[source, target])

    def matrix(self, volume: float, sites: Sequence[int]) -> Floats:
        return volume * self.distances[np.ix_(sites, sites)]

    @cached_property
    def _longest(self) -> float:
        return float(self.distances.max())

    def most(self, volume: float) -> float:
        return volume * self._longest


@dataclass(frozen=True, eq=False)
class Uniform:
    """Every site reaches every other directly, and shipping costs its volume."""

    sites: int

    def spread(self, values: Floats, volume: float) -> Floats:
        reached: Floats = np.minimum(values, values.min() + volume)
        return reached

    def costs_to(self, volume: float, target: int) -> Floats:
        costs = np.full(self.sites, volume)
        costs[target] = 0.0
        return costs

    def cost(self, volume: float, source: int, target: int) -> float:
        return 0.0 if source == target else volume

    def matrix(self, volume: float, sites: Sequence[int]) -> Floats:
        return volume * (1.0 - np.eye(len(sites)))

    def most(self, volume: float) -> float:
        return volume


@dataclass(frozen=True, eq=False)
class Sparse:
    """Links, each with a fixed cost and a cost per volume. Shortest paths are computed when they are needed."""

    per_volume: csr_array[np.float64]
    fixed: csr_array[np.float64] | None = None

    @property
    def sites(self) -> int:
        return int(self.per_volume.shape[0])

    def _lengths(self, volume: float) -> Floats:
        lengths: Floats = volume * self.per_volume.data
        return lengths if self.fixed is None else lengths + self.fixed.data

    def spread(self, values: Floats, volume: float) -> Floats:
        reached = values.copy()
        spread_along(reached, self.per_volume.indptr, self.per_volume.indices, self._lengths(volume))
        return reached

    @cached_property
    def _reversed(self) -> tuple[csr_array[np.float64], NDArray[np.int64]]:
        """The links in the reverse direction, and the position of each among the forward links."""
        from scipy.sparse import csr_array

        order = csr_array(
            (np.arange(1, self.per_volume.nnz + 1, dtype=np.float64), self.per_volume.indices, self.per_volume.indptr),
            shape=self.per_volume.shape,
        )
        back = csr_array(order.T.tocsr())
        return back, back.data.astype(np.int64) - 1

    def _costs_to(self, volume: float, targets: Sequence[int]) -> Floats:
        """The cost of shipping to each target (rows) from each site (columns)."""
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import dijkstra

        back, order = self._reversed
        graph = csr_array((self._lengths(volume)[order], back.indices, back.indptr), shape=back.shape)
        return np.asarray(dijkstra(graph, indices=list(targets)), np.float64)

    def costs_to(self, volume: float, target: int) -> Floats:
        costs: Floats = self._costs_to(volume, [target])[0]
        return costs

    def cost(self, volume: float, source: int, target: int) -> float:
        return float(self.costs_to(volume, target)[source])

    def matrix(self, volume: float, sites: Sequence[int]) -> Floats:
        return self._costs_to(volume, sites)[:, list(sites)].T

    @cached_property
    def _longest(self) -> tuple[float, float]:
        """The lengths of all links added up, per volume and fixed: no path is longer."""
        with np.errstate(over="ignore"):
            return float(self.per_volume.sum()), 0.0 if self.fixed is None else float(self.fixed.sum())

    def most(self, volume: float) -> float:
        return volume * self._longest[0] + self._longest[1]


@dataclass(frozen=True, eq=False)
class ChosenSites:
    """Some of the sites, numbered from 0. Paths between them may lead through the other sites."""

    transport: Transport
    chosen: tuple[int, ...]

    @property
    def sites(self) -> int:
        return len(self.chosen)

    def spread(self, values: Floats, volume: float) -> Floats:
        reached: Floats = (values[:, None] + self.transport.matrix(volume, self.chosen)).min(axis=0)
        return reached

    def costs_to(self, volume: float, target: int) -> Floats:
        return self.transport.costs_to(volume, self.chosen[target])[list(self.chosen)]

    def cost(self, volume: float, source: int, target: int) -> float:
        return self.transport.cost(volume, self.chosen[source], self.chosen[target])

    def matrix(self, volume: float, sites: Sequence[int]) -> Floats:
        return self.transport.matrix(volume, [self.chosen[site] for site in sites])

    def most(self, volume: float) -> float:
        return self.transport.most(volume)
