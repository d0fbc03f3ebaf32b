"""The join graph: streams, the attribute classes that tie them by equality, and every other condition."""

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
    """Expressions, each over one stream, that all must be equal: a.x = b.x and b.x = c.y make one class.

    `type` is the type they are compared in, None while the schemas are unknown. Only equalities that compare in the
    same type share a class, because equality is transitive within a type but not across lossy conversions.
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
                raise ModelError(f"'{expression}' is no attribute of stream {source!r} alone")
        if len(self.sources) < 2:
            raise ModelError(f"an attribute class ties at least two streams, not {len(self.sources)}")

    @cached_property
    def sources(self) -> frozenset[str]:
        return frozenset(source for source, _ in self.members)

    def key(self, source: str) -> Expression:
        """What to compare of a stream of the class (the first of its members; the others equal it)."""
        return next(expression for member, expression in self.members if member == source)

    def equality(self, left: Expression, right: Expression, schemas: Mapping[str, pa.Schema]) -> Predicate:
        """That two members are equal, in the type they are compared in."""
        if self.type is not None and compared_in(left, right, schemas) != self.type:
            left, right = Cast(left, self.type), Cast(right, self.type)
        return Predicate(Call("equal", (left, right)))

    def implies(self, left: Expression, right: Expression, schemas: Mapping[str, pa.Schema]) -> bool:
        """Whether two expressions are equal because their class says so, compared as they are."""
        members = {expression for _, expression in self.members}
        if left in members and right in members:
            return bool(compared_in(left, right, schemas) == self.type)
        return self.type is not None and {left, right} <= {Cast(member, self.type) for member in members}

    def __str__(self) -> str:
        return " = ".join(str(expression) for _, expression in self.members)


@dataclass(frozen=True)
class JoinGraph:
    """What joins what. `selections` hold for one stream alone, `residuals` need several and are no plain equality.

    `bands` are what an index makes of residuals, between streams that no attribute class ties.
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
            raise ModelError(f"a join graph has at least one stream, and each once, not {self.streams}")
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
                raise ModelError(f"'{predicate}' is on one stream alone; make it a selection")

    def _check_known(self, sources: Iterable[str], what: AttributeClass | Predicate) -> None:
        for source in sorted(sources):
            if source not in self.streams:
                known = did_you_mean(source, self.streams)
                raise ModelError(f"'{what}' is on stream '{source}', which the join graph has not; {known}")

    @classmethod
    def of(
        cls, streams: tuple[str, ...], predicates: Iterable[Predicate], schemas: Mapping[str, pa.Schema]
    ) -> JoinGraph:
        equalities = _Equalities(schemas)
        selections: list[tuple[str, Predicate]] = []
        residuals: list[Predicate] = []
        for predicate in predicates:
            sources = sorted(predicate.sources, key=streams.index)
            if len(sources) < 2:
                # A condition on no stream at all is checked on the first one.
                selections.append((sources[0] if sources else streams[0], predicate))
            elif not equalities.add(predicate.expression):
                residuals.append(predicate)
        classes = equalities.classes(streams)
        for attribute_class in classes:
            selections.extend(_equal_members(attribute_class))
        bands = bands_of(residuals, equalities.type_of) if schemas else ()
        untied = tuple(band for band in bands if not any(band.sources <= tied.sources for tied in classes))
        return cls(streams, classes, tuple(selections), tuple(residuals), untied)

    def classes_between(self, bound: Iterable[str], stream: str) -> tuple[AttributeClass, ...]:
        """The attribute classes by which `stream` meets any of the streams already joined."""
        joined = frozenset(bound)
        return tuple(
            attribute_class
            for attribute_class in self.classes
            if stream in attribute_class.sources and joined & attribute_class.sources
        )

    def classes_of(self, stream: str) -> dict[int, AttributeClass]:
        """The attribute classes that a stream is part of, by their numbers."""
        return {number: owned for number, owned in enumerate(self.classes) if stream in owned.sources}

    def band_between(self, some: Collection[str], others: Collection[str]) -> int | None:
        """The number of the band by which two groups of streams meet, if no attribute class does."""
        if any(tied.sources & set(some) and tied.sources & set(others) for tied in self.classes):
            return None
        return next((number for number, band in self.numbered_bands().items() if band.joins(some, others)), None)

    @property
    def indexed(self) -> tuple[frozenset[str], ...]:
        """The streams of each attribute class and of each band: what an index can find."""
        return (*(tied.sources for tied in self.classes), *(band.sources for band in self.bands))

    def numbered_bands(self) -> dict[int, Band]:
        """The bands by their numbers, which come after those of the attribute classes."""
        return dict(enumerate(self.bands, len(self.classes)))

    def residuals_at(self, bound: Iterable[str], stream: str) -> tuple[Predicate, ...]:
        """The other conditions that can be checked as soon as `stream` has joined those already there."""
        joined = frozenset(bound) | {stream}
        return tuple(
            predicate for predicate in self.residuals if stream in predicate.sources and predicate.sources <= joined
        )

    def between(
        self, left: frozenset[str], right: frozenset[str]
    ) -> tuple[tuple[AttributeClass, ...], tuple[Predicate, ...]]:
        """By what two groups of joined streams meet: the classes both are part of, and the conditions on both."""
        keys = tuple(tied for tied in self.classes if tied.sources & left and tied.sources & right)
        conditions = tuple(
            predicate
            for predicate in self.residuals
            if predicate.sources <= left | right and not (predicate.sources <= left or predicate.sources <= right)
        )
        return keys, conditions

    def equalities_within(self, streams: Collection[str], schemas: Mapping[str, pa.Schema]) -> Iterator[Predicate]:
        """What the classes make equal within some streams, also where it follows only through other streams."""
        for tied in self.classes:
            inside = [expression for owner, expression in tied.members if owner in streams]
            yield from (tied.equality(inside[0], expression, schemas) for expression in inside[1:])

    def joined(self, bound: Iterable[str], stream: str) -> bool:
        """Whether anything at all ties `stream` to those already joined."""
        return bool(self.classes_between(bound, stream) or self.residuals_at(bound, stream))

    def selections_of(self, stream: str) -> tuple[Predicate, ...]:
        return tuple(predicate for owner, predicate in self.selections if owner == stream)


