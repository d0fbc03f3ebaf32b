"""A plan: for each stream, the order in which its new tuples probe the others, and what combinations are kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeAlias

from braid.errors import PlanError, did_you_mean
from braid.model.checks import check
from braid.model.explain import explain
from braid.model.query import Query
from braid.model.statistics import Statistics
from braid.model.tree import JoinTree, Leaf, Merge, sequences

Written: TypeAlias = "Mapping[str, Sequence[str]] | tuple[Any, ...] | list[Any]"
"""A plan as people write it: heads and their probe sequences, or tuples of names and tuples."""


@dataclass(frozen=True)
class Plan:
    """Per-head probe sequences for a query; every sequence names every other stream once.

    If there is a `tree`, the sequences are those of its leaves on their way up, and every join in it but the last
    keeps its combinations, to be probed as a whole.
    """

    query: Query
    sequences: Mapping[str, tuple[str, ...]]
    tree: JoinTree | None = None

    def __post_init__(self) -> None:
        check(self.query, Query, "what a plan is for", PlanError)
        check(self.sequences, Mapping, "the sequences of a plan", PlanError)
        check(self.tree, JoinTree | None, "the tree of a plan", PlanError)
        for head, sequence in self.sequences.items():
            if not isinstance(head, str):
                raise PlanError(f"a head is the name of a stream, not {head!r}")
            if isinstance(sequence, str) or not all(isinstance(stream, str) for stream in _listed(sequence)):
                raise PlanError(f"the probe sequence of head '{head}' is a list of streams, not {sequence!r}")
        if self.tree is not None and dict(self.sequences) != sequences(self.tree, self.query):
            raise PlanError(f"the sequences {dict(self.sequences)} are not those of the tree {self.tree}")
        aliases = self.query.aliases
        for head in self.sequences:
            if head not in aliases:
                raise PlanError(f"the plan has a head '{head}' that the query has not; {did_you_mean(head, aliases)}")
        for head in aliases:
            if head not in self.sequences:
                raise PlanError(f"the plan says nothing of head '{head}'; give its probe sequence")
            self._check_sequence(head, tuple(self.sequences[head]))
        object.__setattr__(self, "sequences", MappingProxyType({head: tuple(self.sequences[head]) for head in aliases}))

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
        """Each head probes the others in the order of FROM, but those it is joined with before those it is not."""
        return cls(query, {head: _text_sequence(query, head) for head in query.aliases})

    @classmethod
    def of(cls, query: Query, written: Written | Plan | None) -> Plan:
        """A plan as people write it: a mapping of heads to sequences, a tree, or None for the order of the text.

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
        """What `of` makes this plan from: plain names in dictionaries and tuples."""
        return _write_tree(self.tree) if isinstance(self.tree, Merge) else dict(self.sequences)

    def without_kept(self) -> Plan:
        """The same probe sequences, but nothing is kept besides the windows of the streams."""
        return Plan(self.query, self.sequences)

    def explain(self, statistics: Statistics | None = None) -> str:
        """The plan for people: the order, the predicates at each step and the rows to expect."""
        return explain(self.query, self.sequences, self.tree, statistics or Statistics())


def _read_tree(written: object, query: Query, depth: int = 1) -> JoinTree:
    if isinstance(written, tuple | list):
        if depth > len(query.aliases):
            raise PlanError(f"the tree has joins nested more than {depth - 1} deep; every join adds a stream")
        return Merge(tuple(_read_tree(part, query, depth + 1) for part in written))
    if not isinstance(written, str):
        raise PlanError(f"a tree is made of names of streams and tuples of them, not {written!r}")
    if written not in query.aliases:
        raise PlanError(f"the tree joins {written!r}, which the query has not; {did_you_mean(written, query.aliases)}")
    return Leaf(written)


def _write_tree(tree: Merge) -> Written:
    """Tuples of tuples and names."""
    return tuple(_write_tree(part) if isinstance(part, Merge) else str(part) for part in tree.inputs)


def _listed(sequence: object) -> Sequence[object]:
    return sequence if isinstance(sequence, Sequence) else (None,)


def _text_sequence(query: Query, head: str) -> tuple[str, ...]:
    bound, rest = [head], [alias for alias in query.aliases if alias != head]
    while rest:
        following = next((alias for alias in rest if query.graph.joined(bound, alias)), rest[0])
        rest.remove(following)
        bound.append(following)
    return tuple(bound[1:])
