"""A plan: for each stream, the order in which its new tuples probe the windows of the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from braid.errors import PlanError, did_you_mean
from braid.model.query import Query
from braid.model.statistics import Statistics


@dataclass(frozen=True)
class Plan:
    """Per-head probe sequences for a query; every sequence names every other stream once."""

    query: Query
    sequences: Mapping[str, tuple[str, ...]]

    def __post_init__(self) -> None:
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
    def of(cls, query: Query, sequences: Plan | Mapping[str, Sequence[str]] | None) -> Plan:
        """A plan as people write it: a mapping of heads to sequences, or None for the order of the text."""
        if sequences is None:
            return cls.in_text_order(query)
        if isinstance(sequences, Plan):
            sequences = sequences.sequences
        if not isinstance(sequences, Mapping):
            raise PlanError(f"a plan maps each head to its probe sequence; {sequences!r} is no mapping")
        for head, sequence in sequences.items():
            if not isinstance(head, str):
                raise PlanError(f"a head is the name of a stream, not {head!r}")
            if isinstance(sequence, str) or not all(isinstance(stream, str) for stream in _listed(sequence)):
                raise PlanError(f"the probe sequence of head '{head}' is a list of streams, not {sequence!r}")
        return cls(query, {head: tuple(sequence) for head, sequence in sequences.items()})

    def explain(self, statistics: Statistics | None = None) -> str:
        """The plan for people: the order, the predicates at each step and the rows to expect."""
        from braid.model.explain import explain

        return explain(self, statistics or Statistics())


def _listed(sequence: object) -> Sequence[object]:
    return sequence if isinstance(sequence, Sequence) else (None,)


def _text_sequence(query: Query, head: str) -> tuple[str, ...]:
    bound, rest = [head], [alias for alias in query.aliases if alias != head]
    while rest:
        following = next((alias for alias in rest if query.graph.joined(bound, alias)), rest[0])
        rest.remove(following)
        bound.append(following)
    return tuple(bound[1:])
