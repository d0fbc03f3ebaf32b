"""Plans like another one, with joins at other sites."""

from __future__ import annotations

from dataclasses import replace

from braid.errors import PlanError, did_you_mean
from braid.model.tree import Merge, merges
from braid.planning.deployment import Deployment
from braid.planning.solution.tree import TreeSolution


def moved(deployment: Deployment, operator: str, site: str) -> Deployment:
    """The same plan with one of its joins at another site. Joins are named as `explain()` shows them: `a ⋈ b`."""
    solution = _tree_of(deployment)
    solution.problem.topology.position(site)
    joins = {_label(solution, merge): merge for merge in merges(solution.tree)}
    if operator not in joins:
        raise PlanError(f"the plan has no join '{operator}'; {did_you_mean(operator, joins)}")
    return _placed(deployment, solution, {joins[operator]: site})


def drained(deployment: Deployment, site: str) -> Deployment:
    """The same plan with no join at a site: each that was there goes to where it is cheapest."""
    solution = _tree_of(deployment)
    others = [name for name in solution.problem.topology.names if name != site]
    if not others:
        raise PlanError(f"'{site}' is the only site of the network, so that its joins cannot go anywhere else")
    for merge in merges(solution.tree):
        if solution.placement[merge] == site:
            places = [replace(solution, placement={**solution.placement, merge: other}) for other in others]
            solution = min(places, key=lambda placed: placed.bill.total)
    return Deployment(deployment.planner, solution)


def _tree_of(deployment: Deployment) -> TreeSolution:
    if not isinstance(deployment.solution, TreeSolution):
        raise PlanError(
            f"only joins of a tree can be moved one by one, and the plan of {deployment.planner} has a sequence for "
            "each stream or a plan for each part of the keys; plan with another planner"
        )
    return deployment.solution


def _label(solution: TreeSolution, merge: Merge) -> str:
    return solution.problem.label(solution.problem.mask(merge.streams))


def _placed(deployment: Deployment, solution: TreeSolution, sites: dict[Merge, str]) -> Deployment:
    return Deployment(deployment.planner, replace(solution, placement={**solution.placement, **sites}))
