"""Binding a SELECT over one stream and tables: every name is resolved and every type is checked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from braid.errors import QueryError, StreamError
from braid.language.expression_binding import ExpressionBinder, span_of_expression
from braid.language.nodes import StreamTable, WindowNode
from braid.language.parsing import read_query
from braid.language.views import RowsView
from braid.model.expressions.expression import Column
from braid.model.expressions.types import kind
from braid.model.fixed_join import JoinKind
from braid.model.output import Output
from braid.model.predicate import Predicate
from braid.model.query import Query
from braid.model.row_query import RowQuery, TableJoin
from braid.model.stream import Stream
from braid.model.table import Table
from braid.model.window import Now, Unbounded


def bind_rows(view: RowsView) -> RowQuery:
    """The view with its names resolved, and the declaration of the stream that it makes."""
    relations: dict[str, Stream | Table] = {table.name: table for table in view.tables}
    relations[view.stream.name] = view.stream
    select = view.select.copy()
    for table in select.find_all(StreamTable):
        # With windows that let every row meet every row of a table, the SELECT reads like a query.
        window = Unbounded() if isinstance(relations[table.name], Table) else Now()
        table.set("window", WindowNode(this=window))
    query = read_query(select, view.text)
    return _RowBinder(view, query, {source.alias: relations[source.stream] for source in query.inputs}).bind()


class _RowBinder:
    def __init__(self, view: RowsView, query: Query, relations: dict[str, Stream | Table]) -> None:
        self._view = view
        self._query = query
        self._relations = relations
        self._schemas = {alias: relation.schema for alias, relation in relations.items()}
        self._alias = next(alias for alias, relation in relations.items() if isinstance(relation, Stream))

    def bind(self) -> RowQuery:
        query = self._query
        aliases = [source.alias for source in query.sources]
        conditions = [self._predicate(predicate, aliases) for predicate in query.predicates]
        joins = list(self._inner_joins(aliases, conditions))
        for join in query.fixed_joins:
            if join.kind.preserves_right or self._alias == join.source.alias:
                problem = f"{join.kind.value} with a table is not supported here"
                raise QueryError(
                    problem, self._view.text, join.source.span, "begin with the stream, and write LEFT JOIN"
                )
            predicates = [self._predicate(predicate, [*aliases, join.source.alias]) for predicate in join.predicates]
            table = self._relations[join.source.alias]
            assert isinstance(table, Table)
            joins.append(TableJoin(join.kind, join.source.alias, table, tuple(predicates)))
            if join.kind.shows_right:
                aliases.append(join.source.alias)
        filters = [self._predicate(predicate, aliases) for predicate in query.filters]
        filters += [condition for condition in conditions if condition.sources <= {self._alias}]
        outputs = tuple(self._outputs(aliases))
        return RowQuery(self._view.stream, self._alias, tuple(joins), tuple(filters), outputs, self._result(outputs))

    def _inner_joins(self, aliases: Sequence[str], conditions: Sequence[Predicate]) -> Iterator[TableJoin]:
        """The tables of the inner joins in the order of the text, each with the conditions that it completes."""
        joined = {self._alias}
        for alias in aliases:
            relation = self._relations[alias]
            if isinstance(relation, Table):
                joined.add(alias)
                completed = [
                    condition for condition in conditions if alias in condition.sources and condition.sources <= joined
                ]
                yield TableJoin(JoinKind.INNER, alias, relation, tuple(completed))

    def _outputs(self, aliases: Sequence[str]) -> Iterator[Output]:
        expressions = self._binder(aliases)
        for output in self._query.outputs:
            if isinstance(output, Output):
                yield Output(output.name, expressions.bind(output.expression)[0])
                continue
            for alias in aliases:
                if output.source in (None, alias):
                    for name in self._schemas[alias].names:
                        yield Output(name, Column(alias, name, output.span))

    def _result(self, outputs: Sequence[Output]) -> Stream:
        expressions = self._binder(tuple(self._schemas))
        fields = [pa.field(output.name, expressions.bind(output.expression)[1]) for output in outputs]
        try:
            return Stream(self._view.name, pa.schema(fields), self._view.time, self._view.stream.lateness)
        except StreamError as problem:
            raise QueryError(str(problem), self._view.text, self._view.span) from None

    def _predicate(self, predicate: Predicate, aliases: Sequence[str]) -> Predicate:
        expression, type_ = self._binder(aliases).bind(predicate.expression)
        if kind(type_) not in ("boolean", "null"):
            problem = f"a condition is true or false, but {expression} is {type_}"
            raise QueryError(problem, self._view.text, span_of_expression(expression), "compare it with something")
        return Predicate(expression)

    def _binder(self, aliases: Sequence[str]) -> ExpressionBinder:
        return ExpressionBinder(self._view.text, self._schemas, (tuple(aliases),))
