"""FROM: the streams of a query with their windows and aliases, and the conditions of its joins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from braid.errors import QueryError, Span, did_you_mean
from braid.language.nodes import COMMA, StreamTable, span_of
from braid.language.refusal import refuse_clauses, unsupported_expression
from braid.language.resolving import match_name
from braid.model.query import JoinKind, Source, two_streams_called

_CLAUSES_OF_STREAM = frozenset({"this", "db", "catalog", "alias", "window", "joins"})
_CLAUSES_OF_JOIN = frozenset({"this", "on", "kind", "side", "method", "using"})

_JOINS = "join streams with JOIN .. ON, or LEFT, RIGHT, FULL, LEFT SEMI or LEFT ANTI JOIN .. ON"

_KINDS = {
    **dict.fromkeys((("LEFT", ""), ("LEFT", "OUTER")), JoinKind.LEFT),
    **dict.fromkeys((("RIGHT", ""), ("RIGHT", "OUTER")), JoinKind.RIGHT),
    **dict.fromkeys((("FULL", ""), ("FULL", "OUTER")), JoinKind.FULL),
    **dict.fromkeys((("LEFT", "SEMI"), ("", "SEMI")), JoinKind.SEMI),
    **dict.fromkeys((("LEFT", "ANTI"), ("", "ANTI")), JoinKind.ANTI),
}
"""The kinds of fixed joins by sqlglot's `side` and `kind`."""


@dataclass(frozen=True)
class WrittenJoin:
    """A fixed join as it stands in FROM; `visible` are the streams that its ON may read."""

    kind: JoinKind
    source: Source
    condition: exp.Expr
    visible: tuple[Source, ...]


class FromReader:
    """Reads the FROM clause of one SELECT into `sources`, `conditions` and `fixed_joins`."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.sources: list[Source] = []
        """The streams of the inner joins."""
        self.conditions: list[exp.Expr] = []
        """The conditions after the ON of inner joins, in the order of the joins."""
        self.fixed_joins: list[WrittenJoin] = []
        self._comma: Span | None = None
        """The first stream that follows a comma."""

    def read(self, statement: exp.Select) -> None:
        self._table(statement.args["from_"].this)
        for join in statement.args.get("joins") or ():
            self._join(join, at_top=True)

    @property
    def shown(self) -> tuple[Source, ...]:
        """The streams that SELECT and WHERE may read."""
        return (*self.sources, *(join.source for join in self.fixed_joins if join.kind.shows_right))

    def resolve(self, qualifier: str, span: Span | None) -> str:
        """The alias of the stream that a qualifier in SELECT or WHERE, at a span of the text, stands for."""
        every = (*self.sources, *(join.source for join in self.fixed_joins))
        return self.resolve_among(every, qualifier, span)

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
        raise QueryError(f"'{qualifier}' is not a stream of this query", self._text, span, hint)

    def _table(self, table: exp.Expr) -> None:
        """Read one entry of FROM: a stream, or joined streams in brackets, and the joins that follow it."""
        while isinstance(table, exp.Paren):
            table = table.this
        if isinstance(table, exp.Subquery) and not table.alias and isinstance(table.this, StreamTable | exp.Subquery):
            # sqlglot also reads streams in brackets as a subquery.
            refuse_clauses(table, frozenset({"this", "joins"}), self._text)
            self._table(table.this)
        elif isinstance(table, StreamTable):
            self.sources.append(read_source(table, self._text))
        else:
            raise self._not_a_stream(table)
        for join in table.args.get("joins") or ():
            self._join(join)

    def _join(self, join: exp.Expr, *, at_top: bool = False) -> None:
        """Read one join; `at_top` says that it is not within brackets."""
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
        if join.meta.get(COMMA) and self._comma is None:
            self._comma = span_of(join.this)
        if fixed_kind is not None:
            self._fixed_join(join, fixed_kind, self._join_place(join, words), at_top)
            return
        if self.fixed_joins:
            before = self.fixed_joins[-1]
            raise QueryError(
                f"an inner join after {before.kind.value} is not supported",
                self._text,
                span_of(join.this),
                f"write the inner joins first, and {before.kind.value} {before.source.stream} [..] ON .. after them",
            )
        self._table(join.this)
        condition = join.args.get("on")
        if condition is not None:
            self.conditions.append(condition)

    def _fixed_join(self, join: exp.Expr, kind: JoinKind, span: Span | None, at_top: bool) -> None:
        """Read an outer, semi or anti join, which must join all streams so far with one more."""
        if not at_top:
            raise QueryError(
                f"{kind.value} within brackets, or within another JOIN, is not supported",
                self._text,
                span,
                f"join the streams one after the other: a JOIN b ON .. {kind.value} c [..] ON ..",
            )
        if self._comma is not None:
            raise QueryError(
                f"{kind.value} beside streams separated by commas is not supported",
                self._text,
                self._comma,
                f"join all streams with JOIN: a JOIN b ON .. {kind.value} c [..] ON ..",
            )
        if kind.preserves_right and self.fixed_joins:
            # When it is certain that a right row has no partner would depend on rows that have nothing to do with it.
            raise QueryError(
                f"{kind.value} after {self.fixed_joins[-1].kind.value} is not supported",
                self._text,
                span,
                f"write {kind.value} directly after the inner joins; LEFT, LEFT SEMI and LEFT ANTI JOIN can follow it",
            )
        table = join.this
        if not isinstance(table, StreamTable) or table.args.get("joins"):
            raise QueryError(
                f"{kind.value} takes one stream",
                self._text,
                span_of(table),
                f"join the streams one after the other: a JOIN b ON .. {kind.value} c [..] ON ..",
            )
        source = read_source(table, self._text)
        condition = join.args.get("on") or exp.true()
        self.fixed_joins.append(WrittenJoin(kind, source, condition, (*self.shown, source)))

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
        shown = name if name_span is None else text[name_span.start : name_span.end]
        raise QueryError(
            f"stream '{name}' has no window",
            text,
            span,
            f"say which rows count: {shown} [RANGE 5 MINUTES], {shown} [ROWS 100] or {shown} [UNBOUNDED]",
        )
    return Source(table.alias_or_name, name, table.window, span=span)
