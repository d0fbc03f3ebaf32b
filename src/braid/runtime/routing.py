"""Which shards a row goes to, so that all rows of a result meet in exactly one.

The shards form a grid. Each of its dimensions belongs to an attribute class, or to one stream: a row with a value in
the class (or of that stream) goes to one coordinate, any other row is copied to all. With one class that every stream
has, that is plain hashing; with several, or with conditions that are no equalities, it is the price of one shuffle.
A row of an excluded stream goes wherever a result may be that it matches: with the class that it is compared with by
equality, or else everywhere.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from math import prod

import numpy as np
import pyarrow as pa

from braid.engine.arrays.jit import Words
from braid.engine.keys.hashing import combine_words
from braid.model.expressions.expression import Call, Expression, sources_of
from braid.model.expressions.types import equality_type
from braid.model.expressions.typing import type_of
from braid.model.graph import AttributeClass
from braid.model.query import Exclusion, Query
from braid.model.window import Rows

ROUTING_SALT = np.int64(0x5BD1E995)
"""Rows are spread by another hash than the one their index uses, or shards would share index buckets."""


@dataclass(frozen=True, slots=True)
class Dimension:
    """One side of the grid: by the number of a class of `routing_classes`, or by a stream."""

    attribute_class: int | None
    streams: frozenset[str]
    share: int


@dataclass(frozen=True, slots=True)
class Router:
    """A grid of shards, numbered from 0."""

    dimensions: tuple[Dimension, ...]

    @property
    def shards(self) -> int:
        return prod(dimension.share for dimension in self.dimensions)

    def copies(self, streams: Collection[str]) -> int:
        """How many shards a row of a stream goes to, or have all rows of a combination of several."""
        return prod(dimension.share for dimension in self.dimensions if dimension.streams.isdisjoint(streams))

    def route(self, stream: str, words: Mapping[int, Words], times: Words) -> Iterator[tuple[int, Words]]:
        """For each shard, which of some rows go there, given their key words and event times."""
        coordinates = [
            _coordinates(
                times if dimension.attribute_class is None else words[dimension.attribute_class], dimension.share
            )
            if stream in dimension.streams
            else None
            for dimension in self.dimensions
        ]
        for shard, wanted in enumerate(product(*(range(dimension.share) for dimension in self.dimensions))):
            chosen = np.full(len(times), True)
            for coordinate, place in zip(coordinates, wanted, strict=True):
                if coordinate is not None:
                    chosen &= coordinate == place
            yield shard, np.flatnonzero(chosen)


def router_for(query: Query, shards: int, rates: Mapping[str, float] | None = None) -> Router:
    """The grid of (at most) so many shards that copies least, given the rates of the streams, if they are known.

    A window that counts the rows of its whole stream must see them all, in one shard.
    """
    if any(source.window.counts_rows and not _counts_by_class(query, source.alias) for source in query.sources):
        return Router((Dimension(None, frozenset(query.aliases[:1]), 1),))
    sides = _sides(query)
    known = rates or {}
    weights = {source.alias: known.get(source.alias, 1.0) for source in query.inputs}

    def work(router: Router) -> tuple[float, int]:
        copied = sum(weight * router.copies([alias]) for alias, weight in weights.items())
        return copied / router.shards, -router.shards

    grids = (
        Router(tuple(Dimension(number, streams, share) for (number, streams), share in zip(sides, shares, strict=True)))
        for shares in _factorisations(shards, len(sides))
    )
    return min(grids, key=work)


def _counts_by_class(query: Query, alias: str) -> bool:
    """Whether the partitions of a counting window never span shards: it is partitioned by the one join attribute."""
    window = query.source(alias).window
    classes = query.graph.classes
    if not isinstance(window, Rows) or len(classes) != 1 or classes[0].sources != frozenset(query.aliases):
        return False
    return any(str(classes[0].key(alias)) == f"{alias}.{name}" for name in window.partition_by)


def routing_classes(query: Query) -> tuple[AttributeClass, ...]:
    """The attribute classes by which rows are spread: those of the join graph, with excluded streams tied to them.

    A query of one stream has those by which it is compared with excluded streams.
    """
    classes = list(query.graph.classes)
    for exclusion in query.exclusions:
        if exclusion.source.window.counts_rows:
            continue  # counts all rows of its stream, wherever they are
        for own, (owner, compared), kind in _equalities(query, exclusion):
            member, place = (exclusion.source.alias, own), _class_of(classes, owner, compared, kind)
            if place is None and len(query.sources) == 1:
                classes.append(AttributeClass(((owner, compared), member), kind))
            elif place is not None and exclusion.source.alias not in classes[place].sources:
                classes[place] = AttributeClass((*classes[place].members, member), kind)
    return tuple(classes)


def _equalities(query: Query, exclusion: Exclusion) -> Iterator[tuple[Expression, tuple[str, Expression], pa.DataType]]:
    """What an excluded stream is compared by: its own side, the other with its stream, and the type compared in."""

    def kind_of(expression: Expression) -> pa.DataType:
        return type_of(
            expression, lambda column: query.source(column.source or "").declared.schema.field(column.name).type
        )

    for predicate in exclusion.predicates:
        expression = predicate.expression
        if isinstance(expression, Call) and expression.function == "equal":
            for own, other in (expression.arguments, expression.arguments[::-1]):
                owners = sources_of(other)
                if sources_of(own) == {exclusion.source.alias} and len(owners) == 1 and owners <= set(query.aliases):
                    yield own, (next(iter(owners)), other), equality_type(kind_of(own), kind_of(other))


def _class_of(classes: list[AttributeClass], owner: str, member: Expression, kind: pa.DataType) -> int | None:
    return next(
        (place for place, owned in enumerate(classes) if (owner, member) in owned.members and owned.type == kind), None
    )


def _sides(query: Query) -> list[tuple[int | None, frozenset[str]]]:
    everyone = frozenset(query.aliases)
    by_class: list[tuple[int | None, frozenset[str]]] = [
        (number, owned.sources) for number, owned in enumerate(routing_classes(query))
    ]
    whole = [side for side in by_class if everyone <= side[1]]
    if whole:
        return [max(whole, key=lambda side: len(side[1]))]
    covered = frozenset[str]().union(*(streams for _, streams in by_class))
    return by_class + [(None, frozenset({stream})) for stream in query.aliases if stream not in covered]


def _factorisations(shards: int, sides: int) -> Iterator[tuple[int, ...]]:
    """Every way to write a number as a product of so many factors, in order."""
    if sides == 1:
        yield (shards,)
        return
    for first in range(1, shards + 1):
        if shards % first == 0:
            yield from ((first, *rest) for rest in _factorisations(shards // first, sides - 1))


def _coordinates(words: Words, share: int) -> Words:
    if share == 1:
        return np.zeros(len(words), np.int64)
    salted = np.full(len(words), ROUTING_SALT)
    return (combine_words([salted, words]).view(np.uint64) % np.uint64(share)).astype(np.int64)
