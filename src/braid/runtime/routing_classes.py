"""The attribute classes that rows are routed by: those of the inner joins, extended by the streams joined later."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from braid.engine.kernels.expression import compile_expression
from braid.model.expressions.expression import Call, Column, Expression, columns_of, sources_of
from braid.model.expressions.types import equality_type
from braid.model.expressions.typing import type_of
from braid.model.fixed_join import FixedJoin
from braid.model.graph import AttributeClass
from braid.model.predicate import Predicate
from braid.model.query import Existence, Query, Source


@dataclass(frozen=True, slots=True)
class Equality:
    """A condition that equates an expression of a stream joined later with one of an earlier stream, as `type`."""

    later_side: Expression
    earlier_alias: str
    earlier_side: Expression
    type: pa.DataType


@dataclass(frozen=True, slots=True)
class Tie:
    """The equality that makes the key of a stream joined later a member of a class."""

    alias: str
    class_number: int
    equality: Equality


def routing_classes(query: Query) -> tuple[AttributeClass, ...]:
    """The attribute classes that rows are spread by.

    A query with one stream before those joined later has no classes of inner joins; it gets those of its equalities
    with the later streams.
    """
    return _extended(query)[0]


def routing_ties(query: Query) -> tuple[Tie, ...]:
    """The ties of the streams joined later to these classes."""
    return _extended(query)[1]


def later_streams(query: Query) -> Iterator[tuple[Source, tuple[Predicate, ...]]]:
    """The streams that are joined after the inner joins, each with its conditions."""
    for later in _later(query):
        yield later.source, later.predicates


def _later(query: Query) -> tuple[FixedJoin | Existence, ...]:
    return (*query.fixed_joins, *query.existences)


def _extended(query: Query) -> tuple[tuple[AttributeClass, ...], tuple[Tie, ...]]:
    classes, ties = list(query.graph.classes), list[Tie]()
    absent = set[str]()
    for later in _later(query):
        alias = later.source.alias
        # A window that counts rows counts all rows of its stream, so every shard needs all of them.
        for equality in () if later.source.window.counts_rows else _equalities(query, alias, later.predicates):
            if equality.earlier_alias in absent and not _is_null_of_nulls(query, equality.earlier_side):
                continue  # An outer join gives rows whose value is no key by which they were routed.
            member = (alias, equality.later_side)
            earlier = (equality.earlier_alias, equality.earlier_side)
            number = _class_of(classes, earlier, equality.type)
            if number is None and equality.earlier_alias == query.aliases[0] and len(query.sources) == 1:
                number = len(classes)
                classes.append(AttributeClass((earlier, member), equality.type))
                ties.append(Tie(alias, number, equality))
            elif number is not None and alias not in classes[number].sources:
                classes[number] = AttributeClass((*classes[number].members, member), equality.type)
                ties.append(Tie(alias, number, equality))
        absent |= _absent_after(query, later)
    return tuple(classes), tuple(ties)


def _absent_after(query: Query, later: FixedJoin | Existence) -> set[str]:
    """The streams that rows may be without after a join, so that they have nulls for their columns."""
    if isinstance(later, Existence) or not later.kind.shows_right:
        return set()
    of_left = set(query.aliases) if later.kind.preserves_right else set[str]()
    return of_left | ({later.source.alias} if later.kind.preserves_left else set())


def _equalities(query: Query, alias: str, predicates: Iterable[Predicate]) -> Iterator[Equality]:
    """The equalities between a stream joined later and one earlier stream."""
    for predicate in predicates:
        expression = predicate.expression
        if isinstance(expression, Call) and expression.function == "equal":
            for side, other in (expression.arguments, expression.arguments[::-1]):
                earlier = sources_of(other)
                if sources_of(side) == {alias} and len(earlier) == 1 and alias not in earlier:
                    kind = equality_type(_type(query, side), _type(query, other))
                    yield Equality(side, next(iter(earlier)), other, kind)


def _type(query: Query, expression: Expression) -> pa.DataType:
    return type_of(expression, lambda column: _column_type(query, column))


def _column_type(query: Query, column: Column) -> pa.DataType:
    return query.source(column.source or "").declared.schema.field(column.name).type


def _is_null_of_nulls(query: Query, expression: Expression) -> bool:
    """Whether an expression is null if all its columns are."""
    compiled = compile_expression(expression, lambda column: _column_type(query, column))
    columns = {column: pa.nulls(1, _column_type(query, column)) for column in columns_of(expression)}
    return bool(compiled(columns, 1).null_count)


def _class_of(classes: list[AttributeClass], member: tuple[str, Expression], kind: pa.DataType) -> int | None:
    """The position of the class that has this member and compares in this type."""
    for class_number, attribute_class in enumerate(classes):
        if member in attribute_class.members and attribute_class.type == kind:
            return class_number
    return None
