"""Text to Query: the streams, the columns of the result and the conditions, each with its place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqlglot import exp

from braid.errors import QueryError, Span, did_you_mean
from braid.language.binding import bind
from braid.language.dialect import StreamTable
from braid.language.exclusion import conditions_apart, parse_select
from braid.language.expressions import ExpressionReader
from braid.language.grouping import GroupedReader, is_grouped
from braid.language.refusal import keyword_place, place_of, refuse_clauses, refuse_expression
from braid.language.resolving import match_name
from braid.language.tokens import first_word
from braid.model.expressions.expression import Call, Column, Expression, Literal, map_columns
from braid.model.grouping import Grouping
from braid.model.predicate import Predicate
from braid.model.query import Exclusion, Output, Query, Source, Star, two_streams_called
from braid.model.stream import Stream

_CLAUSES_OF_SELECT = frozenset({"expressions", "from_", "joins", "where", "group", "having"})
_CLAUSES_OF_EXCLUSION = frozenset({"expressions", "from_", "joins", "where"})
_CLAUSES_OF_STREAM = frozenset({"this", "db", "catalog", "alias", "window", "joins"})
_CLAUSES_OF_JOIN = frozenset({"this", "on", "kind", "side", "method", "using"})


def parse(text: str, streams: Mapping[str, Stream] | None = None) -> Query:
    """The query that a text holds, bound to `streams` if they are given. Whatever is wrong is a `QueryError`.

    >>> query = parse("SELECT b.price FROM bids [RANGE 5 MINUTES] AS b WHERE b.price > 10")
    >>> print(query.sources[0], "|", query.predicates[0])
    bids [RANGE 5 MINUTES] AS b | b.price > 10
    """
    try:
        query = _Reader(text).read(parse_select(text))
        return query if streams is None else bind(query, streams)
    except RecursionError:
        raise QueryError("the query is nested too deeply", text, first_word(text), "take it apart") from None
    except QueryError as problem:
        if problem.span is not None or not problem.text:
            raise
        # What is wrong with the query as a whole is shown where it begins.
        raise QueryError(problem.problem, text, first_word(text), problem.hint) from None


class _Reader:
    """Reads one statement."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._sources: list[Source] = []
        self._expressions = ExpressionReader(text, self._alias)

    def read(self, statement: exp.Select) -> Query:
        refuse_clauses(statement, _CLAUSES_OF_SELECT, self._text)
        origin = statement.args.get("from_")
        if origin is None:
            end = len(self._text.rstrip().rstrip(";").rstrip())
            hint = "name its streams: FROM bids [RANGE 5 MINUTES]"
            raise QueryError("the query has no FROM", self._text, Span(end, end + 1), hint)
        joins = list(self._take(origin.this))
        for join in statement.args.get("joins") or ():
            joins += self._join(join)
        if not statement.expressions:
            place = keyword_place("FROM", origin, self._text)
            raise QueryError("nothing is selected", self._text, place, "SELECT * gives every column")
        conditions = [condition for condition in joins if condition is not None]
        where = statement.args.get("where")
        if where is not None:
            conditions.append(where.this)
        predicates: list[Predicate] = []
        exclusions: list[Exclusion] = []
        for condition in conditions:
            plain, excluded = conditions_apart(condition)
            read = (part for node in plain for part in conjuncts(self._expressions.read(node)))
            predicates += [Predicate(self._owned(part)) for part in read]
            exclusions += [self._exclusion(subquery) for subquery in excluded]
        sources, rest = tuple(self._sources), (tuple(predicates), None, tuple(exclusions))
        if is_grouped(statement):
            grouping = self._grouping(statement)
            return Query(self._text, sources, grouping.inputs, rest[0], grouping, rest[2])
        outputs = tuple(self._output(projection, self._expressions) for projection in statement.expressions)
        return Query(self._text, sources, outputs, *rest)

    def _exclusion(self, subquery: exp.Select) -> Exclusion:
        """What a NOT EXISTS excludes. What it selects does not matter, but must make sense."""
        refuse_clauses(subquery, _CLAUSES_OF_EXCLUSION, self._text)
        table = subquery.args["from_"].this if subquery.args.get("from_") is not None else None
        joins = subquery.args.get("joins") or (table.args.get("joins") if table is not None else None)
        if not isinstance(table, StreamTable) or joins:
            raise QueryError(
                "what is excluded is read from one stream",
                self._text,
                place_of(subquery),
                "write NOT EXISTS (SELECT * FROM b [RANGE 5 MINUTES] WHERE b.k = a.k)",
            )
        refuse_clauses(table, _CLAUSES_OF_STREAM, self._text)
        source = self._source(table)

        def alias(qualifier: str, span: Span | None) -> str:
            return source.alias if match_name(qualifier, [source.alias]) else self._alias(qualifier, span)

        reader = ExpressionReader(self._text, alias)
        for projection in subquery.expressions:
            if not projection.is_star:
                reader.read(projection.unalias())
        where = subquery.args.get("where")
        condition = None if where is None else reader.read(where.this)
        return Exclusion(source, tuple(map(Predicate, () if condition is None else conjuncts(condition))))

    def _grouping(self, statement: exp.Select) -> Grouping:
        reader = GroupedReader(self._text, self._alias, self._expressions)
        keys, window = reader.group(statement)
        reader.windowed = window is not None and "window" not in (source.alias.lower() for source in self._sources)
        outputs = [self._output(projection, reader) for projection in statement.expressions]
        for output in outputs:
            if isinstance(output, Star):
                raise QueryError("* has no meaning for groups", self._text, output.span, "select keys and aggregates")
        having = statement.args.get("having")
        return Grouping(
            tuple(output for output in outputs if isinstance(output, Output)),
            tuple(self._owned(key) for key in keys),
            window,
            None if having is None else self._owned(reader.read(having.this)),
        )

    def _join(self, join: exp.Expr) -> Iterator[exp.Expr | None]:
        words = [str(join.args.get(key) or "").upper() for key in ("method", "side", "kind")]
        if words[:2] != ["", ""] or words[2] not in ("", "INNER", "CROSS"):
            name = " ".join(word for word in words if word) + " JOIN"
            raise QueryError(
                f"{name} is not supported",
                self._text,
                self._join_place(join, words),
                "join streams with a comma, with JOIN .. ON or with CROSS JOIN",
            )
        if join.args.get("using"):
            raise QueryError(
                "JOIN .. USING is not supported",
                self._text,
                place_of(join.args["using"][0]),
                "write JOIN .. ON a.k = b.k",
            )
        refuse_clauses(join, _CLAUSES_OF_JOIN, self._text)
        yield from self._take(join.this)
        yield join.args.get("on")

    def _join_place(self, join: exp.Expr, words: list[str]) -> Span | None:
        stream = place_of(join.this)
        first = next(word for word in words if word)
        start = -1 if stream is None else self._text.upper().rfind(first, 0, stream.start)
        return stream if stream is None or start < 0 else Span(start, stream.start - 1)

    def _take(self, table: exp.Expr) -> Iterator[exp.Expr | None]:
        """Add a stream, and those that are joined to it in brackets; gives the conditions of these joins."""
        while isinstance(table, exp.Paren):
            table = table.this
        if isinstance(table, exp.Subquery) and not table.alias and isinstance(table.this, StreamTable | exp.Subquery):
            # What is in brackets is a join of streams, or one of them.
            refuse_clauses(table, frozenset({"this", "joins"}), self._text)
            yield from self._take(table.this)
        elif isinstance(table, StreamTable):
            refuse_clauses(table, _CLAUSES_OF_STREAM, self._text)
            self._sources.append(self._source(table))
        else:
            raise self._not_a_stream(table)
        for join in table.args.get("joins") or ():
            yield from self._join(join)

    def _not_a_stream(self, table: exp.Expr) -> QueryError:
        if (isinstance(table, exp.Table) and isinstance(table.this, exp.Func)) or isinstance(table, exp.UDTF):
            return QueryError("table functions are not supported", self._text, place_of(table), "FROM names streams")
        return refuse_expression(table, self._text, [])

    def _source(self, table: StreamTable) -> Source:
        span = place_of(table)
        name, alias = table.name, table.args.get("alias")
        if table.args.get("db") is not None:
            shown = ".".join(part.name for part in table.parts)
            raise QueryError(
                f"the name of a stream has one part, not '{shown}'",
                self._text,
                span,
                f"quote it if it has dots: `{shown}`",
            )
        if alias is not None and alias.args.get("columns"):
            raise QueryError("columns cannot be renamed in FROM", self._text, span, "rename them in SELECT: x AS y")
        if table.window is None:
            place = place_of(table.this)
            shown = name if place is None else self._text[place.start : place.end]
            raise QueryError(
                f"stream '{name}' has no window",
                self._text,
                span,
                f"say which rows count: {shown} [RANGE 5 MINUTES], {shown} [ROWS 100] or {shown} [UNBOUNDED]",
            )
        return Source(table.alias_or_name, name, table.window, span=span)

    def _alias(self, qualifier: str, span: Span | None) -> str:
        """The alias that a qualifier of a column means."""
        aliases = [source.alias for source in self._sources]
        matches = match_name(qualifier, aliases)
        if len(matches) == 1:
            return matches[0]
        if matches and len(set(matches)) == 1:
            again = [source.span for source in self._sources if source.alias == matches[0]][1]
            raise two_streams_called(matches[0], self._text, again)
        if matches:
            raise QueryError(f"'{qualifier}' could be {' or '.join(matches)}", self._text, span, "write it as in FROM")
        hidden = [source.alias for source in self._sources if source.stream.lower() == qualifier.lower()]
        hint = f"it is called '{hidden[0]}' in this query" if hidden else did_you_mean(qualifier, aliases)
        raise QueryError(f"'{qualifier}' is not a stream of this query", self._text, span, hint)

    def _output(self, projection: exp.Expr, reader: ExpressionReader) -> Output | Star:
        star = self._star(projection)
        if star is not None:
            return star
        name = projection.alias if isinstance(projection, exp.Alias) else None
        if isinstance(projection, exp.Alias) and not isinstance(projection.args["alias"], exp.Identifier):
            raise refuse_expression(projection.args["alias"], self._text, [])
        node = projection.this if name is not None else projection
        expression = self._owned(reader.read(node))
        return Output(name or self._name(expression, node), expression)

    def _star(self, projection: exp.Expr) -> Star | None:
        star = projection.this if isinstance(projection, exp.Column) else projection
        if not isinstance(star, exp.Star):
            return None
        refuse_clauses(star, frozenset(), self._text)
        qualifier = projection.args.get("table")
        if qualifier is None:
            return Star(None, place_of(projection))
        if projection.args.get("db") is not None:
            raise QueryError(
                "write the name of a stream before .*", self._text, place_of(projection), "for example a.*"
            )
        return Star(self._alias(qualifier.name, place_of(qualifier)), place_of(projection))

    def _name(self, expression: Expression, node: exp.Expr) -> str:
        """A column keeps its name; anything else is called what is written."""
        if isinstance(node, exp.Column):
            return node.name
        span = place_of(node)
        return str(expression) if span is None else " ".join(self._text[span.start : span.end].split())

    def _owned(self, expression: Expression) -> Expression:
        """Where there is one stream only, every column is of it."""
        if len(self._sources) > 1:
            return expression
        only = self._sources[0].alias
        return map_columns(expression, lambda column: Column(only, column.name, column.span))


def conjuncts(expression: Expression) -> Iterator[Expression]:
    """The conditions that must all hold for an expression to hold; TRUE, which a JOIN without ON has, is none."""
    if isinstance(expression, Call) and expression.function == "and":
        for argument in expression.arguments:
            yield from conjuncts(argument)
    elif not (isinstance(expression, Literal) and expression.value is True):
        yield expression
