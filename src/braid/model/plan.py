"""A plan: for each stream, the order in which its new rows probe the other streams, and which combinations are kept."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, TypeAlias

from braid.errors import PlanError, did_you_mean
from braid.model.access import Paths, WrittenStep, check_path, possible_paths, read_step
from braid.model.checks import check
from braid.model.explain import explain, explain_orders
from braid.model.html import drawn_plan
from braid.model.partitions import Partitioning
from braid.model.parts import REST, are_parts, check_disjoint, read_parts, show_part, write_part
from braid.model.query import Query
from braid.model.statistics import Statistics
from braid.model.tree import JoinTree, Leaf, Merge, joined_first, sequences

Written: TypeAlias = "Mapping[str, Sequence[WrittenStep]] | tuple[Any, ...] | list[Any]"
"""A plan as users write it: a mapping of heads to probe sequences, a join tree as nested tuples of names, or a list of
parts of the keys with a plan for each (see `model/parts.py`)."""

Route: TypeAlias = "tuple[Partitioning | None, tuple[Step, ...]]"
"""The order of a head in one part of the keys; None for the keys that have no part of their own."""

Step: TypeAlias = "str | tuple[str, str]"
"""A step of a probe sequence: a stream, or a stream with an access path that is not the default."""


@dataclass(frozen=True)
class Plan:
    """The probe sequence of each head of a query; it names every other stream once.

    If there is a `tree`, the sequences follow it from each leaf upwards, and every join in it except the last keeps its
    combinations, so that rows of other streams probe these combinations instead of single windows.

    `paths` are access paths other than the default, by head and probed stream.

    `parts` are other plans for some partitions of the keys of one attribute class; then this one is for all other keys.
    """

    query: Query
    sequences: Mapping[str, tuple[str, ...]]
    tree: JoinTree | None = None
    paths: Paths = field(default_factory=dict)
    parts: tuple[tuple[Partitioning, Plan], ...] = ()

    def __post_init__(self) -> None:
        check(self.query, Query, "the query of a plan", PlanError)
        check(self.sequences, Mapping, "the sequences of a plan", PlanError)
        check(self.tree, JoinTree | None, "the tree of a plan", PlanError)
        for head, sequence in self.sequences.items():
            if not isinstance(head, str):
                raise PlanError(f"a head is the name of a stream, not {head!r}")
            if not _is_list_of_names(sequence):
                raise PlanError(f"the probe sequence of head '{head}' is a list of streams, not {sequence!r}")
        if self.tree is not None and dict(self.sequences) != sequences(self.tree, self.query):
            raise PlanError(f"the sequences {dict(self.sequences)} do not follow the tree {self.tree}")
        aliases = self.query.aliases
        for head in self.sequences:
            if head not in aliases:
                hint = did_you_mean(head, aliases)
                raise PlanError(f"the plan has a head '{head}', which is not a stream of the query; {hint}")
        for head in aliases:
            if head not in self.sequences:
                raise PlanError(f"the plan has no probe sequence for head '{head}'; add one")
            self._check_sequence(head, tuple(self.sequences[head]))
        ordered = {head: tuple(self.sequences[head]) for head in aliases}
        object.__setattr__(self, "sequences", MappingProxyType(ordered))
        object.__setattr__(self, "paths", MappingProxyType(dict(self._chosen_paths())))
        self._check_parts()

    def _check_parts(self) -> None:
        for partition, plan in self.parts:
            check(partition, Partitioning, "the keys of a part", PlanError)
            check(plan, Plan, "the plan of a part", PlanError)
            if plan.parts or plan.query != self.query:
                raise PlanError("the plan of a part is for the same query, and has no parts of its own")
            if partition.attribute_class not in self.query.graph.classes:
                raise PlanError(f"'{partition.attribute_class}' is no join key of the query")
        check_disjoint([partition for partition, _ in self.parts])

    def _chosen_paths(self) -> Iterator[tuple[tuple[str, str], str]]:
        """The access paths that are possible and not the default, in the order of the sequences."""
        if self.tree is not None and self.paths:
            raise PlanError("a tree has no access paths of its own; give probe sequences, or leave them out")
        graph = self.query.graph if self.paths else None
        for head, sequence in self.sequences.items():
            for position, stream in enumerate(sequence):
                path = self.paths.get((head, stream))
                if path is None or graph is None:
                    continue
                bound = (head, *sequence[:position])
                check_path(graph, bound, stream, path)
                if path != possible_paths(graph, bound, [stream])[0]:
                    yield (head, stream), path

    def _check_sequence(self, head: str, sequence: tuple[str, ...]) -> None:
        others = [alias for alias in self.query.aliases if alias != head]
        for stream in sequence:
            if stream not in others:
                hint = "a head does not probe itself" if stream == head else did_you_mean(stream, others)
                raise PlanError(f"the sequence of head '{head}' probes '{stream}'; {hint}")
        if sorted(sequence) != sorted(others):
            raise PlanError(
                f"the sequence of head '{head}' must probe each of {', '.join(others)} once, "
                f"not {', '.join(sequence) or 'nothing'}"
            )

    @classmethod
    def in_text_order(cls, query: Query) -> Plan:
        """Each head probes the others in the order of FROM, but joined streams before streams without a condition."""
        others = {head: [alias for alias in query.aliases if alias != head] for head in query.aliases}
        return cls(query, {head: tuple(joined_first(query, [head], others[head])[1:]) for head in query.aliases})

    @classmethod
    def of(cls, query: Query, written: Written | Plan | None) -> Plan:
        """The plan that a user wrote: a mapping of heads to sequences, a tree, or None for the order of FROM.

        >>> from braid.language import parse
        >>> query = parse("SELECT * FROM a [NOW], b [NOW], c [NOW] WHERE a.x = b.x AND b.x = c.x")
        >>> str(Plan.of(query, (("c", "b"), "a")).tree)
        '((c ⋈ b) ⋈ a)'
        """
        if written is None:
            return cls.in_text_order(query)
        if isinstance(written, Plan):
            return written if written.query == query else cls.of(query, written.written)
        if isinstance(written, tuple | list) and are_parts(written, query.aliases):
            return cls._of_parts(query, written)
        if isinstance(written, tuple | list):
            tree = _read_tree(written, query)
            return cls(query, sequences(tree, query), tree)
        if not isinstance(written, Mapping):
            raise PlanError(
                f"a plan maps each head to its probe sequence, or is a tree of streams in tuples, not {written!r}"
            )
        return cls._of_sequences(query, written)

    @classmethod
    def _of_sequences(cls, query: Query, written: Mapping[str, Sequence[WrittenStep]]) -> Plan:
        sequences: dict[str, tuple[str, ...]] = {}
        paths: dict[tuple[str, str], str] = {}
        for head, steps in written.items():
            if isinstance(steps, str) or not isinstance(steps, Sequence):
                raise PlanError(f"the probe sequence of head '{head}' is a list of streams, not {steps!r}")
            read = [read_step(head, step) for step in steps]
            sequences[head] = tuple(stream for stream, _ in read)
            paths |= {(head, stream): path for stream, path in read if path is not None}
        return cls(query, sequences, None, paths)

    @classmethod
    def _of_parts(cls, query: Query, written: Sequence[Any]) -> Plan:
        written_parts, written_rest = read_parts(written, query)
        parts = [(partition, _plan_of_part(cls, query, plan)) for partition, plan in written_parts]
        return _plan_of_part(cls, query, written_rest).with_parts(tuple(parts))

    def with_parts(self, parts: tuple[tuple[Partitioning, Plan], ...]) -> Plan:
        """This plan, with other plans for some parts of the keys."""
        return Plan(self.query, self.sequences, self.tree, self.paths, parts)

    @property
    def whole(self) -> Plan:
        """This plan without its parts: the plan of the rest, used for all keys."""
        return self.with_parts(()) if self.parts else self

    @property
    def keeps_combinations(self) -> bool:
        """Whether any part of the plan is a tree, which keeps the combinations of its inner joins."""
        return self.tree is not None or any(plan.tree is not None for _, plan in self.parts)

    @property
    def partitions(self) -> tuple[Partitioning, ...]:
        """The keys of each part."""
        return tuple(partition for partition, _ in self.parts)

    def with_paths(self, paths: Paths) -> Plan:
        """The same probe sequences with other access paths."""
        return Plan(self.query, self.sequences, self.tree, paths, self.parts)

    def with_orders_of(self, other: Plan, heads: Collection[str]) -> Plan:
        """This plan with the probe sequences of some heads, and their access paths, from another plan.

        The other plan has the same parts, or none.
        """
        theirs = dict(other.parts)
        parts = tuple(
            (partition, plan.with_orders_of(theirs.get(partition, other.whole), heads))
            for partition, plan in self.parts
        )
        chosen = {head: other if head in heads else self for head in self.sequences}
        sequences = {head: plan.sequences[head] for head, plan in chosen.items()}
        paths: dict[tuple[str, str], str] = {}
        for head, plan in chosen.items():
            paths |= {probe: path for probe, path in plan.paths.items() if probe[0] == head}
        return Plan(self.query, sequences, None, paths, parts)

    def routes(self, head: str) -> tuple[Route, ...]:
        """The order of a head: first for all other keys, then for each part."""
        by_part = ((partition, plan.steps(head)) for partition, plan in self.parts)
        return ((None, self.steps(head)), *by_part)

    def steps(self, head: str) -> tuple[Step, ...]:
        """The probe sequence of a head, with its access paths."""
        paths = {stream: self.paths.get((head, stream)) for stream in self.sequences[head]}
        return tuple(stream if path is None else (stream, path) for stream, path in paths.items())

    @property
    def written(self) -> Written:
        """This plan in the form that `of` reads: names in a dictionary or in nested tuples, or a list of parts."""
        if self.parts:
            parts = [(write_part(partition, self.query), plan.written) for partition, plan in self.parts]
            return [*parts, (REST, self.whole.written)]
        if isinstance(self.tree, Merge):
            return _write_tree(self.tree)
        if not self.paths:
            return dict(self.sequences)
        return {
            head: [step if isinstance(step, str) else dict([step]) for step in self.steps(head)]
            for head in self.sequences
        }

    def without_join_states(self) -> Plan:
        """The same probe sequences without kept combinations: every probe reads the window of one stream."""
        parts = tuple((partition, plan.without_join_states()) for partition, plan in self.parts)
        return Plan(self.query, self.sequences, parts=parts)

    def explain(self, statistics: Statistics | None = None) -> str:
        """The plan as readable text: the order, the predicates and the expected rows of each step.

        Statistics are not known by part: a plan with parts shows the rates of its streams, and no rows of its steps.
        """
        if not self.parts:
            return explain(self.query, [("", self._orders(self, statistics or Statistics()))], {})
        plans = [(show_part(partition, self.query), plan) for partition, plan in self.parts]
        orders = [(keys, self._orders(plan, Statistics())) for keys, plan in [*plans, ("all other keys", self)]]
        known = {source.alias: statistics.rate(source) for source in self.query.sources} if statistics else {}
        rates = {alias: rate for alias, rate in known.items() if rate is not None}
        return explain(self.query, orders, rates)

    def _orders(self, plan: Plan, statistics: Statistics) -> list[str]:
        return explain_orders(self.query, plan.sequences, plan.tree, statistics, plan.paths)

    def _repr_html_(self) -> str:
        """The plan drawn, for notebooks."""
        drawn = [(show_part(partition, self.query), plan) for partition, plan in self.parts]
        drawn.append(("all other keys" if self.parts else "", self))
        return "".join(drawn_plan(self.query, plan.sequences, plan.tree, keys) for keys, plan in drawn)


def _plan_of_part(cls: type[Plan], query: Query, written: Any) -> Plan:
    """The plan of a part; it cannot be left out, and has no parts of its own."""
    if written is None:
        raise PlanError("a part of a plan needs a plan: probe sequences or a tree")
    plan = cls.of(query, written)
    if plan.parts:
        raise PlanError("the plan of a part has no parts of its own; list all parts side by side")
    return plan


def _read_tree(written: object, query: Query, depth: int = 1) -> JoinTree:
    if isinstance(written, tuple | list):
        if depth > len(query.aliases):
            raise PlanError(f"the tree nests joins more than {depth - 1} deep; every join must add a stream")
        return Merge(tuple(_read_tree(subtree, query, depth + 1) for subtree in written))
    if not isinstance(written, str):
        raise PlanError(f"a tree consists of names of streams in nested tuples, not {written!r}")
    if written not in query.aliases:
        hint = did_you_mean(written, query.aliases)
        raise PlanError(f"the tree joins {written!r}, which is not a stream of the query; {hint}")
    return Leaf(written)


def _write_tree(tree: Merge) -> Written:
    """A tree as nested tuples of names."""
    return tuple(_write_tree(subtree) if isinstance(subtree, Merge) else str(subtree) for subtree in tree.inputs)


def _is_list_of_names(sequence: object) -> bool:
    if isinstance(sequence, str) or not isinstance(sequence, Sequence):
        return False
    return all(isinstance(stream, str) for stream in sequence)
