"""FROM: the streams of a query with their windows and aliases, and the conditions of its joins."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from braid.errors import QueryError, Span, did_you_mean
from braid.language.joined_streams import JoinedStreams
from braid.language.nodes import COMMA, StreamTable, span_of
from braid.language.refusal import refuse_clauses, unsupported_expression
from braid.language.resolving import match_name
from braid.model.query import JoinKind, Source, two_streams_called

_CLAUSES_OF_STREAM = frozenset({"this", "db", "catalog", "alias", "window", "joins"})
_CLAUSES_OF_JOIN = frozenset({"this", "on", "kind", "side", "method", "using"})

_JOINS = "join streams with JOIN .. ON, or LEFT, RIGHT, FULL, LEFT SEMI or LEFT ANTI JOIN .. ON"

ONE_AFTER_THE_OTHER = "join the streams one after the other: a [..] LEFT JOIN b [..] ON .. JOIN c [..] ON .."

_KINDS = {
    **dict.fromkeys((("LEFT", ""), ("LEFT", "OUTER")), JoinKind.LEFT),
    **dict.fromkeys((("RIGHT", ""), ("RIGHT", "OUTER")), JoinKind.RIGHT),
    **dict.fromkeys((("FULL", ""), ("FULL", "OUTER")), JoinKind.FULL),
    **dict.fromkeys((("LEFT", "SEMI"), ("", "SEMI")), JoinKind.SEMI),
    **dict.fromkeys((("LEFT", "ANTI"), ("", "ANTI")), JoinKind.ANTI),
}
"""The kinds of fixed joins by sqlglot's `side` and `kind`."""


