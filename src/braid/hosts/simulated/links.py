"""Links in virtual time: when bytes that leave one site reach another, and how many have crossed each link."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from braid.model.network.routes import Routes
from braid.model.network.topology import Topology
from braid.runtime.sites.traffic import Traffic


class Outage(NamedTuple):
    """A link carries nothing for a while."""

    begin: float
    end: float
    link: str


class VirtualLinks:
    """Batches take the path of least latency, link by link. A link carries one batch at a time in each direction.

    A link without a latency takes no time, and one without a bandwidth takes any number of bytes at once.
    """

    def __init__(self, topology: Topology, outages: Iterable[Outage] = ()) -> None:
        self._routes = Routes(topology)
        self._outages = sorted(outages)
        self._free_at: dict[tuple[str, str], float] = {}
        self._order = [str(link) for link in topology.links]
        self._traffic: dict[str, dict[str, Traffic]] = defaultdict(lambda: defaultdict(Traffic))

    def send(self, query: str, source: str, target: str, size: int, rows: int, now: float) -> float:
        """When a batch of a query that leaves now is at its target."""
        for ends, link in self._routes.between(source, target):
            begins = self._up(str(link), max(now, self._free_at.get(ends, 0.0)))
            sent = begins + (0.0 if link.bandwidth is None else size / link.bandwidth)
            self._free_at[ends] = sent
            now = sent + (link.latency or 0.0)
            self._traffic[query][str(link)].add(size, rows)
        return now

    def _up(self, link: str, moment: float) -> float:
        """When a link works again, if it does not work at a moment. What is sent meanwhile waits."""
        for outage in self._outages:
            if outage.link == link and outage.begin <= moment < outage.end:
                moment = outage.end
        return moment

    def arrival(self, source: str, target: str, now: float) -> float:
        """When a small message that leaves now is at its target. It does not count as traffic."""
        for _, link in self._routes.between(source, target):
            now = self._up(str(link), now) + (link.latency or 0.0)
        return now

    def used_by(self, query: str) -> Mapping[str, Traffic]:
        """The links that anything of a query has crossed."""
        return {link: self._traffic[query][link] for link in self._order if link in self._traffic[query]}

    def used(self) -> Mapping[str, Traffic]:
        """The links that anything has crossed."""
        total: dict[str, Traffic] = defaultdict(Traffic)
        for links in self._traffic.values():
            for link, traffic in links.items():
                total[link].add(traffic.bytes, traffic.rows, traffic.batches)
        return {link: total[link] for link in self._order if link in total}
