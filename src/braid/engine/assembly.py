"""From a site program to the parts that run it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from braid.engine.emission import Emitter, gather
from braid.engine.expression import Compiled, compile_expression
from braid.engine.inlet import Inlet
from braid.engine.intake import Intake
from braid.engine.matching import KeyPair, Matcher
from braid.engine.window import Window
from braid.errors import PlanError
from braid.model.expression import Column, Expression, columns_of
from braid.model.graph import AttributeClass
from braid.model.program import Emit, Filter, Guard, Join, Project, Ship, SiteProgram, Update

PREFILTER_FROM = 5
"""A head that must match in this many windows on one key first asks each whether it has the key at all."""


@dataclass(frozen=True, slots=True)
class JoinStep:
    matcher: Matcher
    result: str
    guard: Guard
    prefilter: tuple[Matcher, ...] = ()


@dataclass(frozen=True, slots=True)
class EmitStep:
    emitter: Emitter


Step = JoinStep | EmitStep


class Assembly:
    """The inlets, windows, matchers and emitters of a program, connected.

    `steps` tells for each stream, base or derived, what is done with its rows. Inlets that an earlier program for the
    same query has filled may be taken over: what a window keeps depends on the query alone, not on the plan.
    """

    def __init__(
        self,
        program: SiteProgram,
        hash_bits: int,
        event_time: str | None = None,
        inlets: Mapping[str, Inlet] | None = None,
    ) -> None:
        self.program = program
        self._bits = hash_bits
        self._event_time = event_time
        self._projects = {step.result: step for step in program.instructions if isinstance(step, Project)}
        self.numbers = {owned: number for number, owned in enumerate(program.query.graph.classes)}
        self.steps: dict[str, list[Step]] = {}
        self.emitters: list[Emitter] = []
        updates = [step.stream for step in program.instructions if isinstance(step, Update)]
        self.inlets = inlets or {alias: self._inlet(alias) for alias in updates}
        self._places = {
            column: place for inlet in self.inlets.values() for column, place in inlet.intake.columns.items()
        }
        self._connect()

    def _inlet(self, alias: str) -> Inlet:
        source = self.program.query.source(alias)
        own = self.program.query.graph.classes_of(alias)
        filters = (step for step in self.program.instructions if isinstance(step, Filter) and step.stream == alias)
        intake = Intake(
            source,
            [step.predicate for step in filters],
            own,
            [column for column in self._kept_columns() if column.source == alias],
            self._bits,
        )
        return Inlet(source, intake, Window(own, intake.exact, intake.kinds, self._bits))

    def _kept_columns(self) -> Iterator[Column]:
        """Columns that are read after the windows: for results and for conditions on several streams."""
        query = self.program.query
        for expression in (*query.selected, *(predicate.expression for predicate in query.graph.residuals)):
            yield from columns_of(expression)

    def _connect(self) -> None:
        members: dict[str, tuple[str, ...]] = {alias: (alias,) for alias in self.inlets}
        self.steps.update({alias: [] for alias in self.inlets})
        matchers: dict[str, Matcher] = {}
        for step in self.program.instructions:
            if isinstance(step, Join):
                bound = members[step.probe]
                members[step.result] = (*bound, step.stream)
                matchers[step.result] = self._matcher(step, bound)
            elif isinstance(step, Ship):
                raise PlanError(f"a site on its own cannot ship '{step.stream}' to '{step.site}'")
        for step in self.program.instructions:
            if isinstance(step, Join):
                prefilter = self._prefilter(step, matchers)
                self.steps.setdefault(step.result, [])
                self.steps[step.probe].append(JoinStep(matchers[step.result], step.result, step.guard, prefilter))
            elif isinstance(step, Emit):
                project = self._projects.get(step.stream)
                if project is None:
                    raise PlanError(f"'{step.stream}' is emitted, but nothing has been projected under that name")
                self.steps[project.stream].append(EmitStep(self._emitter(project)))

    def _matcher(self, join: Join, bound: Sequence[str]) -> Matcher:
        keys = [self._key_pair(key, bound, join.stream) for key in join.keys]
        conditions = [self._compile(predicate.expression) for predicate in join.predicates]
        return Matcher(
            join.stream,
            self.inlets[join.stream].window,
            keys,
            conditions,
            partial(gather, places=self._places),
        )

    def pair(self, head: str, stream: str) -> Matcher | None:
        """What probes the window of a stream with rows of another alone; None if no condition ties the two."""
        graph = self.program.query.graph
        keys, predicates = graph.classes_between([head], stream), graph.residuals_at([head], stream)
        if not keys and not predicates:
            return None
        return self._matcher(Join(head, stream, f"{head} with {stream}", keys, predicates), (head,))

    def _key_pair(self, key: AttributeClass, bound: Iterable[str], stream: str) -> KeyPair:
        number = self.numbers[key]
        bringer = next(alias for alias in bound if alias in key.sources)
        places = [self.inlets[alias].intake.key_places.get(number) for alias in (bringer, stream)]
        return KeyPair(number, bringer, *places)

    def _prefilter(self, first: Join, matchers: Mapping[str, Matcher]) -> tuple[Matcher, ...]:
        """If a long sequence joins on one key all the way, the matchers after the first."""
        if first.probe not in self.inlets or len(first.keys) != 1:
            return ()
        sequence, following = [first], self._only_join_of(first.result)
        while following is not None and following.keys == first.keys:
            sequence.append(following)
            following = self._only_join_of(following.result)
        if following is not None or len(sequence) < PREFILTER_FROM:
            return ()
        return tuple(matchers[join.result] for join in sequence[1:])

    def _only_join_of(self, stream: str) -> Join | None:
        joins = [step for step in self.program.instructions if isinstance(step, Join) and step.probe == stream]
        return joins[0] if len(joins) == 1 else None

    def _emitter(self, project: Project) -> Emitter:
        outputs = [self._compile(output.expression) for output in project.outputs]
        emitter = Emitter([output.name for output in project.outputs], outputs, self._places, self._event_time)
        self.emitters.append(emitter)
        return emitter

    def _compile(self, expression: Expression) -> Compiled:
        return compile_expression(expression, self._type_of_column)

    def _type_of_column(self, column: Column) -> pa.DataType:
        declaration = self.inlets[column.source or ""].declaration
        return declaration.schema.field(column.name).type