def compared_in(left: Expression, right: Expression, schemas: Mapping[str, pa.Schema]) -> pa.DataType | None:
    """The type in which two expressions are equal or not; None while the schemas are unknown."""
    if not schemas:
        return None
    return equality_type(_type_of(left, schemas), _type_of(right, schemas))


def _type_of(expression: Expression, schemas: Mapping[str, pa.Schema]) -> pa.DataType:
    return type_of(expression, lambda column: schemas[column.source or ""].field(column.name).type)


_Member = tuple[str, Expression, pa.DataType | None]


class _Equalities:
    """Union-find over what is equated with what, kept apart by the type of the comparison."""

    def __init__(self, schemas: Mapping[str, pa.Schema]) -> None:
        self._schemas = schemas
        self._parents: dict[_Member, _Member] = {}

    def add(self, expression: Expression) -> bool:
        """Take up an equality of one stream with another; False if the expression is none."""
        if not (isinstance(expression, Call) and expression.function == "equal"):
            return False
        left, right = expression.arguments
        owners = [sources_of(left), sources_of(right)]
        if any(len(owner) != 1 for owner in owners) or owners[0] == owners[1]:
            return False
        kind = compared_in(left, right, self._schemas)
        roots = [self._find((next(iter(owner)), side, kind)) for owner, side in zip(owners, (left, right), strict=True)]
        self._parents[roots[1]] = roots[0]
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
    """Two members of one stream in one class must equal each other, whatever they are joined with."""
    for source, expression in attribute_class.members:
        first = attribute_class.key(source)
        if expression != first:
            sides = (first, expression)
            if attribute_class.type is not None:
                sides = (Cast(first, attribute_class.type), Cast(expression, attribute_class.type))
            yield source, Predicate(Call("equal", sides))
