"""The join graph: the streams of a query, the attribute classes that join them, and all other conditions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from braid.errors import ModelError, did_you_mean
from braid.model.band import Band, bands_of
from braid.model.checks import check, check_each
from braid.model.expressions.expression import Call, Cast, Expression, sources_of
from braid.model.expressions.types import equality_type
from braid.model.expressions.typing import type_of
from braid.model.predicate import Predicate


@dataclass(frozen=True)
class AttributeClass:
    """Expressions, each over one stream, that must all be equal: a.x = b.x and b.x = c.y make one class.

    `type` is the type in which they are compared; None while the schemas are unknown. Only equalities that compare in
    the same type share a class, because equality is transitive within a type but not across lossy conversions.
    """

    members: tuple[tuple[str, Expression], ...]
    type: pa.DataType | None

    def __post_init__(self) -> None:
        check(self.type, pa.DataType | None, "the type of an attribute class")
        check_each(self.members, tuple, "the members of an attribute class")
        for member in self.members:
            if len(member) != 2:
                raise ModelError(f"a member of an attribute class is a stream and an expression, not {member!r:.80}")
            source, expression = member
            check(expression, Expression, "a member of an attribute class")
            if sources_of(expression) != {source}:
                raise ModelError(f"'{expression}' must read columns of stream {source!r} and of no other")
        if len(self.sources) < 2:
            raise ModelError(f"an attribute class joins at least two streams, not {len(self.sources)}")

    @cached_property
    def sources(self) -> frozenset[str]:
        return frozenset(source for source, _ in self.members)

    def key(self, source: str) -> Expression:
        """The expression of a stream to compare: the first member of the stream, since its other members equal it."""
        return next(expression for owner, expression in self.members if owner == source)

    def equality(self, left: Expression, right: Expression, schemas: Mapping[str, pa.Schema]) -> Predicate:
        """The condition that two members are equal, compared in the type of the class."""
        if self.type is not None and compared_in(left, right, schemas) != self.type:
            left, right = Cast(left, self.type), Cast(right, self.type)
        return Predicate(Call("equal", (left, right)))

    def implies(self, left: Expression, right: Expression, schemas: Mapping[str, pa.Schema]) -> bool:
        """Whether the class implies `left = right`, compared in the types that the two expressions have."""
        members = {expression for _, expression in self.members}
        if left in members and right in members:
            return bool(compared_in(left, right, schemas) == self.type)
        return self.type is not None and {left, right} <= {Cast(member, self.type) for member in members}

    def __str__(self) -> str:
        return " = ".join(str(expression) for _, expression in self.members)


@dataclass(frozen=True)
class JoinGraph:
    """The streams of a query and the conditions between them.

    - `classes`: the equalities between streams;
    - `selections`: the conditions on one stream, each with the stream;
    - `residuals`: all other conditions on two or more streams;
    - `bands`: what a band index can use of the residuals.
    """

    streams: tuple[str, ...]
    classes: tuple[AttributeClass, ...]
    selections: tuple[tuple[str, Predicate], ...]
    residuals: tuple[Predicate, ...]
    bands: tuple[Band, ...] = ()

    def __post_init__(self) -> None:
        check_each(self.streams, str, "the streams of a join graph")
        check_each(self.classes, AttributeClass, "the classes of a join graph")
        check_each(self.selections, tuple, "the selections of a join graph")
        check_each(self.residuals, Predicate, "the residuals of a join graph")
        if not self.streams or len(set(self.streams)) < len(self.streams):
            raise ModelError(f"a join graph needs at least one stream, and each stream once, not {self.streams}")
        for attribute_class in self.classes:
            self._check_known(attribute_class.sources, attribute_class)
        for owner, predicate in self.selections:
            check(predicate, Predicate, "a selection")
            self._check_known({owner}, predicate)
            if not predicate.sources <= {owner}:
                raise ModelError(f"the selection '{predicate}' of stream '{owner}' reads other streams too")
        for predicate in self.residuals:
            self._check_known(predicate.sources, predicate)
            if len(predicate.sources) < 2:
                raise ModelError(f"'{predicate}' reads only one stream; make it a selection")

    def _check_known(self, sources: Iterable[str], condition: AttributeClass | Predicate) -> None:
        for source in sorted(sources):
            if source not in self.streams:
                hint = did_you_mean(source, self.streams)
                raise ModelError(f"'{condition}' reads stream '{source}', which is not in the join graph; {hint}")

    @classmethod
    def of(
        cls, streams: tuple[str, ...], predicates: Iterable[Predicate], schemas: Mapping[str, pa.Schema]
    ) -> JoinGraph:
        """The join graph of these conditions; without schemas, it has no types and no bands."""
        equalities = _Equalities(schemas)
        selections: list[tuple[str, Predicate]] = []
        residuals: list[Predicate] = []
        for predicate in predicates:
            sources = sorted(predicate.sources, key=streams.index)
            if len(sources) < 2:
                # A condition that reads no stream is a selection of the first one.
                selections.append((sources[0] if sources else streams[0], predicate))
            elif not equalities.add(predicate.expression):
                residuals.append(predicate)
        classes = equalities.classes(streams)
        for attribute_class in classes:
            selections.extend(_equal_members(attribute_class))
        bands = bands_of(residuals, equalities.type_of) if schemas else ()
        return cls(streams, classes, tuple(selections), tuple(residuals), bands)

    def classes_between(self, bound: Iterable[str], stream: str) -> tuple[AttributeClass, ...]:
        """The attribute classes that `stream` shares with any of the streams already joined."""
        joined = frozenset(bound)
        return tuple(
            attribute_class
            for attribute_class in self.classes
            if stream in attribute_class.sources and joined & attribute_class.sources
        )

    def classes_of(self, stream: str) -> dict[int, AttributeClass]:
        """The attribute classes that a stream is part of, by their numbers."""
        return {
            class_number: attribute_class
            for class_number, attribute_class in enumerate(self.classes)
            if stream in attribute_class.sources
        }

    def band_between(self, left: Collection[str], right: Collection[str]) -> int | None:
        """The number of the first band between two groups of streams; None if there is none."""
        numbered = enumerate(self.bands, len(self.classes))
        return next((band_number for band_number, band in numbered if band.joins(left, right)), None)

    def _classes_joining(self, left: frozenset[str], right: frozenset[str]) -> tuple[AttributeClass, ...]:
        return tuple(
            attribute_class
            for attribute_class in self.classes
            if attribute_class.sources & left and attribute_class.sources & right
        )

    @property
    def indexed(self) -> tuple[frozenset[str], ...]:
        """The streams of each attribute class and of each band: the joins that an index serves."""
        return (*(attribute_class.sources for attribute_class in self.classes), *(band.sources for band in self.bands))

    def numbered_bands(self) -> dict[int, Band]:
        """The bands by their numbers, which follow the numbers of the attribute classes."""
        return dict(enumerate(self.bands, len(self.classes)))

    def residuals_at(self, bound: Iterable[str], stream: str) -> tuple[Predicate, ...]:
        """The residuals that can be checked as soon as `stream` is joined with the streams `bound`, but not before."""
        joined = frozenset(bound) | {stream}
        return tuple(
            predicate for predicate in self.residuals if stream in predicate.sources and predicate.sources <= joined
        )

    def between(
        self, left: frozenset[str], right: frozenset[str]
    ) -> tuple[tuple[AttributeClass, ...], tuple[Predicate, ...]]:
        """The attribute classes that two groups of joined streams share, and the residuals that read both groups."""
        residuals = tuple(
            predicate
            for predicate in self.residuals
            if predicate.sources <= left | right and not (predicate.sources <= left or predicate.sources <= right)
        )
        return self._classes_joining(left, right), residuals

    def equalities_within(self, streams: Collection[str], schemas: Mapping[str, pa.Schema]) -> Iterator[Predicate]:
        """The equalities between members of a class within these streams, also if they follow through other streams."""
        for attribute_class in self.classes:
            members = [expression for owner, expression in attribute_class.members if owner in streams]
            for member in members[1:]:
                yield attribute_class.equality(members[0], member, schemas)

    def joined(self, bound: Iterable[str], stream: str) -> bool:
        """Whether an attribute class or a residual joins `stream` with the streams `bound`."""
        return bool(self.classes_between(bound, stream) or self.residuals_at(bound, stream))

    def selections_of(self, stream: str) -> tuple[Predicate, ...]:
        return tuple(predicate for owner, predicate in self.selections if owner == stream)


def compared_in(left: Expression, right: Expression, schemas: Mapping[str, pa.Schema]) -> pa.DataType | None:
    """The type in which two expressions are compared for equality; None while the schemas are unknown."""
    if not schemas:
        return None
    return equality_type(_type_of(left, schemas), _type_of(right, schemas))


def _type_of(expression: Expression, schemas: Mapping[str, pa.Schema]) -> pa.DataType:
    return type_of(expression, lambda column: schemas[column.source or ""].field(column.name).type)


_Member = tuple[str, Expression, pa.DataType | None]
"""A stream, an expression over it, and the type in which it is compared."""


class _Equalities:
    """Union-find over the members of equalities. Comparisons in different types stay apart."""

    def __init__(self, schemas: Mapping[str, pa.Schema]) -> None:
        self._schemas = schemas
        self._parents: dict[_Member, _Member] = {}

    def add(self, expression: Expression) -> bool:
        """Add an equality of two streams; False if the expression is anything else."""
        if not (isinstance(expression, Call) and expression.function == "equal"):
            return False
        left, right = expression.arguments
        left_sources, right_sources = sources_of(left), sources_of(right)
        if len(left_sources) != 1 or len(right_sources) != 1 or left_sources == right_sources:
            return False
        (left_stream,), (right_stream,) = left_sources, right_sources
        type_ = compared_in(left, right, self._schemas)
        left_root = self._find((left_stream, left, type_))
        right_root = self._find((right_stream, right, type_))
        self._parents[right_root] = left_root
        return True

    def classes(self, streams: tuple[str, ...]) -> tuple[AttributeClass, ...]:
        groups: dict[_Member, list[_Member]] = {}
        for member in self._parents:
            groups.setdefault(self._find(member), []).append(member)
        ordered = [sorted(group, key=lambda member: streams.index(member[0])) for group in groups.values()]
        return tuple(
            AttributeClass(tuple((source, expression) for source, expression, _ in group), group[0][2])
            for group in ordered
        )

    def _find(self, member: _Member) -> _Member:
        self._parents.setdefault(member, member)
        while self._parents[member] != member:
            member = self._parents[member]
        return member

    def type_of(self, expression: Expression) -> pa.DataType:
        return _type_of(expression, self._schemas)


def _equal_members(attribute_class: AttributeClass) -> Iterable[tuple[str, Predicate]]:
    """The selections that a class implies: two members of one stream must equal each other."""
    for source, expression in attribute_class.members:
        first = attribute_class.key(source)
        if expression != first:
            sides = (first, expression)
            if attribute_class.type is not None:
                sides = (Cast(first, attribute_class.type), Cast(expression, attribute_class.type))
            yield source, Predicate(Call("equal", sides))
