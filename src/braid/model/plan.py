"""A plan: for each stream, the order in which its new rows probe the other streams, and which combinations are kept."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, TypeAlias

from braid.errors import PlanError, did_you_mean
from braid.model.access import Paths, WrittenStep, check_path, possible_paths, read_step
from braid.model.checks import check
from braid.model.explain import explain
from braid.model.html import drawn_plan
from braid.model.query import Query
from braid.model.statistics import Statistics
from braid.model.tree import JoinTree, Leaf, Merge, joined_first, sequences

Written: TypeAlias = "Mapping[str, Sequence[WrittenStep]] | tuple[Any, ...] | list[Any]"
"""A plan as users write it: a mapping of heads to probe sequences, or a join tree as nested tuples of names."""

Step: TypeAlias = "str | tuple[str, str]"
"""A step of a probe sequence: a stream, or a stream with an access path that is not the default."""


@dataclass(frozen=True)
class Plan:
    """The probe sequence of each head of a query; it names every other stream once.

    If there is a `tree`, the sequences follow it from each leaf upwards, and every join in it except the last keeps its
    combinations, so that the other streams probe them as a whole.

    `paths` are access paths other than the default, by head and probed stream.
    """

    query: Query
    sequences: Mapping[str, tuple[str, ...]]
    tree: JoinTree | None = None
    paths: Paths = field(default_factory=dict)

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

    def with_paths(self, paths: Paths) -> Plan:
        """The same probe sequences with other access paths."""
        return Plan(self.query, self.sequences, self.tree, paths)

    def taking(self, other: Plan, heads: Collection[str]) -> Plan:
        """This plan with the probe sequences of some heads, and their access paths, from another plan."""
        chosen = {head: other if head in heads else self for head in self.sequences}
        sequences = {head: plan.sequences[head] for head, plan in chosen.items()}
        paths = {probe: path for head, plan in chosen.items() for probe, path in plan.paths.items() if probe[0] == head}
        return Plan(self.query, sequences, None, paths)

    def steps(self, head: str) -> tuple[Step, ...]:
        """The probe sequence of a head, with its access paths."""
        paths = {stream: self.paths.get((head, stream)) for stream in self.sequences[head]}
        return tuple(stream if path is None else (stream, path) for stream, path in paths.items())

    @property
    def written(self) -> Written:
        """This plan in the form that `of` reads: names in a dictionary or in nested tuples."""
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
        return Plan(self.query, self.sequences)

    def explain(self, statistics: Statistics | None = None) -> str:
        """The plan as readable text: the order, the predicates and the expected rows of each step."""
        return explain(self.query, self.sequences, self.tree, statistics or Statistics(), self.paths)

    def _repr_html_(self) -> str:
        """The plan drawn, for notebooks."""
        return drawn_plan(self.query, self.sequences, self.tree)


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
