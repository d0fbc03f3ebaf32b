"""`parse`: text to Query. The tree of the text becomes its streams, conditions, exclusions, groups and outputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqlglot import exp

from braid.errors import QueryError, Span
from braid.language.binding import bind
from braid.language.exclusion import conditions_apart, parse_select
from braid.language.expressions.reader import ExpressionReader
from braid.language.from_clause import FromReader, read_source
from braid.language.grouping import GroupedReader, is_grouped
from braid.language.nodes import StreamTable, span_of
from braid.language.refusal import keyword_place, refuse_clauses, unsupported_expression
from braid.language.resolving import match_name
from braid.language.syntax_errors import first_word
from braid.model.expressions.expression import Call, Column, Expression, Literal, map_columns
from braid.model.grouping import Grouping
from braid.model.predicate import Predicate
from braid.model.query import Exclusion, Output, Query, Star
from braid.model.stream import Stream

_CLAUSES_OF_SELECT = frozenset({"expressions", "from_", "joins", "where", "group", "having"})
_CLAUSES_OF_EXCLUSION = frozenset({"expressions", "from_", "joins", "where"})


def parse(text: str, streams: Mapping[str, Stream] | None = None) -> Query:
    """The query of a text, bound to `streams` if they are given. Any error in it is a `QueryError`.

    >>> query = parse("SELECT b.price FROM bids [RANGE 5 MINUTES] AS b WHERE b.price > 10")
    >>> print(query.sources[0], "|", query.predicates[0])
    bids [RANGE 5 MINUTES] AS b | b.price > 10
    """
    try:
        query = _QueryReader(text).read(parse_select(text))
        return query if streams is None else bind(query, streams)
    except RecursionError:
        raise QueryError("the query is nested too deeply", text, first_word(text), "simplify it") from None
    except QueryError as problem:
        if problem.span is not None or not problem.text:
            raise
        # An error of the query as a whole points at its beginning.
        raise QueryError(problem.problem, text, first_word(text), problem.hint) from None


class _QueryReader:
    """Reads one SELECT."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._from = FromReader(text)
        self._expressions = ExpressionReader(text, self._from.resolve)

    def read(self, statement: exp.Select) -> Query:
        refuse_clauses(statement, _CLAUSES_OF_SELECT, self._text)
        origin = statement.args.get("from_")
        if origin is None:
            end = len(self._text.rstrip().rstrip(";").rstrip())
            hint = "name its streams: FROM bids [RANGE 5 MINUTES]"
            raise QueryError("the query has no FROM", self._text, Span(end, end + 1), hint)
        self._from.read(statement)
        if not statement.expressions:
            span = keyword_place("FROM", origin, self._text)
            raise QueryError("nothing is selected", self._text, span, "SELECT * gives every column")
        predicates, exclusions = self._conditions(statement)
        sources = tuple(self._from.sources)
        if is_grouped(statement):
            grouping = self._grouping(statement)
            return Query(self._text, sources, grouping.inputs, predicates, grouping, exclusions)
        outputs = tuple(self._output(projection, self._expressions) for projection in statement.expressions)
        return Query(self._text, sources, outputs, predicates, None, exclusions)

    def _conditions(self, statement: exp.Select) -> tuple[tuple[Predicate, ...], tuple[Exclusion, ...]]:
        """The conditions of ON and WHERE: plain ones, and those of NOT EXISTS."""
        conditions = list(self._from.conditions)
        where = statement.args.get("where")
        if where is not None:
            conditions.append(where.this)
        predicates: list[Predicate] = []
        exclusions: list[Exclusion] = []
        for condition in conditions:
            plain, subqueries = conditions_apart(condition)
            for node in plain:
                conjuncts = _conjuncts(self._expressions.read(node))
                predicates += [Predicate(self._qualified(conjunct)) for conjunct in conjuncts]
            exclusions += [self._exclusion(subquery) for subquery in subqueries]
        return tuple(predicates), tuple(exclusions)

    def _exclusion(self, subquery: exp.Select) -> Exclusion:
        """The exclusion of a NOT EXISTS. Its SELECT list has no effect, but must be valid."""
        refuse_clauses(subquery, _CLAUSES_OF_EXCLUSION, self._text)
        origin = subquery.args.get("from_")
        table = None if origin is None else origin.this
        joins = subquery.args.get("joins") or (None if table is None else table.args.get("joins"))
        if not isinstance(table, StreamTable) or joins:
            raise QueryError(
                "NOT EXISTS and EXCEPT exclude rows of one stream only",
                self._text,
                span_of(subquery),
                "write NOT EXISTS (SELECT * FROM b [RANGE 5 MINUTES] WHERE b.k = a.k)",
            )
        source = read_source(table, self._text)

        def resolve(qualifier: str, span: Span | None) -> str:
            return source.alias if match_name(qualifier, [source.alias]) else self._from.resolve(qualifier, span)

        reader = ExpressionReader(self._text, resolve)
        for projection in subquery.expressions:
            if not projection.is_star:
                reader.read(projection.unalias())
        where = subquery.args.get("where")
        conjuncts = () if where is None else _conjuncts(reader.read(where.this))
        return Exclusion(source, tuple(Predicate(conjunct) for conjunct in conjuncts))

    def _grouping(self, statement: exp.Select) -> Grouping:
        reader = GroupedReader(self._text, self._from.resolve, self._expressions)
        keys, window = reader.group(statement)
        aliases = [source.alias.lower() for source in self._from.sources]
        reader.windowed = window is not None and "window" not in aliases
        outputs = [self._output(projection, reader) for projection in statement.expressions]
        for output in outputs:
            if isinstance(output, Star):
                raise QueryError("* has no meaning for groups", self._text, output.span, "select keys and aggregates")
        having = statement.args.get("having")
        return Grouping(
            tuple(output for output in outputs if isinstance(output, Output)),
            tuple(self._qualified(key) for key in keys),
            window,
            None if having is None else self._qualified(reader.read(having.this)),
        )

    def _output(self, projection: exp.Expr, reader: ExpressionReader) -> Output | Star:
        star = self._star(projection)
        if star is not None:
            return star
        name = projection.alias if isinstance(projection, exp.Alias) else None
        if isinstance(projection, exp.Alias) and not isinstance(projection.args["alias"], exp.Identifier):
            raise unsupported_expression(projection.args["alias"], self._text, [])
        node = projection.this if name is not None else projection
        expression = self._qualified(reader.read(node))
        return Output(name or self._default_name(expression, node), expression)

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
        if len(self._from.sources) > 1:
            return expression
        alias = self._from.sources[0].alias
        return map_columns(expression, lambda column: Column(alias, column.name, column.span))


def _conjuncts(expression: Expression) -> Iterator[Expression]:
    """The conditions between the ANDs of an expression. TRUE, the condition of a JOIN without ON, is left out."""
    if isinstance(expression, Call) and expression.function == "and":
        for argument in expression.arguments:
            yield from _conjuncts(argument)
    elif not (isinstance(expression, Literal) and expression.value is True):
        yield expression
