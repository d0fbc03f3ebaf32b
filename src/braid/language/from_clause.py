"""FROM: the streams of a query with their windows and aliases, and the conditions of its joins."""

from __future__ import annotations

from sqlglot import exp

from braid.errors import QueryError, Span, did_you_mean
from braid.language.nodes import StreamTable, span_of
from braid.language.refusal import refuse_clauses, unsupported_expression
from braid.language.resolving import match_name
from braid.model.query import Source, two_streams_called

_CLAUSES_OF_STREAM = frozenset({"this", "db", "catalog", "alias", "window", "joins"})
_CLAUSES_OF_JOIN = frozenset({"this", "on", "kind", "side", "method", "using"})

_JOINS = "join streams with a comma, with JOIN .. ON or with CROSS JOIN"
_NOT_EXISTS = "NOT EXISTS (SELECT * FROM b [..] WHERE b.k = a.k)"
_OUTER = f"write JOIN for the rows that match, and a second query with WHERE {_NOT_EXISTS} for the others"
_INSTEAD_OF_JOIN = {
    "ANTI": f"write WHERE {_NOT_EXISTS}",
    "SEMI": "write JOIN, and remove repeated rows from the results",
    "NATURAL": "write JOIN .. ON a.k = b.k",
    **dict.fromkeys(("LEFT", "RIGHT", "FULL", "OUTER"), _OUTER),
}
"""What to write instead of a kind of join, by a word of its name; the first that fits counts."""


class FromReader:
    """Reads the FROM clause of one SELECT into `sources` and `conditions`."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.sources: list[Source] = []
        self.conditions: list[exp.Expr] = []
        """The conditions after ON, in the order of the joins."""

    def read(self, statement: exp.Select) -> None:
        self._table(statement.args["from_"].this)
        for join in statement.args.get("joins") or ():
            self._join(join)

    def resolve(self, qualifier: str, span: Span | None) -> str:
        """The alias of the stream that a qualifier, at a span of the text, stands for."""
        aliases = [source.alias for source in self.sources]
        matches = match_name(qualifier, aliases)
        if len(matches) == 1:
            return matches[0]
        if matches and len(set(matches)) == 1:
            spans = [source.span for source in self.sources if source.alias == matches[0]]
            raise two_streams_called(matches[0], self._text, spans[1])
        if matches:
            raise QueryError(f"'{qualifier}' could be {' or '.join(matches)}", self._text, span, "write it as in FROM")
        renamed = [source.alias for source in self.sources if source.stream.lower() == qualifier.lower()]
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

    def _join(self, join: exp.Expr) -> None:
        words = [str(join.args.get(key) or "").upper() for key in ("method", "side", "kind")]
        method, side, kind = words
        if method or side or kind not in ("", "INNER", "CROSS"):
            name = " ".join(word for word in words if word) + " JOIN"
            raise QueryError(
                f"{name} is not supported",
                self._text,
                self._join_place(join, words),
                next((hint for word, hint in _INSTEAD_OF_JOIN.items() if word in words), _JOINS),
            )
        if join.args.get("using"):
            raise QueryError(
                "JOIN .. USING is not supported",
                self._text,
                span_of(join.args["using"][0]),
                "write JOIN .. ON a.k = b.k",
            )
        refuse_clauses(join, _CLAUSES_OF_JOIN, self._text)
        self._table(join.this)
        condition = join.args.get("on")
        if condition is not None:
            self.conditions.append(condition)

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
