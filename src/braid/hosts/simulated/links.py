"""Links in virtual time: when bytes that leave one site reach another, and how many have crossed each link."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import inf
from typing import NamedTuple

from braid.model.network.routes import Routes
from braid.model.network.topology import Topology
from braid.planning.deployment import Deployment
from braid.planning.solution.partitioned import PartitionedSolution
from braid.runtime.sites.traffic import Traffic, planned_traffic


class Slowdown(NamedTuple):
    """A link is this many times slower for a while; by default it carries nothing."""

    begin: float
    end: float
    link: str
    factor: float = inf


class Crossing(NamedTuple):
    """Bytes that have crossed a link, and the second at which they began to."""

    time: float
    link: str
    bytes: int


class VirtualLinks:
    """Batches of a query take the paths that its plans chose. A link carries one batch at a time in each direction.

    `plans` has the plans of each query. The traffic of a link shows the bytes that the first plan expected beside those
    that crossed. A link without a latency takes no time, and one without a bandwidth takes any number of bytes at once.
    """

    def __init__(
        self, topology: Topology, plans: Mapping[str, Sequence[Deployment]], slowdowns: Iterable[Slowdown] = ()
    ) -> None:
        self._plans = {query: list(planned) for query, planned in plans.items()}
        self._route(topology)
        self._slowdowns = sorted(slowdowns)
        self._free_at: dict[tuple[str, str], float] = {}
        self._order = [str(link) for link in topology.links]
        self._traffic = {
            query: defaultdict(Traffic, planned_traffic(planned[0].bill, self._routes[query]))
            for query, planned in plans.items()
        }
        self._crossings: dict[str, list[Crossing]] = {query: [] for query in plans}

    def _route(self, topology: Topology) -> None:
        self._topology = topology
        self._fastest = Routes(topology, {})
        self._routes = {
            query: Routes(topology, {ends: path for plan in planned for ends, path in plan.paths.items()})
            for query, planned in self._plans.items()
        }

    def choose(self, query: str, plan: Deployment) -> None:
        """Let the batches of a query take the paths of one more plan."""
        self._plans[query].append(plan)
        self._route(self._topology)

    def rewire(self, topology: Topology) -> None:
        """Use links with other figures from now on, on the paths that cost least by them."""
        for query, plans in self._plans.items():
            self._plans[query] = [_rerouted(plan, topology) for plan in plans]
        self._route(topology)

    def crossings(self, query: str) -> tuple[Crossing, ...]:
        """Everything of a query that has crossed a link, in the order in which it was sent."""
        return tuple(self._crossings[query])

    def send(self, query: str, source: str, target: str, size: int, rows: int, now: float) -> float:
        """Send a batch of a query now; returns when it is at its target."""
        for ends, link in self._routes[query].between(source, target):
            begins = self._up(str(link), max(now, self._free_at.get(ends, 0.0)))
            factor = self._factor(str(link), begins)
            sent = begins + (0.0 if link.bandwidth is None else factor * size / link.bandwidth)
            self._free_at[ends] = sent
            now = sent + factor * (link.latency or 0.0)
            self._traffic[query][str(link)].add(size, rows)
            self._crossings[query].append(Crossing(begins, str(link), size))
        return now

    def _up(self, link: str, moment: float) -> float:
        """The first time from `moment` on at which a link works. What is sent during an outage waits."""
        for slowdown in self._slowdowns:
            if slowdown.link == link and slowdown.factor == inf and slowdown.begin <= moment < slowdown.end:
                moment = slowdown.end
        return moment

    def _factor(self, link: str, moment: float) -> float:
        """How many times slower than usual a link is that works."""
        factor = 1.0
        for slowdown in self._slowdowns:
            if slowdown.link == link and slowdown.factor < inf and slowdown.begin <= moment < slowdown.end:
                factor = max(factor, slowdown.factor)
        return factor

    def arrival(self, source: str, target: str, now: float) -> float:
        """When a small message that leaves now is at its target. It does not count as traffic."""
        for _, link in self._fastest.between(source, target):
            now = self._up(str(link), now)
            now += self._factor(str(link), now) * (link.latency or 0.0)
        return now

    def used_by(self, query: str) -> Mapping[str, Traffic]:
        """The links that anything of a query has crossed, or was planned to."""
        return {link: self._traffic[query][link] for link in self._order if link in self._traffic[query]}

    def used(self) -> Mapping[str, Traffic]:
        """The links that anything has crossed, or was planned to."""
        total: dict[str, Traffic] = defaultdict(Traffic)
        for links in self._traffic.values():
            for link, traffic in links.items():
                total[link].add(traffic.bytes, traffic.rows, traffic.batches)
                if traffic.planned is not None:
                    total[link].expect(traffic.planned)
        return {link: total[link] for link in self._order if link in total}


def _rerouted(plan: Deployment, topology: Topology) -> Deployment:
    """The same plan over a network whose links have other figures."""
    solution = plan.solution
    if isinstance(solution, PartitionedSolution):
        whole = replace(solution.whole, problem=replace(solution.problem, topology=topology))
        return Deployment(plan.planner, replace(solution, whole=whole))
    return Deployment(plan.planner, replace(solution, problem=replace(solution.problem, topology=topology)))
