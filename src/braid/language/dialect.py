"""The dialect "braid" of sqlglot: Spark's SQL with a window in brackets after each stream.

The tree is sqlglot's own, so that anybody who knows sqlglot can read or rewrite it. Braid adds two nodes:
`StreamTable`, a table with a window, and `WindowNode`, which holds the window.
"""

from __future__ import annotations

from typing import Any

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ErrorLevel
from sqlglot.generators.spark import SparkGenerator
from sqlglot.tokenizer_core import Token, TokenType

from braid.errors import QueryError, Span
from braid.language.nodes import COMMA, SPAN, StreamTable, WindowNode
from braid.language.spark_parser import RepairedSparkParser, SyntaxFault
from braid.language.syntax_errors import EXAMPLE, span_of, syntax_error
from braid.language.tokens import tokenize
from braid.language.window_syntax import FORMS, WindowReader, Word

__all__ = ["Braid", "BraidGenerator", "BraidParser", "StreamTable", "WindowNode", "parse_statement"]


class BraidParser(RepairedSparkParser):
    """Parses streams with their windows."""

    def _parse_table(self, *args: Any, **options: Any) -> exp.Expr | None:
        if args or options.get("schema") or options.get("is_db_reference") or not self._at_stream():
            start = self._curr
            return self._placed(super()._parse_table(*args, **options), start)
        return self._parse_windowed_stream(bool(options.get("joins")))

    def _parse_join(self, *args: Any, **options: Any) -> exp.Join | None:
        is_comma = self._curr is not None and self._curr.token_type == TokenType.COMMA
        join = super()._parse_join(*args, **options)
        if join is not None and is_comma:
            join.meta[COMMA] = True
        return join

    def _at_stream(self) -> bool:
        """Whether the next token is a name, and not the beginning of a table function."""
        if self._curr.token_type not in self.TABLE_ALIAS_TOKENS and self._curr.token_type != TokenType.IDENTIFIER:
            return False
        if self._curr.token_type in (TokenType.UNNEST, TokenType.LATERAL, TokenType.VALUES):
            return False
        return bool(self._next.token_type != TokenType.L_PAREN)

    def _parse_windowed_stream(self, joins: bool) -> exp.Expr | None:
        start = self._curr
        parts = self._parse_table_parts()
        if not isinstance(parts, exp.Table):
            return parts
        table = self.expression(StreamTable(**parts.args))
        window = self._parse_stream_window()
        table.set("alias", self._parse_stream_alias(window is not None))
        if window is None:
            window = self._parse_stream_window()
        elif self._curr.token_type == TokenType.L_BRACKET:
            raise self._query_error("this stream has a window already", self._curr, "keep one of the two")
        table.set("window", window)
        table.set("hints", self._parse_table_hints())
        table.set("pivots", self._parse_pivots())
        table.set("sample", self._parse_table_sample())
        if joins:
            for join in self._parse_joins():
                table.append("joins", join)
        table.meta[SPAN] = Span(start.start, self._prev.end + 1)
        return table

    def _parse_stream_alias(self, has_window: bool) -> exp.TableAlias | None:
        name = self._curr
        alias = self._parse_table_alias(alias_tokens=self.TABLE_ALIAS_TOKENS)
        if alias is None and self._prev.token_type == TokenType.ALIAS:
            raise self._query_error("a name is missing after AS", self._prev, "write it, or leave out AS")
        is_keyword = name.text.upper() in ("RANGE", "TUMBLE", "ROWS", "UNTIL", "NOW", "UNBOUNDED")
        window_follows = self._curr.token_type == TokenType.L_BRACKET
        if alias is not None and is_keyword and not has_window and not window_follows:
            # `FROM s RANGE 5 MINUTES`: the window was written without its brackets, and RANGE became the alias.
            raise self._query_error("a window stands in brackets", name, f"a window is one of {FORMS}")
        return alias

    def _parse_stream_window(self) -> WindowNode | None:
        if not self._match(TokenType.L_BRACKET):
            return None
        opening = self._prev
        unclosed = self._query_error("the bracket of this window is not closed", opening, "write ] after the window")
        words: list[Word] = []
        while self._curr and self._curr.token_type != TokenType.R_BRACKET:
            words += self._words(self._curr)
            if self._curr.token_type in (TokenType.L_BRACKET, TokenType.WHERE, TokenType.FROM):
                raise unclosed
            self._advance()
        if not self._match(TokenType.R_BRACKET):
            raise unclosed
        span = Span(opening.start, self._prev.end + 1)
        node = WindowNode(this=WindowReader(words, self.sql, span).read())
        node.meta[SPAN] = span
        return node

    def _words(self, token: Token) -> list[Word]:
        """The words of a window that a token stands for."""
        span = span_of(token)
        if token.token_type == TokenType.IDENTIFIER:
            return [Word(token.text, span, quoted=True)]
        if token.token_type == TokenType.PARTITION_BY:
            return [Word("PARTITION", span), Word("BY", span)]
        if token.token_type == TokenType.DCOLON and self._prev.start == token.start:
            # The tokenizer turns 5s and 5d into casts, 5::SMALLINT and 5::DOUBLE. In a window they are seconds and
            # days: the span of the number includes its letter, so the two tokens of the cast are skipped.
            self._advance()
            return []
        return [Word(self.sql[span.start : span.end], span)]


