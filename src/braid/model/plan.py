"""A plan: for each stream, the order in which its new rows probe the other streams, and which combinations are kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeAlias

from braid.errors import PlanError, did_you_mean
from braid.model.checks import check
from braid.model.explain import explain
from braid.model.html import drawn_plan
from braid.model.query import Query
from braid.model.statistics import Statistics
from braid.model.tree import JoinTree, Leaf, Merge, joined_first, sequences

Written: TypeAlias = "Mapping[str, Sequence[str]] | tuple[Any, ...] | list[Any]"
"""A plan as users write it: a mapping of heads to probe sequences, or a join tree as nested tuples of names."""


@dataclass(frozen=True)
class Plan:
    """The probe sequence of each head of a query; it names every other stream once.

    If there is a `tree`, the sequences follow it from each leaf upwards, and every join in it except the last keeps its
    combinations, so that the other streams probe them as a whole.
    """

    query: Query
    sequences: Mapping[str, tuple[str, ...]]
    tree: JoinTree | None = None

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
        return cls(query, written)  # type: ignore[arg-type]

    @property
    def written(self) -> Written:
        """This plan in the form that `of` reads: names in a dictionary or in nested tuples."""
        return _write_tree(self.tree) if isinstance(self.tree, Merge) else dict(self.sequences)

    def without_join_states(self) -> Plan:
        """The same probe sequences without kept combinations: every probe reads the window of one stream."""
        return Plan(self.query, self.sequences)

    def explain(self, statistics: Statistics | None = None) -> str:
        """The plan as readable text: the order, the predicates and the expected rows of each step."""
        return explain(self.query, self.sequences, self.tree, statistics or Statistics())

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
