"""The entries of FROM: streams with their windows, SELECTs in brackets, and window functions."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from braid.errors import Span
from braid.language.intervals import interval_literal
from braid.language.nodes import COMMA, SPAN, FunctionNode, StreamTable, WindowNode
from braid.language.spark_parser import RepairedSparkParser
from braid.language.syntax_errors import span_of
from braid.language.window_syntax import FORMS, WindowReader, Word
from braid.model.window import LONGEST
from braid.model.window_function import WindowFunction

_FUNCTIONS = {
    "TUMBLE": "TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL 10 MINUTES)",
    "HOP": "HOP(TABLE s, DESCRIPTOR(ts), INTERVAL 1 MINUTE, INTERVAL 10 MINUTES), the slide before the size",
}
"""The window functions, each with an example."""

_SELECT_BEGINS = frozenset({TokenType.SELECT, TokenType.WITH})


class SourceParser(RepairedSparkParser):
    """Parses the entries of FROM."""

    def _parse_table(self, *args: Any, **options: Any) -> exp.Expr | None:
        start, joins = self._curr, bool(options.get("joins"))
        if not (args or options.get("schema") or options.get("is_db_reference")):
            if self._curr.token_type == TokenType.L_PAREN and self._next.token_type in _SELECT_BEGINS:
                return self._parse_select_in_brackets(joins)
            if self._at_window_function():
                return self._parse_window_function(joins)
            if self._at_stream():
                return self._parse_windowed_stream(joins)
        return self._placed(super()._parse_table(*args, **options), start)

    def _parse_join(self, *args: Any, **options: Any) -> exp.Join | None:
        is_comma = self._curr is not None and self._curr.token_type == TokenType.COMMA
        join = super()._parse_join(*args, **options)
        if join is not None and is_comma:
            join.meta[COMMA] = True
            # sqlglot calls it a CROSS JOIN, which would bind as much as the joins after it.
            join.set("kind", None)
        return join

    def _at_stream(self) -> bool:
        """Whether the next token is a name, and not the beginning of a table function."""
        if self._curr.token_type not in self.TABLE_ALIAS_TOKENS and self._curr.token_type != TokenType.IDENTIFIER:
            return False
        if self._curr.token_type in (TokenType.UNNEST, TokenType.LATERAL, TokenType.VALUES):
            return False
        return bool(self._next.token_type != TokenType.L_PAREN)

    def _at_window_function(self) -> bool:
        """Whether TUMBLE(..) or HOP(..) comes next, or one of them within TABLE(..)."""
        opening = self._index + 1
        name = self._curr
        if self._curr.token_type == TokenType.TABLE and self._next.token_type == TokenType.L_PAREN:
            opening += 2
            name = self._tokens[opening - 1] if opening <= len(self._tokens) else name
        following = self._tokens[opening] if opening < len(self._tokens) else None
        is_call = following is not None and following.token_type == TokenType.L_PAREN
        return is_call and name.text.upper() in _FUNCTIONS

    def _parse_windowed_stream(self, joins: bool) -> exp.Expr | None:
        start = self._curr
        parts = self._parse_table_parts()
        if not isinstance(parts, exp.Table):
            return parts
        return self._parse_rest(self.expression(StreamTable(**parts.args)), start, joins)

    def _parse_select_in_brackets(self, joins: bool) -> exp.Expr:
        """(SELECT ..) [window] name. The window and the name may stand in either order, as after a stream."""
        start = self._curr
        self._advance()
        # A WITH in the brackets belongs to the SELECT, and so do UNION ALL and what follows it.
        beginning = self._curr
        select = self._parse_select()
        if isinstance(select, exp.Select):
            self._placed(select, beginning)
        if self._curr.token_type != TokenType.R_PAREN:
            self.raise_error("Expecting )")
        self._advance()
        table = self.expression(StreamTable(this=exp.to_identifier("SELECT"), select=select))
        self._parse_rest(table, start, joins)
        if not table.alias and table.window is None:
            # As in Flink: a SELECT around it may read its rows without naming it.
            table.set("alias", exp.TableAlias(this=exp.to_identifier("SELECT", quoted=True)))
        elif not table.alias:
            raise self._query_error(
                "a SELECT in FROM needs a name", start, "write it after the brackets: (SELECT ..) AS x"
            )
        return table

    def _parse_rest(self, table: StreamTable, start: Token, joins: bool) -> StreamTable:
        """The window and the alias of an entry, in either order, and the joins that follow it."""
        function = table.function
        window = self._parse_stream_window() if function is None else WindowNode(this=function.window)
        table.set("alias", self._parse_stream_alias(window is not None))
        if window is None:
            window = self._parse_stream_window()
        elif self._curr.token_type == TokenType.L_BRACKET:
            whose = "this stream" if function is None else "a stream with a window function"
            raise self._query_error(f"{whose} has a window already", self._curr, "keep one of the two")
        if isinstance(window, FunctionNode):
            table.set("function", window)
            window = WindowNode(this=window.function.window)
        table.set("window", window)
        table.set("hints", self._parse_table_hints())
        table.set("pivots", self._parse_pivots())
        table.set("sample", self._parse_table_sample())
        if joins:
            for join in self._parse_joins():
                table.append("joins", join)
        table.meta[SPAN] = Span(start.start, self._prev.end + 1)
        return table

    def _parse_window_function(self, joins: bool) -> exp.Expr:
        """TUMBLE(TABLE s, DESCRIPTOR(ts), size) or HOP(TABLE s, DESCRIPTOR(ts), slide, size), also within TABLE(..)."""
        start = self._curr
        wrapped = self._match(TokenType.TABLE)
        if wrapped:
            self._match(TokenType.L_PAREN)
        name = self._curr.text.upper()
        self._advance(2)
        example = f"write {_FUNCTIONS[name]}"
        if not self._match(TokenType.TABLE) or not self._at_stream():
            raise self._query_error(f"{name} begins with TABLE and the name of a stream", self._curr, example)
        parts = self._parse_table_parts()
        if not isinstance(parts, exp.Table):
            raise self._query_error(f"{name} takes the name of a stream", self._prev, example)
        self._expect(TokenType.COMMA, f"{name} has too few arguments", example)
        if self._curr.text.upper() != "DESCRIPTOR" or self._next.token_type != TokenType.L_PAREN:
            raise self._query_error(f"the second argument of {name} is DESCRIPTOR(..)", self._curr, example)
        self._advance(2)
        time = self._parse_id_var()
        if time is None:
            raise self._query_error("DESCRIPTOR names the event-time column", self._curr, example)
        self._expect(TokenType.R_PAREN, "DESCRIPTOR names one column", example)
        lengths = []
        while self._match(TokenType.COMMA):
            lengths.append(self._window_length(name, example))
        if len(lengths) != (1 if name == "TUMBLE" else 2):
            raise self._query_error(f"{name} has the wrong number of lengths", self._curr, example)
        self._expect(TokenType.R_PAREN, f"{name} has an argument too many", example)
        if wrapped:
            self._expect(TokenType.R_PAREN, "TABLE(..) has one argument", example)
        slide, size = lengths[0], lengths[-1]
        if slide > size:
            problem = "the slide of HOP is longer than its size, so some rows would be in no window"
            raise self._query_error(problem, start, example)
        function = FunctionNode(this=WindowFunction(time.name, size, slide))
        table = self.expression(StreamTable(**parts.args, function=function))
        return self._parse_rest(table, start, joins)

    def _window_length(self, name: str, example: str) -> int:
        """An INTERVAL of a window function, in microseconds."""
        start = self._curr
        interval = self._parse_interval()
        if not isinstance(interval, exp.Interval):
            raise self._query_error(f"the lengths of {name} are written as INTERVAL ..", start, example)
        length = interval_literal(interval, self.sql).value
        assert isinstance(length, timedelta)
        microseconds = length // timedelta(microseconds=1)
        if not 0 < microseconds <= LONGEST:
            raise self._query_error(f"the lengths of {name} must be greater than 0", start, example)
        return microseconds

    def _expect(self, kind: TokenType, problem: str, hint: str) -> None:
        if not self._match(kind):
            raise self._query_error(problem, self._curr or self._prev, hint)

    def _parse_stream_alias(self, has_window: bool) -> exp.TableAlias | None:
        name = self._curr
        alias = self._parse_table_alias(alias_tokens=self.TABLE_ALIAS_TOKENS)
        if alias is None and self._prev.token_type == TokenType.ALIAS:
            raise self._query_error("a name is missing after AS", self._prev, "write it, or leave out AS")
        is_keyword = name.text.upper() in ("RANGE", "TUMBLE", "HOP", "ROWS", "UNTIL", "NOW", "UNBOUNDED")
        window_follows = self._curr.token_type == TokenType.L_BRACKET
        if alias is not None and is_keyword and not has_window and not window_follows:
            # `FROM s RANGE 5 MINUTES`: the window was written without its brackets, and RANGE became the alias.
            raise self._query_error("a window stands in brackets", name, f"a window is one of {FORMS}")
        return alias

    def _parse_stream_window(self) -> WindowNode | FunctionNode | None:
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
        window = WindowReader(words, self.sql, span).read()
        node = (FunctionNode if isinstance(window, WindowFunction) else WindowNode)(this=window)
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
