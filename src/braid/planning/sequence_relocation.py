"""Probe sequences like others, with some of their steps at other sites.

A step runs where the rows of its head are, or where the probed stream starts, so that these are the only sites it can
go to.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from braid.errors import PlanError, did_you_mean
from braid.planning.order.greedy import Candidate, placements
from braid.planning.problem import Problem
from braid.planning.solution.sequenced import HeadPlan, Position, ProbeStep, SequencedSolution


def with_step_at(solution: SequencedSolution, operator: str, site: str) -> SequencedSolution:
    """The same sequences with one step at another site.

    The steps after it stay where they are, if rows come by there; otherwise they go along with the rows.
    """
    problem = solution.problem
    steps = {str(step): step for step in solution.steps}
    if operator not in steps:
        raise PlanError(f"the plan has no step '{operator}'; {did_you_mean(operator, steps)}")
    moved = steps[operator]
    wanted = {step: problem.topology.position(place) for step, place in solution.placement.items()}
    wanted[moved] = problem.topology.position(site)
    at = Position.start(problem, problem.streams.index(moved.head))
    chosen: list[int] = []
    for step, stream in _steps_of(solution, moved.head):
        places = {probe.after.site: probe for probe in reversed(placements(problem, at, stream))}
        if step == moved and wanted[step] not in places:
            names = " or ".join(f"'{problem.topology.names[place]}'" for place in sorted(places))
            raise PlanError(
                f"the step '{operator}' runs where its rows are or where '{step.stream}' starts: at {names}, not at "
                f"'{site}'; plan with a tree, whose joins can be at any site"
            )
        probe = places.get(wanted[step], places[at.site])
        chosen.append(probe.placement)
        at = probe.after
    return _with_placements(solution, moved.head, tuple(chosen))


def without_steps_at(solution: SequencedSolution, site: str) -> SequencedSolution:
    """The same sequences with no step at a site, at the least cost."""
    excluded = solution.problem.topology.position(site)
    for head in dict.fromkeys(step.head for step, place in solution.placement.items() if place == site):
        paths = {Position.start(solution.problem, solution.problem.streams.index(head)): _Path()}
        for step, stream in _steps_of(solution, head):
            paths = _continued(solution.problem, paths, stream, excluded)
            if not paths:
                raise PlanError(
                    f"the step '{step}' can only run at '{site}', because a step of a probe sequence runs where its "
                    "rows are or where the probed stream starts; plan with a tree first, whose joins can be at any site"
                )
        cheapest = min(paths.items(), key=lambda path: path[1].cost + _delivery(solution.problem, path[0]))
        solution = _with_placements(solution, head, cheapest[1].placements)
    return solution


@dataclass(frozen=True)
class _Path:
    """The placements of the first steps of a sequence, and what they cost."""

    cost: float = 0.0
    placements: tuple[int, ...] = ()

    def followed_by(self, probe: Candidate) -> _Path:
        return _Path(self.cost + probe.cost, (*self.placements, probe.placement))


def _continued(problem: Problem, paths: dict[Position, _Path], stream: int, excluded: int) -> dict[Position, _Path]:
    """The cheapest paths to each site where the rows may be after one more step."""
    longer: dict[Position, _Path] = {}
    for at, path in paths.items():
        for probe in placements(problem, at, stream):
            candidate = path.followed_by(probe)
            known = longer.get(probe.after)
            if probe.after.site != excluded and (known is None or candidate.cost < known.cost):
                longer[probe.after] = candidate
    return longer


def _delivery(problem: Problem, end: Position) -> float:
    return 0.0 if problem.sink is None else problem.transport.cost(end.volume(problem), end.site, problem.sink)


def _steps_of(solution: SequencedSolution, head: str) -> Iterator[tuple[ProbeStep, int]]:
    """The steps of the sequence of a head in order, each with the stream that it probes."""
    return ((step, solution.problem.streams.index(step.stream)) for step in solution.steps if step.head == head)


def _with_placements(solution: SequencedSolution, head: str, chosen: tuple[int, ...]) -> SequencedSolution:
    heads = [
        HeadPlan(plan.head, plan.order, chosen) if solution.problem.streams[plan.head] == head else plan
        for plan in solution.heads
    ]
    return replace(solution, heads=tuple(heads))
