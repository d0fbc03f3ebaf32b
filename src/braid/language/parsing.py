"""`read_query`: the tree of a text to a Query: its streams, joins, conditions, groups and outputs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from sqlglot import exp

from braid.errors import QueryError, Span
from braid.language.existence import EXAMPLE, WrittenTest, conditions_apart, members
from braid.language.expressions.hosted import host_expression
from braid.language.expressions.node_reader import Resolve
from braid.language.expressions.reader import ExpressionReader
from braid.language.from_clause import FromReader, read_source
from braid.language.grouping import GroupedReader, is_grouped
from braid.language.joined_streams import WrittenJoin
from braid.language.nodes import StreamTable, conjuncts_of, span_of
from braid.language.ranking import RankingReader
from braid.language.refusal import keyword_span, refuse_clauses, unsupported_expression
from braid.language.resolving import match_name
from braid.language.time_windows import bound_of_window
from braid.language.top_n import is_rank, rank_nodes
from braid.model.expressions.expression import (
    Column,
    Expression,
    HostExpression,
    conjuncts,
    has_host_part,
    map_columns,
)
from braid.model.grouping import Grouping, SessionWindow
from braid.model.predicate import Predicate
from braid.model.query import Existence, FixedJoin, Output, Query, Star
from braid.model.ranking import RANK, Ranking

_CLAUSES_OF_SELECT = frozenset({"expressions", "from_", "joins", "where", "group", "having", "distinct", "qualify"})
_CLAUSES_OF_SUBQUERY = frozenset({"expressions", "from_", "joins", "where"})


def read_query(statement: exp.Select, text: str, *, hosted: bool = False) -> Query:
    """The query of a statement that names streams only. Its names are not resolved yet.

    If it is `hosted`, it may have expressions that the host computes.
    """
    return _QueryReader(text, hosted=hosted).read(statement)


class _QueryReader:
    """Reads one SELECT."""

    def __init__(self, text: str, *, hosted: bool) -> None:
        self._text = text
        self._hosted = hosted
        self._from = FromReader(text)
        self._expressions = self._reader(self._from.resolve)
        self._ranks_in_windows = False
        """Whether `window` means the time window that results are ranked in, as in `window.start`."""

    def _reader(self, resolve: Resolve) -> ExpressionReader:
        return ExpressionReader(self._text, resolve, hosted=self._hosted)

    def read(self, statement: exp.Select) -> Query:
        refuse_clauses(statement, _CLAUSES_OF_SELECT, self._text)
        origin = statement.args.get("from_")
        if origin is None:
            end = len(self._text.rstrip().rstrip(";").rstrip())
            hint = "name its streams: FROM bids [RANGE 5 MINUTES]"
            raise QueryError("the query has no FROM", self._text, Span(end, end + 1), hint)
        self._from.read(statement)
        if not statement.expressions:
            span = keyword_span("FROM", origin, self._text)
            raise QueryError("nothing is selected", self._text, span, "SELECT * gives every column")
        predicates, existences = self._conditions(self._from.joined.conditions)
        fixed_joins = tuple(map(self._fixed_join, self._from.joined.fixed_joins))
        where = statement.args.get("where")
        of_where, more_existences = self._conditions([] if where is None else [where.this])
        # WHERE comes after all joins. Binding moves conditions that may come earlier to the inner joins.
        filters = of_where if fixed_joins else ()
        predicates = predicates if fixed_joins else (*predicates, *of_where)
        later = ((*existences, *more_existences), fixed_joins, filters)
        if fixed_joins and existences:
            raise QueryError(
                "EXISTS and IN (SELECT ..) cannot stand in ON beside outer, semi or anti joins",
                self._text,
                existences[0].source.span,
                "write them in WHERE",
            )
        sources = self._from.joined.sources
        aliases = [source.alias.lower() for source in self._from.shown]
        self._ranks_in_windows = bool(rank_nodes(statement)) and not is_grouped(statement) and "window" not in aliases
        distinct = self._is_distinct(statement)
        if is_grouped(statement):
            grouping, ranking = self._grouping(statement)
            return Query(self._text, sources, grouping.inputs, predicates, grouping, *later, ranking=ranking)
        outputs = tuple(output for item in statement.expressions for output in self._outputs(item))
        ranking = self._ranking(statement, self._expressions, outputs)
        outputs = outputs if ranking is None else ranking.inputs
        return Query(self._text, sources, outputs, predicates, None, *later, distinct=distinct, ranking=ranking)

    def _ranking(
        self, statement: exp.Select, reader: ExpressionReader, outputs: Sequence[Output | Star]
    ) -> Ranking | None:
        clause = statement.args.get("qualify")
        if not rank_nodes(statement):
            if clause is not None:
                span = keyword_span("QUALIFY", clause, self._text)
                hint = "write QUALIFY ROW_NUMBER() OVER (PARTITION BY .. ORDER BY ..) <= 10; or write WHERE or HAVING"
                raise QueryError("QUALIFY has no ROW_NUMBER()", self._text, span, hint)
            return None
        if statement.args.get("distinct"):
            span = span_of(rank_nodes(statement)[0])
            raise QueryError("DISTINCT cannot be combined with ROW_NUMBER()", self._text, span, "remove DISTINCT")
        return RankingReader(statement, reader, self._qualified).read(outputs, grouped=is_grouped(statement))

    def _is_distinct(self, statement: exp.Select) -> bool:
        clause = statement.args.get("distinct")
        if clause is None:
            return False
        written = re.search(r"\bDISTINCT\b", self._text, re.IGNORECASE)
        span = None if written is None else Span(*written.span())
        if clause.args.get("on") is not None:
            hint = "for one result of each key write MAX_BY or FIRST with GROUP BY"
            raise QueryError("DISTINCT ON is not supported", self._text, span, hint)
        if is_grouped(statement):
            hint = "groups have different keys already; remove DISTINCT, or select all keys"
            raise QueryError("DISTINCT cannot be combined with GROUP BY or aggregates", self._text, span, hint)
        return True

    def _conditions(self, conditions: Iterable[exp.Expr]) -> tuple[tuple[Predicate, ...], tuple[Existence, ...]]:
        """Conditions of ON or WHERE: plain ones, and existence tests."""
        predicates: list[Predicate] = []
        existences: list[Existence] = []
        for condition in conditions:
            plain, tests = conditions_apart(condition)
            for node in (part for condition in plain for part in conjuncts_of(condition)):
                expression = self._expressions.read(node)
                whole = self._whole(node) if has_host_part(expression) else None
                predicates += [Predicate(self._qualified(part), whole) for part in conjuncts(expression)]
            existences += map(self._existence, tests)
        return tuple(predicates), tuple(existences)

    def _whole(self, node: exp.Expr) -> HostExpression:
        """A condition as one expression of the host."""
        whole = self._qualified(host_expression(self._expressions, node))
        assert isinstance(whole, HostExpression)
        return whole

    def _fixed_join(self, join: WrittenJoin) -> FixedJoin:
        plain, tests = conditions_apart(join.condition)
        if tests:
            raise QueryError(
                f"EXISTS and IN (SELECT ..) cannot stand in the ON of {join.kind.value}",
                self._text,
                span_of(tests[0].subquery),
                "write them in WHERE",
            )

        def resolve(qualifier: str, span: Span | None) -> str:
            return self._from.resolve_among(join.visible, qualifier, span)

        reader = self._reader(resolve)
        parts = [part for node in plain for part in conjuncts(reader.read(node))]
        return FixedJoin(join.kind, join.source, tuple(map(Predicate, parts)))

    def _existence(self, test: WrittenTest) -> Existence:
        """The existence test of an EXISTS or IN. The SELECT list of EXISTS has no effect, but must be valid."""
        subquery = test.subquery
        refuse_clauses(subquery, _CLAUSES_OF_SUBQUERY, self._text)
        origin = subquery.args.get("from_")
        table = None if origin is None else origin.this
        joins = subquery.args.get("joins") or (None if table is None else table.args.get("joins"))
        if not isinstance(table, StreamTable) or joins:
            raise QueryError(
                "EXISTS, IN and EXCEPT test rows of one stream only",
                self._text,
                span_of(subquery),
                f"write {EXAMPLE}",
            )
        source = read_source(table, self._text)

        def resolve(qualifier: str, span: Span | None) -> str:
            return source.alias if match_name(qualifier, [source.alias]) else self._from.resolve(qualifier, span)

        reader = self._reader(resolve)
        for projection in subquery.expressions:
            if not projection.is_star:
                reader.read(projection.unalias())
        where = subquery.args.get("where")
        parts = () if where is None else conjuncts(reader.read(where.this))
        predicates = tuple(map(Predicate, parts))
        compared = [
            (self._qualified(self._expressions.read(value)), reader.read(member))
            for value, member in members(test, self._text)
        ]
        return Existence(source, predicates, test.negated, tuple(compared))

    def _grouping(self, statement: exp.Select) -> tuple[Grouping, Ranking | None]:
        reader = GroupedReader(self._text, self._from.resolve, self._expressions)
        keys, window = reader.group(statement)
        aliases = [source.alias.lower() for source in self._from.shown]
        reader.windowed = window is not None and "window" not in aliases
        outputs = [self._output(projection, reader) for projection in statement.expressions]
        for output in outputs:
            if isinstance(output, Star):
                raise QueryError("* has no meaning for groups", self._text, output.span, "select keys and aggregates")
        having = statement.args.get("having")
        ranking = self._ranking(statement, reader, outputs)
        if ranking is not None and isinstance(window, SessionWindow):
            span = span_of(rank_nodes(statement)[0])
            hint = "group by WINDOW(event_time, '10 seconds'), or rank the results of the query in a further step"
            raise QueryError("ROW_NUMBER() does not rank sessions, which have no common end", self._text, span, hint)
        selected = outputs if ranking is None else ranking.inputs
        grouping = Grouping(
            tuple(output for output in selected if isinstance(output, Output)),
            tuple(self._qualified(key) for key in keys),
            window,
            None if having is None else self._qualified(reader.read_condition(having.this)),
        )
        return grouping, ranking

    def _outputs(self, projection: exp.Expr) -> Iterable[Output | Star]:
        """The outputs of an item. A `*` names its streams if they are not joined in the order of the text."""
        output = self._output(projection, self._expressions)
        shown = self._from.shown
        if isinstance(output, Star) and output.source is None and shown != self._from.joined.shown:
            return [Star(source.alias, output.span) for source in shown]
        return [output]

    def _output(self, projection: exp.Expr, reader: ExpressionReader) -> Output | Star:
        star = self._star(projection)
        if star is not None:
            return star
        name = projection.alias if isinstance(projection, exp.Alias) else None
        if isinstance(projection, exp.Alias) and not isinstance(projection.args["alias"], exp.Identifier):
            raise unsupported_expression(projection.args["alias"], self._text, [])
        node = projection.this if name is not None else projection
        expression = self._qualified(self._result(node, reader))
        return Output(name or self._default_name(expression, node), expression)

    def _result(self, node: exp.Expr, reader: ExpressionReader) -> Expression:
        """The expression of an item of the SELECT list, which may be a rank."""
        if is_rank(node.unnest()):
            return RANK
        bound = bound_of_window(reader, node) if self._ranks_in_windows else None
        return bound or reader.read_result(node)

    def _star(self, projection: exp.Expr) -> Star | None:
        star = projection.this if isinstance(projection, exp.Column) else projection
        if not isinstance(star, exp.Star):
            return None
        refuse_clauses(star, frozenset(), self._text)
        span = span_of(projection)
        qualifier = projection.args.get("table")
        if qualifier is None:
            return Star(None, span)
        if projection.args.get("db") is not None:
            raise QueryError("write the name of a stream before .*", self._text, span, "for example a.*")
        return Star(self._from.resolve(qualifier.name, span_of(qualifier)), span)

    def _default_name(self, expression: Expression, node: exp.Expr) -> str:
        """The name of an output without an alias: the name of a column, or the text of any other expression."""
        if isinstance(node, exp.Column):
            return node.name
        span = span_of(node)
        return str(expression) if span is None else " ".join(self._text[span.start : span.end].split())

    def _qualified(self, expression: Expression) -> Expression:
        """The expression with a stream for each of its columns, if the query has only one stream."""
        if len(self._from.shown) > 1:
            return expression
        alias = self._from.shown[0].alias
        return map_columns(expression, lambda column: Column(column.source or alias, column.name, column.span))
