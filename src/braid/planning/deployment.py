"""A query laid out over a network: what runs where, and what it costs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from braid.model.advertisement import Advertisement, Flow, subquery
from braid.model.plan import Plan
from braid.model.predicate import Predicate
from braid.model.program import SiteProgram
from braid.model.query import Query
from braid.model.tree import JoinTree, Leaf, leaves, merges
from braid.planning.cost.bill import Bill
from braid.planning.lowering.lower import site_programs
from braid.planning.solution.solution import Solution
from braid.planning.solution.tree import TreeSolution


@dataclass(frozen=True, eq=False)
class Deployment:
    """A plan for a query with a site for each operator.

    `plan` holds the probe sequence of each head, `tree` the join tree (None where each head has an order of its own),
    `placement` the site of each operator, `programs` what each site runs, `bill` every item of the `cost`, and
    `considered` how many alternatives the planner looked at.
    """

    planner: str
    solution: Solution

    @property
    def query(self) -> Query:
        return self.solution.problem.query

    @property
    def cost(self) -> float:
        return self.bill.total

    @cached_property
    def bill(self) -> Bill:
        return self.solution.bill

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
        """The derived streams that this deployment makes, for later queries to use."""
        return self.advertise()

    def advertise(self, *, weaken: bool = False) -> tuple[Advertisement, ...]:
        """The derived streams that this deployment makes or uses; with `weaken`, others may weaken its filters."""
        solution = self.solution
        if not isinstance(solution, TreeSolution):
            # What heads make in their own orders, or parts at several sites, is no derived stream at one site.
            return ()
        found = []
        for part in (*leaves(solution.tree), *merges(solution.tree)):
            if not isinstance(part, Leaf):
                weakens = weaken and all(match.advertisement.may_weaken for match in solution.reused(part))
                flows = tuple(_flows(solution, part)) if weakens else ()
                found.append(Advertisement(subquery(self.query, part.streams), solution.site(part), flows, weakens))
        return tuple(found)

    @property
    def weakened(self) -> tuple[tuple[Advertisement, Predicate], ...]:
        """The filters of derived streams that must let more through for this deployment, as their owners name them.

        Until they are checked behind the join instead, rows are missing here.
        """
        solution = self.solution
        if not isinstance(solution, TreeSolution):
            return ()
        used = solution.reused(solution.tree)
        return tuple((match.advertisement, predicate) for match in used for predicate in match.weakened)

    def explain(self) -> str:
        """The deployment for people: what runs where, and where each unit of cost comes from."""
        sink = self.solution.problem.sink
        wanted = "" if sink is None else f", result at {self.solution.problem.topology.names[sink]}"
        lines = [
            f"{self.planner} plan, {self.considered:,} alternatives considered{wanted}",
            self.solution.layout,
            *(f"{found} must let more through than {condition}" for found, condition in self.weakened),
            f"cost ({self.solution.problem.model.name}, {self.bill.unit})",
            *(f"  {line}" for line in str(self.bill).splitlines()),
        ]
        return "\n".join(lines)


def _flows(solution: TreeSolution, made: JoinTree) -> Iterator[Flow]:
    """What travels from site to site for a join and those below it, also those that others make."""
    for match in solution.reused(made):
        yield from match.flows
    for found in merges(made):
        for part in found.inputs:
            if solution.site(part) != solution.placement[found]:
                yield Flow(part.streams, solution.site(part), solution.placement[found])
