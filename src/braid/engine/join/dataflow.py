"""From a site program to the parts that run it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from braid.engine.input.admission import Admission
from braid.engine.input.inlet import Inlet
from braid.engine.join.combinations import Base, Side
from braid.engine.join.guards import check_partition
from braid.engine.join.matcher import KeyPair, Matcher, Near, Workspace
from braid.engine.kernels.expression import Compiled, compile_expression
from braid.engine.keys.band_scale import BandScale
from braid.engine.output.emitter import Emitter, gather
from braid.engine.window.join_state import JoinState
from braid.engine.window.window_state import WindowState
from braid.errors import PlanError
from braid.model.expressions.expression import Column, Expression, columns_of
from braid.model.graph import AttributeClass
from braid.model.output import Output
from braid.model.program import (
    ALWAYS,
    Emit,
    Exclude,
    Filter,
    Guard,
    Join,
    Narrow,
    Project,
    Reuse,
    Ship,
    SiteProgram,
    Union,
    Update,
)

PREFILTER_FROM = 5
"""A head that must match in this many windows on one key first asks each whether it has the key at all."""


@dataclass(frozen=True, slots=True)
class Completion:
    """How to find what is missing of kept combinations: `older` rows of one of their streams are taken along `path`.

    `finder` tells which rows of that stream matter to those who ask, None if all of them do.
    """

    base: Base
    path: tuple[JoinStep, ...]
    finder: Matcher | None = None


@dataclass(frozen=True, slots=True)
class JoinStep:
    """Probe one side; if it is kept combinations and some may be missing, `completion` finds those asked for."""

    matcher: Matcher
    result: str
    guard: Guard = ALWAYS
    prefilter: tuple[Matcher, ...] = ()
    kept: JoinState | None = None
    completion: Completion | None = None


@dataclass(frozen=True, slots=True)
class PassStep:
    """The rows are part of another stream, whose combinations may be `kept`."""

    result: str
    kept: JoinState | None = None


@dataclass(frozen=True, slots=True)
class EmitStep:
    emitter: Emitter


Step = JoinStep | PassStep | EmitStep


class Dataflow:
    """The inlets, windows, matchers and emitters of a program, connected.

    `steps` tells for each stream, base or derived, what is done with its rows, and `order` when those of streams and
    kept combinations that are new take their turn: combinations right after all that they are made of.

    Inlets and kept combinations that an earlier program for the same query has filled may be taken over: what is in
    them depends on the query and on the streams they are of, not on the plan.
    """

    def __init__(
        self,
        program: SiteProgram,
        hash_bits: int,
        event_time: str | None = None,
        inlets: Mapping[str, Inlet] | None = None,
        kept: Mapping[frozenset[str], JoinState] | None = None,
    ) -> None:
        self.program = program
        self._graph = program.query.graph
        self._bits = hash_bits
        self._event_time = event_time
        self._projects = {step.result: step for step in program.instructions if isinstance(step, Project)}
        # The site excludes what all plans find alike: to a plan, candidates are its results.
        self._projects |= {
            step.result: self._projects[step.stream] for step in program.instructions if isinstance(step, Exclude)
        }
        self._scales = {number: BandScale.of(band) for number, band in self._graph.numbered_bands().items()}
        self.numbers = {owned: number for number, owned in enumerate(self._graph.classes)}
        self.steps: dict[str, list[Step]] = {}
        self.emitters: list[Emitter] = []
        self._workspace = Workspace()
        bases = [
            step.stream
            for step in program.instructions
            if isinstance(step, Update) and step.stream in program.query.aliases
        ]
        self.inlets = inlets or {alias: self._inlet(alias) for alias in bases}
        self.bases = {alias: Base(alias, inlet.window) for alias, inlet in self.inlets.items()}
        self._places = {
            column: place for inlet in self.inlets.values() for column, place in inlet.admission.columns.items()
        }
        self._members = self._members_of_streams()
        self.kept = {
            step.stream: self._kept(step.stream, kept or {})
            for step in program.instructions
            if isinstance(step, Update) and step.stream not in self.inlets
        }
        self._connect()
        self.order = tuple(self._in_order())

    def _in_order(self) -> Iterator[str]:
        made_of = {step.result: step.streams for step in self.program.instructions if isinstance(step, Union)}
        probes = {step.result: step.probe for step in self.program.instructions if isinstance(step, Join)}

        def sources(stream: str) -> Iterator[str]:
            """What the combinations of a derived stream start from, and before each of these what it is made of."""
            for source in made_of.get(stream, (stream,)):
                while source in probes:
                    source = probes[source]
                if source in self.kept:
                    yield from sources(source)
                yield source

        results = (step.stream for step in self.program.instructions if isinstance(step, Project))
        return iter(dict.fromkeys(source for result in results for source in sources(result)))

    def _members_of_streams(self) -> dict[str, tuple[str, ...]]:
        """The sources that each stream, base or derived, is made of."""
        members: dict[str, tuple[str, ...]] = {alias: (alias,) for alias in self.inlets}
        for step in self.program.instructions:
            if isinstance(step, Join):
                members[step.result] = (*members[step.probe], *members[step.stream])
            elif isinstance(step, Union):
                members[step.result] = tuple(alias for alias in self.inlets if alias in members[step.streams[0]])
            elif isinstance(step, Reuse):
                raise PlanError(f"a site on its own cannot reuse {step.advertisement}, which another query makes")
        return members

    def _kept(self, name: str, earlier: Mapping[frozenset[str], JoinState]) -> JoinState:
        members = frozenset(self._members[name])
        if members in earlier:
            return earlier[members]
        tied = {
            number: next(alias for alias in self._members[name] if alias in owned.sources)
            for number, owned in enumerate(self._graph.classes)
            if owned.sources & members and owned.sources - members
        }
        bands = {
            number: next(alias for alias in members if alias in scale.band.sources)
            for number, scale in self._scales.items()
            if len(scale.band.sources & members) == 1
        }
        grains = {number: self._scales[number].grain for number in bands}
        exact = frozenset().union(*(self.inlets[alias].admission.exact for alias in members))
        counted = [alias for alias in members if self.inlets[alias].source.window.counts_rows]
        bases = [self.bases[alias] for alias in self._members[name]]
        return JoinState(bases, tied | bands, exact, counted, self._bits, grains)

    def _inlet(self, alias: str) -> Inlet:
        source = self.program.query.source(alias)
        own = self.program.query.graph.classes_of(alias)
        scales = {number: scale for number, scale in self._scales.items() if alias in scale.band.sources}
        filters = (step for step in self.program.instructions if isinstance(step, Filter) and step.stream == alias)
        admission = Admission(
            source,
            [step.predicate for step in filters],
            own,
            [column for column in self._kept_columns() if column.source == alias],
            self._bits,
            scales,
        )
        grains = {number: scale.grain for number, scale in scales.items()}
        return Inlet(source, admission, WindowState(own, admission.exact, admission.kinds, self._bits, grains))

    def _kept_columns(self) -> Iterator[Column]:
        """Columns that are read after the windows: for results, exclusions and conditions on several streams."""
        query = self.program.query
        yield from query.compared
        for expression in (*query.selected, *(predicate.expression for predicate in query.graph.residuals)):
            yield from columns_of(expression)

    def _connect(self) -> None:
        joins = [step for step in self.program.instructions if isinstance(step, Join)]
        matchers = {join.result: self._matcher(join) for join in joins}
        self.steps.update({name: [] for name in self._members})
        for step in self.program.instructions:
            if isinstance(step, Join):
                if step.guard.partitions is not None:
                    check_partition(step.guard.partitions)
                self.steps[step.probe].append(self._join_step(step, matchers))
            elif isinstance(step, Union):
                for part in step.streams:
                    self.steps[part].append(PassStep(step.result, self.kept.get(step.result)))
            elif isinstance(step, Ship):
                raise PlanError(f"a site on its own cannot ship '{step.stream}' to '{step.site}'")
            elif isinstance(step, Narrow):
                raise PlanError(f"a site on its own gets no derived stream '{step.stream}' to narrow")
            elif isinstance(step, Emit):
                project = self._projects[step.stream]
                self.steps[project.stream].append(EmitStep(self._emitter(project)))

    def _join_step(self, join: Join, matchers: Mapping[str, Matcher]) -> JoinStep:
        kept = self.kept.get(join.stream)
        completion = None if kept is None else self._completion(join)
        return JoinStep(
            matchers[join.result], join.result, join.guard, self._prefilter(join, matchers), kept, completion
        )

    def pair(self, head: str, stream: str) -> Matcher | None:
        """What probes the window of a stream with rows of another alone; None if no condition ties the two."""
        return self.probe(head, stream) if self._graph.joined([head], stream) else None

    def probe(self, head: str, stream: str) -> Matcher:
        """What probes the window of a stream with rows of another, by all conditions on the two."""
        keys, predicates = self._graph.classes_between([head], stream), self._graph.residuals_at([head], stream)
        return self._matcher(Join(head, stream, f"{head} with {stream}", keys, predicates))

    def _completion(self, join: Join) -> Completion:
        """By the stream nearest to the top among those that a key ties to the probing ones, else a condition."""
        bound = self._members[join.probe]
        paths = {alias: self._path(alias, join.stream) for alias in self._members[join.stream]}
        nearest = sorted(paths, key=lambda alias: len(paths[alias]))
        tests = (self._graph.classes_between, self._graph.residuals_at)
        alias = next((alias for tying in tests for alias in nearest if tying(bound, alias)), None)
        if alias is None:
            return self.completion_of(join.stream)
        keys, conditions = self._graph.classes_between(bound, alias), self._graph.residuals_at(bound, alias)
        finder = self._matcher(Join(join.probe, alias, join.result, keys, conditions))
        return Completion(self.bases[alias], paths[alias], finder)

    def completion_of(self, name: str) -> Completion:
        """How to find everything that is missing of some kept combinations."""
        alias = min(self._members[name], key=lambda alias: len(self._path(alias, name)))
        return Completion(self.bases[alias], self._path(alias, name))

    def _path(self, stream: str, name: str) -> tuple[JoinStep, ...]:
        """The joins that rows of a stream go through until they are combinations of the derived stream `name`."""
        path: list[JoinStep] = []
        wanted = frozenset(self._members[name])
        while stream != name:
            step = next(
                step
                for step in self.steps[stream]
                if isinstance(step, JoinStep | PassStep) and wanted.issuperset(self._members[step.result])
            )
            if isinstance(step, JoinStep):
                path.append(step)
            stream = step.result
        return tuple(path)

    def _matcher(self, join: Join) -> Matcher:
        bound = self._members[join.probe]
        keys = [self._key_pair(key, bound, self._members[join.stream]) for key in join.keys]
        conditions = [self._compile(predicate.expression) for predicate in join.predicates]
        side: Side = self.kept[join.stream] if join.stream in self.kept else self.bases[join.stream]
        near = self._near(bound, self._members[join.stream])
        gathering = partial(gather, places=self._places)
        return Matcher(join.stream, side, keys, conditions, gathering, self._workspace, near)

    def _near(self, bound: Collection[str], probed: Collection[str]) -> Near | None:
        number = self._graph.band_between(bound, probed)
        if number is None:
            return None
        scale = self._scales[number]
        return Near(number, next(alias for alias in bound if alias in scale.band.sources), scale.reach, scale.grain)

    def _key_pair(self, key: AttributeClass, bound: Iterable[str], probed: Iterable[str]) -> KeyPair:
        number = self.numbers[key]
        bringer = next(alias for alias in bound if alias in key.sources)
        owner = next(alias for alias in probed if alias in key.sources)
        places = [self.inlets[alias].admission.key_places.get(number) for alias in (bringer, owner)]
        return KeyPair(number, bringer, places[0], owner, places[1])

    def _prefilter(self, first: Join, matchers: Mapping[str, Matcher]) -> tuple[Matcher, ...]:
        """If a long sequence joins on one key all the way, the matchers of windows after the first.

        JoinState combinations may not have been found yet, and that there are none means nothing.
        """
        if first.probe not in self.inlets or first.stream not in self.inlets or len(first.keys) != 1:
            return ()
        sequence, following = [first], self._only_join_of(first.result)
        while following is not None and following.keys == first.keys:
            sequence.append(following)
            following = self._only_join_of(following.result)
        if following is not None or len(sequence) < PREFILTER_FROM:
            return ()
        return tuple(matchers[join.result] for join in sequence[1:] if join.stream in self.inlets)

    def _only_join_of(self, stream: str) -> Join | None:
        joins = [step for step in self.program.instructions if isinstance(step, Join) and step.probe == stream]
        return joins[0] if len(joins) == 1 else None

    def _emitter(self, project: Project) -> Emitter:
        shown = [output for output in project.outputs if isinstance(output, Output)]
        outputs = [self._compile(output.expression) for output in shown]
        emitter = Emitter([output.name for output in shown], outputs, self._places, self._event_time)
        self.emitters.append(emitter)
        return emitter

    def _compile(self, expression: Expression) -> Compiled:
        return compile_expression(expression, self._type_of_column)

    def _type_of_column(self, column: Column) -> pa.DataType:
        declaration = self.inlets[column.source or ""].declaration
        return declaration.schema.field(column.name).type
