"""Routes: the links that a batch crosses from one site to another."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from braid.model.network.sites import Link
from braid.model.network.topology import Topology

Crossing = tuple[tuple[str, str], Link]
"""A link, and its two ends in the direction that it is crossed."""


def shortest_path(topology: Topology, lengths: NDArray[np.float64], source: str, target: str) -> tuple[str, ...]:
    """The sites on the shortest path, both ends included, given the length of each link."""
    from scipy.sparse.csgraph import dijkstra

    start, site = topology.position(source), topology.position(target)
    _, before = dijkstra(topology.graph(lengths), indices=[start], return_predecessors=True)
    path = [site]
    while path[-1] != start:
        path.append(int(before[0, path[-1]]))
    return tuple(topology.names[position] for position in reversed(path))


class Routes:
    """The links between sites. `paths` has the sites on the way where it is decided; else the path of least latency.

    A link without a latency counts as none.
    """

    def __init__(self, topology: Topology, paths: Mapping[tuple[str, str], tuple[str, ...]]) -> None:
        self._topology = topology
        self._paths = dict(paths)

    @cached_property
    def _links(self) -> dict[tuple[str, str], Link]:
        links = {}
        for link in self._topology.links:
            links[link.source, link.target] = link
            if not link.one_way:
                links[link.target, link.source] = link
        return links

    def between(self, source: str, target: str) -> tuple[Crossing, ...]:
        """The links of a path in order."""
        if (source, target) not in self._paths:
            latencies = np.array([link.latency or 0.0 for link in self._topology.links])
            self._paths[source, target] = shortest_path(self._topology, latencies, source, target)
        return tuple((ends, self._links[ends]) for ends in pairwise(self._paths[source, target]))
