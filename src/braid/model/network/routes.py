"""Routes: the links that a batch crosses from one site to another."""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import networkx as nx

from braid.errors import TopologyError
from braid.model.network.sites import Link
from braid.model.network.topology import Topology


class Routes:
    """The paths of least latency; a link without a latency counts as none."""

    def __init__(self, topology: Topology) -> None:
        self._graph: nx.DiGraph[str] = nx.DiGraph()
        self._graph.add_nodes_from(topology.names)
        for link in topology.links:
            self._add(link.source, link.target, link)
            if not link.one_way:
                self._add(link.target, link.source, link)
        self.between = cache(self._between)

    def _add(self, source: str, target: str, link: Link) -> None:
        self._graph.add_edge(source, target, link=link, latency=link.latency or 0.0)

    def _between(self, source: str, target: str) -> tuple[tuple[tuple[str, str], Link], ...]:
        """The links of a path in order, each with its two ends in the direction that it is crossed."""
        try:
            sites = nx.shortest_path(self._graph, source, target, weight="latency")
        except nx.NetworkXNoPath as error:
            raise TopologyError(f"there is no path from '{source}' to '{target}'; add a link") from error
        return tuple((ends, self._graph.edges[ends]["link"]) for ends in pairwise(sites))
