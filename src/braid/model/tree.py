"""Join trees: which streams are joined first, and what is there already."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, TypeVar

from braid.errors import PlanError
from braid.model.checks import check, check_each, check_name
from braid.model.query import Query


@dataclass(frozen=True, slots=True)
class Leaf:
    """A stream as it starts."""

    stream: str

    def __post_init__(self) -> None:
        check_name(self.stream, "a leaf of a join tree", PlanError)

    @property
    def streams(self) -> frozenset[str]:
        return frozenset({self.stream})

    def __str__(self) -> str:
        return self.stream


@dataclass(frozen=True, slots=True)
class Reused:
    """The join of some streams as another query makes it already, at a site."""

    streams: frozenset[str]
    site: str
    name: str

    def __post_init__(self) -> None:
        check(self.streams, frozenset, "the streams of a derived stream", PlanError)
        check_name(self.site, "the site of a derived stream", PlanError)
        check(self.name, str, "the name of a derived stream", PlanError)
        if not self.streams:
            raise PlanError("a derived stream joins at least one stream")

    def __str__(self) -> str:
        return f"[{self.name} at {self.site}]"


@dataclass(frozen=True)
class Merge:
    """A join of two or more inputs that have no stream in common."""

    inputs: tuple[JoinTree, ...]

    def __post_init__(self) -> None:
        check_each(self.inputs, JoinTree, "the inputs of a join", PlanError)
        if len(self.inputs) < 2:
            raise PlanError(f"a join has at least two inputs, not {len(self.inputs)}")
        if sum(len(part.streams) for part in self.inputs) != len(self.streams):
            raise PlanError(f"the inputs of {self} share a stream; each stream is joined once")

    @cached_property
    def streams(self) -> frozenset[str]:
        return frozenset().union(*(part.streams for part in self.inputs))

    def __str__(self) -> str:
        return f"({' ⋈ '.join(map(str, self.inputs))})"


JoinTree = Leaf | Reused | Merge


def merges(tree: JoinTree) -> Iterator[Merge]:
    """Every join of a tree, inputs before what they are inputs of."""
    if isinstance(tree, Merge):
        for part in tree.inputs:
            yield from merges(part)
        yield tree


def leaves(tree: JoinTree) -> Iterator[Leaf | Reused]:
    """What a tree starts from, left to right."""
    if isinstance(tree, Merge):
        for part in tree.inputs:
            yield from leaves(part)
    else:
        yield tree


class Joined(Protocol):
    """An input of a join."""

    @property
    def streams(self) -> frozenset[str]: ...


Input = TypeVar("Input", bound=Joined)


def probe_order(query: Query, inputs: Sequence[Input], head: Input) -> Iterator[Input]:
    """The other inputs of a join, as they stand, but those that something ties to what is joined before the rest."""
    bound, rest = head.streams, [part for part in inputs if part is not head]
    while rest:
        following = next((part for part in rest if any(query.graph.between(bound, part.streams))), rest[0])
        rest.remove(following)
        bound |= following.streams
        yield following


def sequences(tree: JoinTree, query: Query) -> dict[str, tuple[str, ...]]:
    """The order in which each head probes the windows of the others if it follows the tree from its leaf upwards.

    >>> from braid.language import parse
    >>> query = parse("SELECT * FROM a [NOW], b [NOW], c [NOW] WHERE a.x = b.x AND b.x = c.x")
    >>> sequences(Merge((Merge((Leaf("a"), Leaf("c"))), Leaf("b"))), query)
    {'a': ('c', 'b'), 'b': ('a', 'c'), 'c': ('a', 'b')}
    """
    if tree.streams != frozenset(query.aliases):
        missing = ", ".join(sorted(frozenset(query.aliases) ^ tree.streams))
        raise PlanError(f"a plan joins each stream of its query once; check {missing}")
    return {head: _from(tree, head, query) for head in query.aliases}


def _from(tree: JoinTree, head: str, query: Query) -> tuple[str, ...]:
    groups: list[frozenset[str]] = []
    node = tree
    while isinstance(node, Merge):
        within = next(part for part in node.inputs if head in part.streams)
        groups.append(node.streams - within.streams)
        node = within
    groups.append(node.streams - {head})
    bound = [head]
    for group in reversed(groups):
        rest = [alias for alias in query.aliases if alias in group]
        while rest:
            following = next((alias for alias in rest if query.graph.joined(bound, alias)), rest[0])
            rest.remove(following)
            bound.append(following)
    return tuple(bound[1:])
