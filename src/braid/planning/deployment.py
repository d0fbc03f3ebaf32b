"""A planned query: which operator runs at which site, and what that costs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from braid.model.advertisement import Advertisement, Flow, subquery
from braid.model.html import heading, text_block
from braid.model.network.routes import shortest_path
from braid.model.plan import Plan
from braid.model.predicate import Predicate
from braid.model.program import SiteProgram
from braid.model.query import Query
from braid.model.statistics import Statistics
from braid.model.tree import JoinTree, Leaf, leaves, merges
from braid.planning.cost.bill import Bill
from braid.planning.lowering.lower import site_programs
from braid.planning.solution.solution import Solution
from braid.planning.solution.tree import TreeSolution


@dataclass(frozen=True, eq=False)
class Deployment:
    """A plan for a query with a site for each operator.

    `plan` holds the probe sequence of each head, `tree` the join tree (None if each head has its own order),
    `placement` the site of each operator, `programs` the program of each site, `bill` every charge that makes up the
    `cost`, and `considered` the number of alternatives that the planner compared.
    """

    planner: str
    solution: Solution

    @property
    def query(self) -> Query:
        return self.solution.problem.query

    @property
    def statistics(self) -> Statistics:
        """What was known of the streams."""
        return self.solution.problem.statistics

    @property
    def cost(self) -> float:
        return self.bill.total

    @cached_property
    def bill(self) -> Bill:
        return self.solution.bill

    @cached_property
    def paths(self) -> Mapping[tuple[str, str], tuple[str, ...]]:
        """The sites on the way between each two sites that the deployment ships between: the path of least cost.

        Where that depends on the volume, it is the path of the stream with the largest one.
        """
        problem, volumes = self.solution.problem, dict[tuple[str, str], float]()
        for (_, source, target), volume in self.bill.shipments.items():
            volumes[source, target] = max(volume, volumes.get((source, target), 0.0))
        lengths = problem.model.lengths
        return {
            ends: shortest_path(problem.topology, lengths(problem.topology, volume), *ends)
            for ends, volume in volumes.items()
        }

    @property
    def considered(self) -> int:
        return max(self.solution.considered, 1)

    @cached_property
    def plan(self) -> Plan:
        return self.solution.plan

    @property
    def tree(self) -> JoinTree | None:
        return getattr(self.solution, "tree", None)

    @property
    def placement(self) -> Mapping[Any, str]:
        return self.solution.placement

    @cached_property
    def programs(self) -> Mapping[str, SiteProgram]:
        return site_programs(self.solution)

    @cached_property
    def advertised(self) -> tuple[Advertisement, ...]:
        """The derived streams that later queries may use, without weakening their filters."""
        return self.advertise()

    def advertise(self, *, weaken: bool = False) -> tuple[Advertisement, ...]:
        """The derived streams that this deployment makes or uses, for later queries.

        With `weaken`, later queries may have filters of this deployment let more rows through.
        """
        solution = self.solution
        if not isinstance(solution, TreeSolution):
            # Sequences of heads and partitioned joins do not make all rows of a join at one site.
            return ()
        advertisements = []
        for join in (*leaves(solution.tree), *merges(solution.tree)):
            if not isinstance(join, Leaf):
                may_weaken = weaken and all(match.advertisement.may_weaken for match in solution.reused(join))
                flows = tuple(_flows(solution, join)) if may_weaken else ()
                joined = subquery(self.query, join.streams)
                advertisements.append(Advertisement(joined, solution.site(join), flows, may_weaken))
        return tuple(advertisements)

    @property
    def weakened(self) -> tuple[tuple[Advertisement, Predicate], ...]:
        """The filters of derived streams that must let more rows through for this deployment, as the owners wrote them.

        Until the owner checks them after the join instead, this deployment misses rows.
        """
        solution = self.solution
        if not isinstance(solution, TreeSolution):
            return ()
        reused = solution.reused(solution.tree)
        return tuple((match.advertisement, predicate) for match in reused for predicate in match.weakened)

    def _repr_html_(self) -> str:
        return heading(f"plan by {self.planner}") + text_block(self.explain())

    def explain(self) -> str:
        """The deployment as text: the site of each operator, and the charges that make up the cost."""
        sink = self.solution.problem.sink
        delivered = "" if sink is None else f", result at {self.solution.problem.topology.names[sink]}"
        lines = [
            f"{self.planner} plan, {self.considered:,} alternatives considered{delivered}",
            self.solution.layout,
            *(f"{derived} must let more through than {condition}" for derived, condition in self.weakened),
            f"cost ({self.solution.problem.model.name}, {self.bill.unit})",
            *(f"  {line}" for line in str(self.bill).splitlines()),
        ]
        return "\n".join(lines)


def _flows(solution: TreeSolution, tree: JoinTree) -> Iterator[Flow]:
    """The streams shipped between sites for a join and the joins below it, including those of reused streams."""
    for match in solution.reused(tree):
        yield from match.flows
    for merge in merges(tree):
        target = solution.placement[merge]
        for subtree in merge.inputs:
            if solution.site(subtree) != target:
                yield Flow(subtree.streams, solution.site(subtree), target)
