"""Plans like another one, with joins at other sites.

A plan with parts of the keys moves part by part: the joins of a part go together. One with probe sequences moves step
by step.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from braid.errors import PlanError, did_you_mean
from braid.model.checks import check
from braid.model.tree import Merge, merges
from braid.planning.deployment import Deployment
from braid.planning.partition.repricing import repriced
from braid.planning.sequence_relocation import with_step_at, without_steps_at
from braid.planning.solution.partitioned import PartitionedSolution
from braid.planning.solution.sequenced import SequencedSolution
from braid.planning.solution.tree import TreeSolution

PlacedTree = TreeSolution | PartitionedSolution

Placement = Mapping[Merge, str]


@dataclass(frozen=True)
class _Movable:
    """Joins that are named together, with their sites. `part` has the number of a partitioned join and of its part."""

    placement: Placement
    part: tuple[int, int] | None = None


def moved(deployment: Deployment, operator: str, site: str) -> Deployment:
    """The same plan with one of its joins, or one part of a join, at another site.

    Joins are named as `explain()` shows them: `a ⋈ b`. A part of a join is named by its number: `part 1 of a ⋈ b`. A
    step of a probe sequence is named by the rows and the stream they probe: `a>b probes c`.
    """
    check(operator, str, "the join to move", PlanError)
    solution = deployment.solution
    solution.problem.topology.position(site)
    if isinstance(solution, SequencedSolution):
        return Deployment(deployment.planner, with_step_at(solution, operator, site))
    movable = dict(_movable(solution))
    if operator not in movable:
        raise PlanError(f"the plan has no join '{operator}'; {did_you_mean(operator, movable)}")
    joins = movable[operator]
    return Deployment(deployment.planner, _placed(solution, joins, dict.fromkeys(joins.placement, site)))


def drained(deployment: Deployment, site: str) -> Deployment:
    """The same plan with no join at a site: each that was there goes to where it is cheapest."""
    solution = deployment.solution
    solution.problem.topology.position(site)
    others = [name for name in solution.problem.topology.names if name != site]
    if not others:
        raise PlanError(f"'{site}' is the only site of the network, so that its joins cannot go anywhere else")
    if isinstance(solution, SequencedSolution):
        return Deployment(deployment.planner, without_steps_at(solution, site))
    for _, joins in list(_movable(solution)):
        for merge in [merge for merge, at in joins.placement.items() if at == site]:
            alternatives = [_placed(solution, joins, {merge: other}) for other in others]
            solution = min(alternatives, key=lambda placed: placed.bill.total)
    return Deployment(deployment.planner, solution)


def _movable(solution: PlacedTree) -> Iterator[tuple[str, _Movable]]:
    """What can be moved, by name."""
    problem = solution.problem
    partitioned = solution.joins if isinstance(solution, PartitionedSolution) else ()
    replaced = {merge for join in partitioned for merge in join.replaced}
    for merge in merges(solution.tree):
        if merge not in replaced:
            yield problem.label(problem.mask(merge.streams)), _Movable({merge: solution.placement[merge]})
    for join_number, join in enumerate(partitioned):
        joined = problem.label(problem.mask(join.join.merge.streams))
        for label, part in enumerate(join.parts):
            yield f"part {label} of {joined}", _Movable(part.solution.placement, (join_number, label))


def _placed(solution: PlacedTree, joins: _Movable, sites: Placement) -> PlacedTree:
    """The plan with some of these joins at other sites."""
    if isinstance(solution, TreeSolution):
        return replace(solution, placement={**solution.placement, **sites})
    if joins.part is None:
        whole = replace(solution.whole, placement={**solution.placement, **sites})
        return repriced(replace(solution, whole=whole), solution.problem)
    join_number, label = joins.part
    changed = list(solution.joins)
    parts = list(changed[join_number].parts)
    of_part = parts[label].solution
    parts[label] = replace(parts[label], solution=replace(of_part, placement={**of_part.placement, **sites}))
    changed[join_number] = replace(changed[join_number], parts=tuple(parts))
    return replace(solution, joins=tuple(changed))
