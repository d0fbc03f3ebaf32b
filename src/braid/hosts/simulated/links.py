"""Links in virtual time: when bytes that leave one site reach another, and how many have crossed each link."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import networkx as nx

from braid.model.network.sites import Link
from braid.model.network.topology import Topology


@dataclass
class Traffic:
    """What has crossed a link, in both directions together."""

    bytes: int = 0
    rows: int = 0
    batches: int = 0


class VirtualLinks:
    """Batches take the path of least latency, link by link. A link carries one batch at a time in each direction.

    A link without a latency takes no time, and one without a bandwidth takes any number of bytes at once.
    """

    def __init__(self, topology: Topology) -> None:
        self._graph: nx.DiGraph[str] = nx.DiGraph()
        self._graph.add_nodes_from(topology.names)
        for link in topology.links:
            self._add(link.source, link.target, link)
            if not link.one_way:
                self._add(link.target, link.source, link)
        self._free_at: dict[tuple[str, str], float] = {}
        self.traffic = {str(link): Traffic() for link in topology.links}
        self._path = cache(self._shortest_path)

    def _add(self, source: str, target: str, link: Link) -> None:
        self._graph.add_edge(source, target, link=link, latency=link.latency or 0.0)

    def _shortest_path(self, source: str, target: str) -> tuple[tuple[str, str], ...]:
        sites = nx.shortest_path(self._graph, source, target, weight="latency")
        return tuple(pairwise(sites))

    def send(self, source: str, target: str, size: int, rows: int, now: float) -> float:
        """When a batch that leaves now is at its target."""
        for ends in self._path(source, target):
            link: Link = self._graph.edges[ends]["link"]
            begins = max(now, self._free_at.get(ends, 0.0))
            sent = begins + (0.0 if link.bandwidth is None else size / link.bandwidth)
            self._free_at[ends] = sent
            now = sent + (link.latency or 0.0)
            traffic = self.traffic[str(link)]
            traffic.bytes += size
            traffic.rows += rows
            traffic.batches += 1
        return now

    def used(self) -> Mapping[str, Traffic]:
        """The links that anything has crossed."""
        return {name: traffic for name, traffic in self.traffic.items() if traffic.batches}
