"""Links in virtual time: when bytes that leave one site reach another, and how many have crossed each link."""

from __future__ import annotations

from collections.abc import Mapping

from braid.model.network.routes import Routes
from braid.model.network.topology import Topology
from braid.runtime.sites.traffic import Traffic


class VirtualLinks:
    """Batches take the path of least latency, link by link. A link carries one batch at a time in each direction.

    A link without a latency takes no time, and one without a bandwidth takes any number of bytes at once.
    """

    def __init__(self, topology: Topology) -> None:
        self._routes = Routes(topology)
        self._free_at: dict[tuple[str, str], float] = {}
        self.traffic = {str(link): Traffic() for link in topology.links}

    def send(self, source: str, target: str, size: int, rows: int, now: float) -> float:
        """When a batch that leaves now is at its target."""
        for ends, link in self._routes.between(source, target):
            begins = max(now, self._free_at.get(ends, 0.0))
            sent = begins + (0.0 if link.bandwidth is None else size / link.bandwidth)
            self._free_at[ends] = sent
            now = sent + (link.latency or 0.0)
            self.traffic[str(link)].add(size, rows)
        return now

    def used(self) -> Mapping[str, Traffic]:
        """The links that anything has crossed."""
        return {name: traffic for name, traffic in self.traffic.items() if traffic.batches}
