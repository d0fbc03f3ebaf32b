"""A probe sequence for each head, with a site for each of its steps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from braid.errors import PlanError
from braid.model.plan import Plan
from braid.planning.cost.bill import Bill, Charge
from braid.planning.cost.models import Probe
from braid.planning.problem import Problem

SOURCE, DESTINATION = 0, 1
"""A step runs at the site where the rows of the head are, or at the site where the probed stream starts."""


@dataclass(frozen=True, slots=True)
class HeadPlan:
    """The order in which new rows of a head probe the other streams, and where each step runs.

    Streams are numbers; each placement is `SOURCE` or `DESTINATION`.
    """

    head: int
    order: tuple[int, ...]
    placements: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.order) != len(self.placements) or not set(self.placements) <= {SOURCE, DESTINATION}:
            raise PlanError(f"each of the steps {self.order} runs at 0 (source) or 1 (destination)")
        if len({self.head, *self.order}) != len(self.order) + 1:
            raise PlanError(f"head {self.head} probes each other stream once, not {self.order}")


@dataclass(frozen=True, slots=True)
class Position:
    """A state of the rows of a head on their way: the streams joined so far (`mask`), and the site of the rows."""

    head: int
    mask: int
    site: int

    @classmethod
    def start(cls, problem: Problem, head: int) -> Position:
        return cls(head, 1 << head, problem.origins[head])

    def rate(self, problem: Problem) -> float:
        return problem.figures.flow(self.head, self.mask)

    def volume(self, problem: Problem) -> float:
        return problem.model.volume(self.rate(problem), problem.figures.size(self.mask, self.head))

    def probing(self, problem: Problem, stream: int) -> float:
        """The cost of probing the window of a stream with the rows; it is the same at every site."""
        figures, single = problem.figures, 1 << stream
        return problem.model.probing(
            Probe(
                self.rate(problem),
                figures.flow(self.head, self.mask | single),
                figures.rate(single),
                figures.population(single),
                problem.keyed(self.mask, single),
            )
        )


@dataclass(frozen=True, slots=True)
class ProbeStep:
    """One step: the rows of a head, so far joined with the streams `bound`, probe the window of a stream."""

    head: str
    bound: tuple[str, ...]
    stream: str

    def __str__(self) -> str:
        return f"{'>'.join(self.bound)} probes {self.stream}"


@dataclass(frozen=True)
class SequencedSolution:
    """The sequence of each head, with the placement of its steps."""

    problem: Problem
    heads: tuple[HeadPlan, ...]
    considered: int

    def __post_init__(self) -> None:
        if [plan.head for plan in self.heads] != list(range(len(self.problem.streams))):
            raise PlanError("a plan has one sequence for each stream, in the order of the query")

    @property
    def plan(self) -> Plan:
        names = self.problem.streams
        return Plan(
            self.problem.query,
            {names[plan.head]: tuple(names[stream] for stream in plan.order) for plan in self.heads},
        )

    @cached_property
    def steps(self) -> dict[ProbeStep, tuple[Position, Position]]:
        """Every step, with the position of its rows before and after it."""
        steps: dict[ProbeStep, tuple[Position, Position]] = {}
        names = self.problem.streams
        for plan in self.heads:
            at = Position.start(self.problem, plan.head)
            bound: tuple[str, ...] = (names[plan.head],)
            for stream, placement in zip(plan.order, plan.placements, strict=True):
                site = at.site if placement == SOURCE else self.problem.origins[stream]
                after = Position(plan.head, at.mask | 1 << stream, site)
                steps[ProbeStep(names[plan.head], bound, names[stream])] = at, after
                at, bound = after, (*bound, names[stream])
        return steps

    @property
    def placement(self) -> Mapping[ProbeStep, str]:
        return {step: self.problem.topology.names[after.site] for step, (_, after) in self.steps.items()}

    @property
    def layout(self) -> str:
        lines = []
        for head, sequence in self.plan.sequences.items():
            sites = [site for step, site in self.placement.items() if step.head == head]
            probes = (f"{stream} (at {site})" for stream, site in zip(sequence, sites, strict=True))
            lines.append(" -> ".join([f"new rows of {head}", *probes]))
        return "\n".join(lines)

    @property
    def bill(self) -> Bill:
        return self.problem.bill(self._charges())

    def _charges(self) -> Iterator[Charge]:
        problem, names = self.problem, self.problem.topology.names
        for step, (before, after) in self.steps.items():
            stream = problem.streams.index(step.stream)
            rows = ">".join(step.bound)
            if after.site == before.site:
                shipped, volume, source = step.stream, problem.volume(1 << stream), problem.origins[stream]
            else:
                shipped, volume, source = rows, before.volume(problem), before.site
            amount = problem.transport.cost(volume, source, after.site)
            yield Charge(
                f"ship {shipped} for head {step.head}",
                frozenset(step.bound),
                names[source],
                names[after.site],
                volume,
                amount,
                shipped,
            )
            yield Charge(
                f"probe {step.stream} with {rows}",
                problem.names(after.mask),
                names[after.site],
                names[after.site],
                0.0,
                before.probing(problem, stream),
            )
        if problem.sink is not None:
            for plan in self.heads:
                yield self._delivery(plan, problem.sink)

    def _delivery(self, plan: HeadPlan, sink: int) -> Charge:
        """The charge for shipping the results of one head to the sink."""
        problem = self.problem
        ends = [after for _, after in self.steps.values() if after.head == plan.head]
        last = ends[-1] if ends else Position.start(problem, plan.head)
        volume = last.volume(problem)
        names = problem.topology.names
        amount = problem.transport.cost(volume, last.site, sink)
        shipped = f"results of head {problem.streams[plan.head]}"
        return Charge(
            f"deliver {shipped}", problem.names(last.mask), names[last.site], names[sink], volume, amount, shipped
        )
