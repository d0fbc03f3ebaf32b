"""`bind`: gives a query the streams it will run on, so that every name is resolved and every type is checked."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce

import pyarrow as pa

from braid.errors import QueryError, StreamError
from braid.language.early_conditions import with_early_conditions
from braid.language.expression_binding import ExpressionBinder, span_of_expression
from braid.language.fixed_join_windows import check_windows
from braid.language.host_columns import HostColumns, ReadsResults
from braid.language.host_types import HostTypes
from braid.language.refusal import not_from_groups
from braid.language.source_binding import bind_source
from braid.model.expressions.aggregates import EVENT_TIME_OPERAND, is_time
from braid.model.expressions.expression import (
    Call,
    Cast,
    Column,
    Expression,
    HostExpression,
    Literal,
    conjuncts,
    has_host_part,
)
from braid.model.expressions.types import has_equality, kind
from braid.model.grouping import Grouping
from braid.model.predicate import Predicate
from braid.model.projection import Projection
from braid.model.query import Existence, FixedJoin, Output, Query, Source, Star
from braid.model.ranking import RANK, Order, Ranking
from braid.model.stream import Stream
from braid.model.table import Table


def bind(query: Query, streams: Mapping[str, Stream | Table], host: HostTypes | None = None) -> Query:
    """The same query with its streams declared, its columns and stars resolved and its types checked.

    `host` knows the types of what the host computes.
    """
    check_relations(streams)
    return _Binder(query, streams, host).bind()


def check_relations(relations: Mapping[str, Stream | Table]) -> None:
    """Refuse what does not map names to declarations."""
    if not isinstance(relations, Mapping):
        kind = type(relations).__name__
        raise StreamError(f"streams must map names to declarations of streams, not be of type {kind}")
    for name in relations:
        if not isinstance(name, str):
            raise StreamError(f"the name of a stream is a text, not {name!r}")


class _Binder:
    def __init__(self, query: Query, streams: Mapping[str, Stream | Table], host: HostTypes | None) -> None:
        self._query = query
        self._text = query.text
        self._sources = tuple(bind_source(source, streams, query.text) for source in query.sources)
        self._joined = tuple(bind_source(join.source, streams, query.text) for join in query.fixed_joins)
        self._tested = tuple(bind_source(existence.source, streams, query.text) for existence in query.existences)
        inputs = (*self._sources, *self._joined, *self._tested)
        self._schemas: dict[str, pa.Schema] = {source.alias: source.declared.schema for source in inputs}
        self._shown = tuple(source.alias for source in query.shown)
        self._host = None if host is None else HostColumns(host, query.aliases[0])
        self._left: dict[HostExpression, None] = {}
        """The conditions that the host checks after all joins."""
        self._results = ExpressionBinder(self._text, self._schemas, (self._shown,), self._host, results=True)

    def bind(self) -> Query:
        query = self._query
        # Without a partner, a preserved right row is a result of its own, so what it meets must be certain before.
        may_leave = not any(join.kind.preserves_right for join in query.fixed_joins)
        predicates = self._conditions(query.predicates, query.aliases, (), may_leave=may_leave)
        fixed_joins = tuple(self._fixed_joins())
        check_windows(self._sources, fixed_joins, self._text)
        filters = self._conditions(query.filters, self._shown, self._nullable(fixed_joins), may_leave=True)
        earlier, fixed_joins, filters = with_early_conditions(query.aliases, fixed_joins, filters)
        later = (tuple(map(self._existence, query.existences, self._tested)), fixed_joins, filters)
        predicates = (*predicates, *earlier)
        ranking = None if query.ranking is None else self._ranking(query.ranking)
        grouping = None if query.grouping is None else self._grouping(query.grouping, ranking)
        outputs: tuple[Output, ...]
        if grouping is not None:
            outputs = grouping.inputs
        elif ranking is not None:
            outputs = ranking.bound_inputs
        else:
            outputs = tuple(bound for output in query.outputs for bound in self._outputs(output))
        projection = Projection.of(outputs, (), tuple(self._left))
        outputs = outputs if projection is None else projection.inputs
        bound = Query(
            self._text,
            self._sources,
            outputs,
            predicates,
            grouping,
            *later,
            projection,
            query.distinct,
            ranking=ranking,
        )
        return bound if self._host is None else _with_computed_columns(bound, self._host)

    def _conditions(
        self, predicates: Sequence[Predicate], scope: tuple[str, ...], nullable: Collection[str], *, may_leave: bool
    ) -> tuple[Predicate, ...]:
        """The conditions that the engine checks; if it `may_leave` others to the host, these come after all joins."""
        expressions = ExpressionBinder(
            self._text, self._schemas, (scope,), self._host, nullable=nullable, leaves_to_host=may_leave
        )
        checked = []
        for predicate in predicates:
            known = None if self._host is None else self._host.known
            try:
                checked.append(self._predicate(predicate, expressions))
            except ReadsResults:
                if self._host is not None and known is not None and predicate.whole is not None:
                    self._host.forget(known)
                    self._left[self._host_condition(predicate.whole)] = None
        return tuple(checked)

    def _host_condition(self, whole: HostExpression) -> HostExpression:
        condition = self._condition(whole, self._results)
        if not isinstance(condition, HostExpression):
            raise QueryError(f"{whole} is null for all rows", self._text, whole.span, "remove the condition")
        return condition

    def _binder(self, scopes: tuple[tuple[str, ...], ...], nullable: Collection[str] = frozenset()) -> ExpressionBinder:
        return ExpressionBinder(self._text, self._schemas, scopes, self._host, nullable=nullable)

    def _nullable(self, fixed_joins: Sequence[FixedJoin]) -> frozenset[str]:
        """The streams that have rows of nulls after these fixed joins."""
        nullable: frozenset[str] = frozenset()
        visible = frozenset(self._query.aliases)
        for join in fixed_joins:
            if join.kind.preserves_right:
                nullable |= visible
            if join.kind.shows_right:
                visible |= {join.source.alias}
                nullable |= {join.source.alias} if join.kind.preserves_left else frozenset()
        return nullable

    def _fixed_joins(self) -> Iterator[FixedJoin]:
        visible = self._query.aliases
        for position, (join, source) in enumerate(zip(self._query.fixed_joins, self._joined, strict=True)):
            # A column without a stream may be of any stream so far.
            nullable = self._nullable(self._query.fixed_joins[:position])
            expressions = self._binder(((*visible, source.alias),), nullable)
            predicates = tuple(self._predicate(predicate, expressions) for predicate in join.predicates)
            yield FixedJoin(join.kind, source, predicates)
            if join.kind.shows_right:
                visible = (*visible, source.alias)

    def _existence(self, existence: Existence, source: Source) -> Existence:
        # A column without a stream is looked for in the tested stream before those of FROM.
        nullable = self._nullable(self._query.fixed_joins)
        expressions = self._binder(((source.alias,), self._shown), nullable)
        predicates = [self._predicate(predicate, expressions) for predicate in existence.predicates]
        equal = [self._equal(value, member, nullable) for value, member in existence.members]
        if equal and existence.negated:
            # In SQL, NOT IN is false or null if any of the values compared is null.
            whole = reduce(lambda one, other: Call("and", (one, other), one.span), equal)
            equal = [Call("coalesce", (whole, Literal(True, pa.bool_())), whole.span)]
        predicates += [self._predicate(Predicate(condition), expressions) for condition in equal]
        return Existence(source, tuple(predicates), existence.negated)

    def _equal(self, value: Expression, member: Expression, nullable: Collection[str]) -> Call:
        """A comparison of IN. The value stands outside of the subquery: its columns are looked for in FROM only."""
        return Call("equal", (self._binder((self._shown,), nullable).bind(value)[0], member), span_of_expression(value))

    def _ranking(self, ranking: Ranking) -> Ranking:
        """The ranking with an order that decides all ties: by its columns, then by what its conditions compare."""
        outputs = tuple(bound for output in ranking.outputs for bound in self._ranked_outputs(output))
        conditions = tuple(self._condition(condition, self._results) for condition in ranking.conditions)
        order = [replace(item, expression=self._orderable(item.expression)) for item in ranking.order]
        descending = order[-1].descending
        for expression in (*(output.expression for output in outputs), *conditions):
            is_known = any(item.expression == expression for item in order) or isinstance(expression, Literal)
            if not is_known and expression != RANK and not (is_time(expression) and ranking.window is not None):
                order.append(Order(self._orderable(expression), descending, not descending))
        start = None if ranking.start is None else self._results.bind(ranking.start)[0]
        keys = tuple(map(self._key, ranking.keys))
        return replace(ranking, outputs=outputs, keys=keys, order=tuple(order), start=start, conditions=conditions)

    def _ranked_outputs(self, output: Output | Star) -> Iterator[Output]:
        if isinstance(output, Output) and output.expression == RANK:
            yield output
        else:
            yield from self._outputs(output)

    def _orderable(self, expression: Expression) -> Expression:
        bound, type_ = self._results.bind(expression)
        if kind(type_) == "nested":
            problem = f"ROW_NUMBER() orders results by all columns of its SELECT, and {bound}, which is {type_}, has no"
            hint = "select its fields or elements instead"
            raise QueryError(f"{problem} order", self._text, span_of_expression(bound), hint)
        return bound

    def _grouping(self, grouping: Grouping, ranking: Ranking | None) -> Grouping:
        written = grouping.outputs if ranking is None else ranking.bound_inputs
        selected = tuple(bound for output in written for bound in self._outputs(output))
        keys = tuple(map(self._key, grouping.keys))
        having, of_host = self._having(grouping.having)
        projection = Projection.of(selected, keys, of_host)
        outputs = selected if projection is None else projection.inputs
        bound = Grouping(outputs, keys, grouping.window, having, projection)
        expressions = [output.expression for output in outputs]
        if having is not None:
            expressions.append(having)
        for expression in expressions:
            for column in bound.ungrouped(expression):
                raise QueryError(
                    f"'{column}' is neither a key of the groups nor aggregated",
                    self._text,
                    column.span,
                    f"add it to GROUP BY, or aggregate it: MAX({column})",
                )
            if has_host_part(bound.over_groups(expression)):
                raise not_from_groups(str(expression), self._text, span_of_expression(expression))
        for computed in () if projection is None else projection.computed:
            if EVENT_TIME_OPERAND in computed.operands:
                raise not_from_groups("CURRENT_TIMESTAMP", self._text, computed.span)
        return bound

    def _having(self, having: Expression | None) -> tuple[Expression | None, tuple[HostExpression, ...]]:
        """HAVING: what the engine checks, and what the host does."""
        checked: list[Expression] = []
        left: list[HostExpression] = []
        for part in () if having is None else conjuncts(having):
            condition = self._condition(part, self._results)
            if isinstance(condition, HostExpression) and not condition.aggregate:
                left.append(condition)
            else:
                checked.append(condition)
        both = reduce(lambda one, other: Call("and", (one, other)), checked) if checked else None
        return both, tuple(left)

    def _key(self, key: Expression) -> Expression:
        bound, type_ = self._results.bind(key)
        if kind(type_) == "nested":
            problem = f"results cannot be grouped by {bound}, which is {type_}"
            raise QueryError(problem, self._text, span_of_expression(bound), "group by a column of a simple type")
        return bound

    def _outputs(self, output: Output | Star) -> Iterator[Output]:
        """The outputs that one output stands for: a star stands for all columns of one or all streams."""
        if isinstance(output, Output):
            expression, type_ = self._results.bind(output.expression)
            self._check_distinct(expression, type_)
            yield Output(output.name, expression)
            return
        for alias in self._shown:
            if output.source in (None, alias):
                for field in self._schemas[alias]:
                    column = Column(alias, field.name, output.span)
                    self._check_distinct(column, field.type)
                    yield Output(field.name, column)

    def _check_distinct(self, expression: Expression, type_: pa.DataType) -> None:
        if self._query.distinct and not has_equality(type_):
            problem = f"DISTINCT compares results, and {expression}, which is {type_}, cannot be compared"
            raise QueryError(problem, self._text, span_of_expression(expression), "leave the column out")

    def _predicate(self, predicate: Predicate, expressions: ExpressionBinder) -> Predicate:
        return Predicate(self._condition(predicate.expression, expressions))

    def _condition(self, condition: Expression, expressions: ExpressionBinder) -> Expression:
        expression, type_ = expressions.bind(condition)
        span = span_of_expression(expression)
        if kind(type_) not in ("boolean", "null"):
            problem = f"a condition is true or false, but {expression} is {type_}"
            hint = f"compare it with something: {expression} = .." if kind(type_) != "nested" else None
            raise QueryError(problem, self._text, span, hint)
        return Cast(expression, pa.bool_(), span) if pa.types.is_null(type_) else expression


def _with_computed_columns(query: Query, host: HostColumns) -> Query:
    """The query with the columns that the host computes declared as columns of their streams."""
    return replace(
        query,
        sources=tuple(map(host.of, query.sources)),
        fixed_joins=tuple(replace(join, source=host.of(join.source)) for join in query.fixed_joins),
        existences=tuple(replace(existence, source=host.of(existence.source)) for existence in query.existences),
    )