def _stream_sql(generator: SparkGenerator, stream: StreamTable) -> str:
    table = exp.Table(**{name: value for name, value in stream.args.items() if name != "window"})
    return f"{generator.table_sql(table)} {stream.window or ''}".rstrip()


class BraidGenerator(SparkGenerator):
    """Writes the tree back as text that parses to the same tree."""

    TRANSFORMS = {**SparkGenerator.TRANSFORMS, StreamTable: _stream_sql}  # noqa: RUF012


class Braid(Spark):
    """The dialect, known to sqlglot as "braid"."""

    Parser = BraidParser
    Generator = BraidGenerator

    def to_json_path(self, path: exp.Expr | None) -> exp.Expr | None:
        """Leave JSON paths as they are: they are refused later, and checking them here would only log warnings."""
        return path


def parse_statement(text: str) -> exp.Select | exp.Except:
    """The syntax tree of a text that is one SELECT, or several combined by EXCEPT; any other text is a `QueryError`.

    >>> parse_statement("SELECT * FROM bids [RANGE 2min] AS b").sql(dialect="braid")
    'SELECT * FROM bids AS b [RANGE 2 MINUTES]'
    """
    dialect = Braid()
    tokens = tokenize(text, dialect.tokenizer())
    try:
        statements = dialect.parser(error_level=ErrorLevel.IMMEDIATE).parse(tokens, text)
    except QueryError:
        raise
    except SyntaxFault as problem:
        raise syntax_error(problem.description, problem.token, text) from None
    except RecursionError:
        raise QueryError("the query is nested too deeply", text, hint="simplify it") from None
    except Exception:
        # sqlglot fails in many ways on texts that it does not expect; for the user each one is an error in the text.
        raise QueryError("the query cannot be understood", text, hint=f"it reads like {EXAMPLE}") from None
    statement = statements[0] if statements else None
    if isinstance(statement, exp.Select | exp.Except):
        _take_fields_apart(statement)
        return statement
    if isinstance(statement, exp.SetOperation):
        raise QueryError(f"{statement.key.upper()} is not supported", text, hint="run its parts as two queries")
    raise QueryError("a query is a SELECT statement", text, hint=f"for example {EXAMPLE}")


def _take_fields_apart(statement: exp.Expr) -> None:
    """Make `a.address.city` a field of the column `a.address`; sqlglot reads it as a column of a table in a schema."""
    for column in list(statement.find_all(exp.Column)):
        source, *names = column.parts
        if len(names) < 2 or isinstance(column.this, exp.Star):
            continue
        node: exp.Expr = exp.Column(this=names[0].copy(), table=source.copy())
        for name in names[1:]:
            node = exp.Dot(this=node, expression=name.copy())
        if SPAN in column.meta:
            node.meta[SPAN] = column.meta[SPAN]
        column.replace(node)
