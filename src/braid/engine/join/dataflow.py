"""A site program, connected: from its instructions to the parts that run them."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence

from braid.engine.counts import JoinCounts
from braid.engine.input.inlet import Inlet
from braid.engine.join.completion_paths import CompletionPaths
from braid.engine.join.matcher import Matcher
from braid.engine.join.matcher_builder import MatcherBuilder
from braid.engine.join.operators import EmitOperator, JoinOperator, Operator, PassOperator
from braid.engine.join.prefilter import prefilter_joins
from braid.engine.join.sides import Sides
from braid.engine.output.emitter import Emitter
from braid.engine.window.join_state import JoinState
from braid.errors import PlanError
from braid.model.output import Output
from braid.model.program import ALWAYS, Conclude, Emit, Join, Narrow, Project, Ship, SiteProgram, Union


class Dataflow:
    """The inlets, windows, join states, matchers and emitters of a program, connected.

    The rows of each stream, base or derived, go through its `operators`. `order` is the order in which streams take
    their new rows through them: a join state right after everything it is made of.

    A dataflow can take over the inlets and join states of an earlier program for the same query. Their content depends
    on the query and the streams, not on the plan.
    """

    def __init__(
        self,
        program: SiteProgram,
        hash_bits: int,
        lifetime: Sequence[str] = (),
        inlets: Mapping[str, Inlet] | None = None,
        join_states: Mapping[frozenset[str], JoinState] | None = None,
    ) -> None:
        self.program = program
        self._lifetime = lifetime
        self._sides = sides = Sides(program, hash_bits, inlets, join_states)
        self.inlets = sides.inlets
        self.bases = sides.bases
        self.join_states = sides.join_states
        self.class_numbers = sides.class_numbers
        self.members = sides.members
        self.matchers = MatcherBuilder(sides)
        self.operators: dict[str, list[Operator]] = {stream: [] for stream in sides.members}
        self.completion_paths = CompletionPaths(sides, self.matchers, self.operators)
        self.emitters: list[Emitter] = []
        self._connect()
        self.join_operators = [
            (name, join)
            for name, operators in self.operators.items()
            for join in operators
            if isinstance(join, JoinOperator)
        ]
        """Every join, with the stream whose rows probe in it."""
        self.order = processing_order(program, self.join_states)

    @property
    def work(self) -> int:
        """The work of all joins so far."""
        return sum(join.matcher.work for _, join in self.join_operators)

    def counts(self) -> Iterator[JoinCounts]:
        """What each join has counted so far."""
        for name, join in self.join_operators:
            matcher = join.matcher
            bound, probed = tuple(self.members[name]), tuple(self.members[matcher.name])
            counts = matcher.probes, matcher.matches, matcher.candidates, matcher.work
            yield JoinCounts(name, bound, matcher.name, probed, *counts)

    def _connect(self) -> None:
        """Give each stream the operators of its rows."""
        joins = list(self.program.all_of(Join))
        matchers = {join.result: self.matchers.for_join(join) for join in joins}
        projects = _projects(self.program)
        for instruction in self.program.instructions:
            if isinstance(instruction, Join):
                self.operators[instruction.probe].append(self._join_operator(instruction, matchers))
            elif isinstance(instruction, Union):
                operator = PassOperator(instruction.result, self.join_states.get(instruction.result))
                for stream in instruction.streams:
                    self.operators[stream].append(operator)
            elif isinstance(instruction, Emit):
                project = projects[instruction.stream]
                self.operators[project.stream].append(EmitOperator(self._emitter(project)))
            elif isinstance(instruction, Ship):
                raise PlanError(f"an engine that runs alone cannot ship '{instruction.stream}' to '{instruction.site}'")
            elif isinstance(instruction, Narrow):
                raise PlanError(f"an engine that runs alone gets no derived stream '{instruction.stream}' to narrow")

    def _join_operator(self, join: Join, matchers: Mapping[str, Matcher]) -> JoinOperator:
        if join.guard != ALWAYS:
            raise PlanError(
                f"an engine that runs alone takes all rows of '{join.probe}'; leave out the guard of its join"
            )
        prefilter = tuple(matchers[later.result] for later in prefilter_joins(self.program, self.inlets, join))
        join_state = self.join_states.get(join.stream)
        completion = None if join_state is None else self.completion_paths.for_join(join)
        return JoinOperator(matchers[join.result], join.result, prefilter, join_state, completion)

    def _emitter(self, project: Project) -> Emitter:
        outputs = [output for output in project.outputs if isinstance(output, Output)]
        compiled = [self._sides.compile(output.expression) for output in outputs]
        names = [output.name for output in outputs]
        emitter = Emitter(names, compiled, self._sides.payload_positions, self._lifetime)
        self.emitters.append(emitter)
        return emitter


def _projects(program: SiteProgram) -> dict[str, Project]:
    """The projection behind each stream that may be emitted.

    A conclusion comes after the plan (see `Conclusion`): a plan emits the rows for it as if they were results.
    """
    projects = {project.result: project for project in program.all_of(Project)}
    for conclude in program.all_of(Conclude):
        projects[conclude.result] = projects[conclude.stream]
    return projects


def processing_order(program: SiteProgram, join_states: Container[str]) -> tuple[str, ...]:
    """The order in which streams and join states take their new rows through their operators."""
    inputs_of_union = {union.result: union.streams for union in program.all_of(Union)}
    probe_of = {join.result: join.probe for join in program.all_of(Join)}

    def sources(stream: str) -> Iterator[str]:
        """The streams and join states that combinations of a stream start from, each after those it is made of."""
        for source in inputs_of_union.get(stream, (stream,)):
            while source in probe_of:
                source = probe_of[source]
            if source in join_states:
                yield from sources(source)
            yield source

    results = [project.stream for project in program.all_of(Project)]
    return tuple(dict.fromkeys(source for result in results for source in sources(result)))
