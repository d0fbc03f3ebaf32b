"""`bind`: gives a query the streams it will run on, so that every name is resolved and every type is checked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa

from braid.errors import QueryError, StreamError
from braid.language.expression_binding import ExpressionBinder, span_of_expression
from braid.language.source_binding import bind_source
from braid.model.expressions.expression import Cast, Column, Expression
from braid.model.expressions.types import kind
from braid.model.grouping import Grouping
from braid.model.predicate import Predicate
from braid.model.query import Exclusion, Output, Query, Source, Star
from braid.model.stream import Stream


def bind(query: Query, streams: Mapping[str, Stream]) -> Query:
    """The same query with its streams declared, its columns and stars resolved and its types checked.

    `streams` maps the names of FROM to their declarations. A `QueryError` says what does not fit, and where.
    """
    if not isinstance(streams, Mapping):
        raise StreamError(f"streams must map names to declarations of streams, not be of type {type(streams).__name__}")
    for name in streams:
        if not isinstance(name, str):
            raise StreamError(f"the name of a stream is a text, not {name!r}")
    return _Binder(query, streams).bind()


class _Binder:
    def __init__(self, query: Query, streams: Mapping[str, Stream]) -> None:
        self._query = query
        self._text = query.text
        self._sources = tuple(bind_source(source, streams, query.text) for source in query.sources)
        self._excluded = tuple(bind_source(exclusion.source, streams, query.text) for exclusion in query.exclusions)
        self._schemas: dict[str, pa.Schema] = {
            source.alias: source.declared.schema for source in (*self._sources, *self._excluded)
        }
        self._expressions = ExpressionBinder(self._text, self._schemas, (query.aliases,))

    def bind(self) -> Query:
        query = self._query
        predicates = tuple(self._predicate(predicate, self._expressions) for predicate in query.predicates)
        exclusions = tuple(map(self._exclusion, query.exclusions, self._excluded))
        if query.grouping is not None:
            grouping = self._grouping(query.grouping)
            return Query(self._text, self._sources, grouping.inputs, predicates, grouping, exclusions)
        outputs = tuple(bound for output in query.outputs for bound in self._outputs(output))
        return Query(self._text, self._sources, outputs, predicates, None, exclusions)

    def _exclusion(self, exclusion: Exclusion, source: Source) -> Exclusion:
        # A column without a stream is looked for in the excluded stream before those of FROM.
        expressions = ExpressionBinder(self._text, self._schemas, ((source.alias,), self._query.aliases))
        return Exclusion(source, tuple(self._predicate(predicate, expressions) for predicate in exclusion.predicates))

    def _grouping(self, grouping: Grouping) -> Grouping:
        outputs = tuple(bound for output in grouping.outputs for bound in self._outputs(output))
        having = None if grouping.having is None else self._condition(grouping.having, self._expressions)
        bound = Grouping(outputs, tuple(map(self._key, grouping.keys)), grouping.window, having)
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
        return bound

    def _key(self, key: Expression) -> Expression:
        bound, type_ = self._expressions.bind(key)
        if kind(type_) == "nested":
            problem = f"results cannot be grouped by {bound}, which is {type_}"
            raise QueryError(problem, self._text, span_of_expression(bound), "group by a column of a simple type")
        return bound

    def _outputs(self, output: Output | Star) -> Iterator[Output]:
        """The outputs that one output stands for: a star stands for all columns of one or all streams."""
        if isinstance(output, Output):
            yield Output(output.name, self._expressions.bind(output.expression)[0])
            return
        for source in self._sources:
            if output.source in (None, source.alias):
                for name in self._schemas[source.alias].names:
                    yield Output(name, Column(source.alias, name, output.span))

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