class FromReader:
    """Reads the FROM clause of one SELECT into `joined`."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.written: list[Source] = []
        """The streams in the order of the text."""
        self.joined = JoinedStreams(())

    def read(self, statement: exp.Select) -> None:
        self.joined = self._entry(statement.args["from_"].this, statement.args.get("joins") or ())

    @property
    def shown(self) -> tuple[Source, ...]:
        """The streams that SELECT and WHERE may read, in the order of the text."""
        shown = self.joined.shown
        return tuple(source for source in self.written if source in shown)

    def resolve(self, qualifier: str, span: Span | None) -> str:
        """The alias of the stream that a qualifier in SELECT or WHERE, at a span of the text, stands for."""
        return self.resolve_among(self.written, qualifier, span)

    def resolve_among(self, sources: Sequence[Source], qualifier: str, span: Span | None) -> str:
        """The alias of one of these streams that a qualifier, at a span of the text, stands for."""
        aliases = [source.alias for source in sources]
        matches = match_name(qualifier, aliases)
        if len(matches) == 1:
            return matches[0]
        if matches and len(set(matches)) == 1:
            spans = [source.span for source in sources if source.alias == matches[0]]
            raise two_streams_called(matches[0], self._text, spans[1])
        if matches:
            raise QueryError(f"'{qualifier}' could be {' or '.join(matches)}", self._text, span, "write it as in FROM")
        renamed = [source.alias for source in sources if source.stream.lower() == qualifier.lower()]
        hint = f"it is called '{renamed[0]}' in this query" if renamed else did_you_mean(qualifier, aliases)
        if match_name(qualifier, [source.alias for source in self.written]):
            problem = f"'{qualifier}' cannot be used in this ON"
            hint = f"it reads what its JOIN joins, {', '.join(aliases)}, and a comma joins later than JOIN"
            raise QueryError(problem, self._text, span, hint)
        raise QueryError(f"'{qualifier}' is not a stream of this query", self._text, span, hint)

    def _entry(self, table: exp.Expr, following: Sequence[exp.Expr] = ()) -> JoinedStreams:
        """Read one entry of FROM: a stream, or joined streams in brackets, and the joins that follow it.

        JOIN binds more than a comma: what stands between commas is joined first.
        """
        while isinstance(table, exp.Paren):
            table = table.this
        groups = [self._table(table)]
        for join in (*(table.args.get("joins") or ()), *following):
            if join.meta.get(COMMA):
                groups.append(self._entry(join.this))
            else:
                groups[-1] = self._join(groups[-1], join)
        joined = groups[0]
        for group in groups[1:]:
            together = joined.inner(group, None)
            if together is None:
                raise QueryError(
                    "outer, semi and anti joins on both sides of a comma are not supported",
                    self._text,
                    group.sources[0].span,
                    ONE_AFTER_THE_OTHER,
                )
            joined = together
        return joined

    def _table(self, table: exp.Expr) -> JoinedStreams:
        if isinstance(table, exp.Subquery) and not table.alias and isinstance(table.this, StreamTable | exp.Subquery):
            # sqlglot also reads streams in brackets as a subquery.
            refuse_clauses(table, frozenset({"this", "joins"}), self._text)
            return self._entry(table.this)
        if not isinstance(table, StreamTable):
            raise self._not_a_stream(table)
        source = read_source(table, self._text)
        self.written.append(source)
        return JoinedStreams((source,))

    def _join(self, left: JoinedStreams, join: exp.Expr) -> JoinedStreams:
        """Read one join of what stands before it."""
        words = [str(join.args.get(key) or "").upper() for key in ("method", "side", "kind")]
        method, side, kind = words
        fixed_kind = _KINDS.get((side, kind)) if not method else None
        if fixed_kind is None and (method or side or kind not in ("", "INNER", "CROSS")):
            name = " ".join(word for word in words if word) + " JOIN"
            hint = "write JOIN .. ON a.k = b.k" if method == "NATURAL" else _JOINS
            raise QueryError(f"{name} is not supported", self._text, self._join_place(join, words), hint)
        if join.args.get("using"):
            raise QueryError(
                "JOIN .. USING is not supported",
                self._text,
                span_of(join.args["using"][0]),
                "write JOIN .. ON a.k = b.k",
            )
        refuse_clauses(join, _CLAUSES_OF_JOIN, self._text)
        right, condition = self._entry(join.this), join.args.get("on")
        if fixed_kind is None:
            joined = left.inner(right, condition)
            problem = "JOIN of two entries that both have outer, semi or anti joins is not supported"
        else:
            joined = left.outer(fixed_kind, right, condition or exp.true())
            problem = f"{fixed_kind.value} takes one stream on {'one' if fixed_kind.mirrored else 'its right'} side"
        if joined is None:
            raise QueryError(problem, self._text, span_of(join.this), ONE_AFTER_THE_OTHER)
        return joined

    def _join_place(self, join: exp.Expr, words: list[str]) -> Span | None:
        """The span of the words before a joined stream, such as LEFT OUTER JOIN."""
        stream = span_of(join.this)
        if stream is None:
            return None
        first_word = next(word for word in words if word)
        start = self._text.upper().rfind(first_word, 0, stream.start)
        return stream if start < 0 else Span(start, stream.start - 1)

    def _not_a_stream(self, table: exp.Expr) -> QueryError:
        if (isinstance(table, exp.Table) and isinstance(table.this, exp.Func)) or isinstance(table, exp.UDTF):
            return QueryError("table functions are not supported", self._text, span_of(table), "FROM names streams")
        return unsupported_expression(table, self._text, [])


def read_source(table: StreamTable, text: str) -> Source:
    """One stream of FROM with its window and alias."""
    refuse_clauses(table, _CLAUSES_OF_STREAM, text)
    span = span_of(table)
    name, alias = table.name, table.args.get("alias")
    if table.args.get("db") is not None:
        shown = ".".join(part.name for part in table.parts)
        raise QueryError(
            f"the name of a stream has one part, not '{shown}'",
            text,
            span,
            f"quote it if it has dots: `{shown}`",
        )
    if alias is not None and alias.args.get("columns"):
        raise QueryError("columns cannot be renamed in FROM", text, span, "rename them in SELECT: x AS y")
    if table.window is None:
        name_span = span_of(table.this)
        # The name of a view is not in the text.
        shown = table.alias_or_name if name_span is None else text[name_span.start : name_span.end]
        raise QueryError(
            f"stream '{name}' has no window",
            text,
            span,
            f"say which rows count: {shown} [RANGE 5 MINUTES], {shown} [ROWS 100] or {shown} [UNBOUNDED]",
        )
    return Source(table.alias_or_name, name, table.window, span=span)
