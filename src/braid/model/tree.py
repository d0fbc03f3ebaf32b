"""Join trees: which streams are joined first, and which derived streams of other queries are reused."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, TypeVar

from braid.errors import PlanError
from braid.model.checks import check, check_each, check_name
from braid.model.query import Query


@dataclass(frozen=True, slots=True)
class Leaf:
    """A base stream."""

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
    """A derived stream: the join of `streams` that another query already computes at a site."""

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
        if sum(len(tree.streams) for tree in self.inputs) != len(self.streams):
            raise PlanError(f"the inputs of {self} share a stream; join each stream once")

    @cached_property
    def streams(self) -> frozenset[str]:
        return frozenset().union(*(tree.streams for tree in self.inputs))

    def __str__(self) -> str:
        return f"({' ⋈ '.join(map(str, self.inputs))})"


JoinTree = Leaf | Reused | Merge


def merges(tree: JoinTree) -> Iterator[Merge]:
    """Every join of a tree, bottom up: a join comes after its inputs."""
    if isinstance(tree, Merge):
        for subtree in tree.inputs:
            yield from merges(subtree)
        yield tree


def leaves(tree: JoinTree) -> Iterator[Leaf | Reused]:
    """The leaves of a tree, left to right."""
    if isinstance(tree, Merge):
        for subtree in tree.inputs:
            yield from leaves(subtree)
    else:
        yield tree


class JoinInput(Protocol):
    """Anything that can be an input of a join: it has the aliases of the streams in it."""

    @property
    def streams(self) -> frozenset[str]: ...


Input = TypeVar("Input", bound=JoinInput)


def probe_order(query: Query, inputs: Sequence[Input], head: Input) -> Iterator[Input]:
    """The order in which rows of `head` probe the other inputs of a join.

    It is the order of `inputs`, except that inputs with a condition on an input before them go first.
    """
    bound = head.streams
    rest = [candidate for candidate in inputs if candidate is not head]
    while rest:
        with_condition = (candidate for candidate in rest if any(query.graph.between(bound, candidate.streams)))
        following = next(with_condition, rest[0])
        rest.remove(following)
        bound |= following.streams
        yield following


def joined_first(query: Query, bound: Sequence[str], streams: Iterable[str]) -> list[str]:
    """`bound`, then `streams` in their order, except that streams with a condition on a stream before them go first."""
    order = list(bound)
    rest = list(streams)
    while rest:
        following = next((stream for stream in rest if query.graph.joined(order, stream)), rest[0])
        rest.remove(following)
        order.append(following)
    return order


def sequences(tree: JoinTree, query: Query) -> dict[str, tuple[str, ...]]:
    """The probe sequence of each head: it follows the tree from the leaf of the head upwards.

    >>> from braid.language import parse
    >>> query = parse("SELECT * FROM a [NOW], b [NOW], c [NOW] WHERE a.x = b.x AND b.x = c.x")
    >>> sequences(Merge((Merge((Leaf("a"), Leaf("c"))), Leaf("b"))), query)
    {'a': ('c', 'b'), 'b': ('a', 'c'), 'c': ('a', 'b')}
    """
    if tree.streams != frozenset(query.aliases):
        wrong = ", ".join(sorted(frozenset(query.aliases) ^ tree.streams))
        raise PlanError(f"a plan joins each stream of its query once; check {wrong}")
    return {head: _sequence_of(tree, head, query) for head in query.aliases}


def _sequence_of(tree: JoinTree, head: str, query: Query) -> tuple[str, ...]:
    # From the root down to the leaf of the head: the streams that each join adds to the head's side.
    added: list[frozenset[str]] = []
    node = tree
    while isinstance(node, Merge):
        subtree = next(candidate for candidate in node.inputs if head in candidate.streams)
        added.append(node.streams - subtree.streams)
        node = subtree
    added.append(node.streams - {head})
    order = [head]
    for streams in reversed(added):
        order = joined_first(query, order, (alias for alias in query.aliases if alias in streams))
    return tuple(order[1:])
