"""Braid's SQL: Spark's, with a window in brackets after each stream.

The tree is sqlglot's own, so that anybody who knows sqlglot can read or rewrite it. Two nodes are ours:
`StreamTable`, a table with a window, and `WindowNode`, which holds the window.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ErrorLevel, ParseError
from sqlglot.generators.spark import SparkGenerator
from sqlglot.parsers.spark import SparkParser
from sqlglot.parsers.spark2 import build_as_cast
from sqlglot.tokenizer_core import Token, TokenType

from braid.errors import QueryError, Span
from braid.language.tokens import EXAMPLE, syntax_error, tokenize
from braid.language.window_syntax import FORMS, WindowReader, Word
from braid.model.window import Window

PLACE = "place"
"""Where the stretch of text that a node was read from is kept in the node's meta."""

CALL = "call"
"""Where a call as it is written is kept in the meta of the node that was made of it."""

MOST_OPEN_JOINS = 100
"""So many JOINs may follow each other before the ON of the first: each is read within the one before it."""

_DEPTH = {TokenType.L_PAREN: 1, TokenType.L_BRACKET: 1, TokenType.R_PAREN: -1, TokenType.R_BRACKET: -1}


class WrittenCall(NamedTuple):
    """The name of a function in the text, how many arguments follow it, and whether they begin with a text."""

    name: str
    arguments: int
    begins_with_text: bool


class WindowNode(exp.Expression):
    """A window as a node of the tree."""

    arg_types = {"this": True}  # noqa: RUF012

    @property
    def window(self) -> Window:
        return self.args["this"]  # type: ignore[no-any-return]


class StreamTable(exp.Table):
    """A stream in FROM; `window` is a `WindowNode`, or None where none was written."""

    arg_types = {**exp.Table.arg_types, "window": False}  # noqa: RUF012

    @property
    def window(self) -> Window | None:
        node = self.args.get("window")
        return node.window if isinstance(node, WindowNode) else None


class SyntaxFault(ParseError):  # noqa: N818
    """A syntax error that knows the token it stumbled over."""

    def __init__(self, message: str, token: Token | None) -> None:
        super().__init__(message, [{"description": message}])
        self.description = message
        self.token = token


class BraidParser(SparkParser):
    """Spark's parser with windows, and with the place of every operand kept."""

    # GROUP BY WINDOW(..) is a call; that it begins with a word that also begins a clause must not end GROUP BY.
    QUERY_MODIFIER_TOKENS = SparkParser.QUERY_MODIFIER_TOKENS - {TokenType.WINDOW}

    # As in Spark, || goes from left to right with + and -; sqlglot does these first.
    TERM = {**SparkParser.TERM, TokenType.DPIPE: exp.DPipe}  # noqa: RUF012

    # Of the types that Spark calls like functions, sqlglot lacks some.
    FUNCTIONS = {  # noqa: RUF012
        **SparkParser.FUNCTIONS,
        **{name: build_as_cast(name) for name in ("BIGINT", "BINARY", "DECIMAL", "SMALLINT", "TINYINT")},
        "TO_TIMESTAMP_NTZ": build_as_cast("TIMESTAMP_NTZ"),
    }

    _UNITS = Spark.VALID_INTERVAL_UNITS
    _JOIN_BEGINS = frozenset({TokenType.JOIN, *SparkParser.JOIN_KINDS, *SparkParser.JOIN_SIDES})

    def raise_error(self, message: str, token: Token | None = None) -> None:
        raise SyntaxFault(message, token or self._curr or None)

    def reset(self) -> None:
        super().reset()
        self._joins: dict[int, tuple[exp.Join | None, int]] = {}
        self._open_joins = 0

    def _parse_join(self, *args: Any, **options: Any) -> exp.Join | None:
        """What follows a JOIN without ON is read to see whether an ON comes after it, and if none does, read again:
        each JOIN would double the work. So what was read at a place is kept, with where it ends.
        """
        start = self._index
        if start in self._joins:
            join, end = self._joins[start]
            self._advance(end - start)
            return join
        if self._open_joins == MOST_OPEN_JOINS and self._curr.token_type in self._JOIN_BEGINS:
            problem = f"{MOST_OPEN_JOINS} joins before this one wait for their ON"
            raise self._query_error(problem, self._curr, "write ON after each JOIN, or join with commas or CROSS JOIN")
        self._open_joins += 1
        try:
            join = super()._parse_join(*args, **options)
        finally:
            self._open_joins -= 1
        self._joins[start] = join, self._index
        return join

    def _parse_types(self, *args: Any, **options: Any) -> exp.Expr | None:
        """Where an expression is expected, a type with brackets is a call, INT(x). sqlglot would read what they hold to
        see whether a text follows, and then again: each call in a call would double the work.
        """
        if options.get("check_func") and self._next.token_type == TokenType.L_PAREN:
            return None
        start = self._curr
        return self._placed(super()._parse_types(*args, **options), start)

    def _parse_unary(self) -> exp.Expr | None:
        start = self._curr
        return self._placed(super()._parse_unary(), start)

    def _parse_equality(self, *args: Any, **options: Any) -> exp.Expr | None:
        start = self._curr
        return self._placed(super()._parse_equality(*args, **options), start)

    def _parse_disjunction(self) -> exp.Expr | None:
        start, before = self._curr, self._prev
        condition = super()._parse_disjunction()
        if condition is None and before and before.token_type == TokenType.ON:
            # sqlglot would take a JOIN with nothing after its ON for one without ON.
            raise self._query_error("a condition is missing after ON", before, "for example ON a.k = b.k")
        return self._placed(condition, start)

    def _parse_interval(self, *args: Any, **options: Any) -> exp.Add | exp.Interval | None:
        start = self._curr
        interval = super()._parse_interval(*args, **options)
        self._placed(interval, start)
        return interval

    def _parse_interval_span(self, this: exp.Expr, *_: Any, **__: Any) -> exp.Interval:
        """The unit after the length, or none if the length is a text that has its units in it. sqlglot would take one
        length out of such a text, and pass over the rest.
        """
        sign, length = ("-", this.this) if isinstance(this, exp.Neg) else ("", this)
        says_units = length.is_string and any(letter.isalpha() for letter in length.name)
        if isinstance(length, exp.Literal):
            this = exp.Literal.string(sign + length.name)
        unit: exp.Expr | None = None
        if not says_units and (self._curr.token_type == TokenType.VAR or self._curr.text.upper() in self._UNITS):
            unit = self._parse_var(any_token=True, upper=True)
            if self._match_text_seq("TO"):
                last = self._parse_var(any_token=True, upper=True)
                unit = self.expression(exp.IntervalSpan(this=unit, expression=last))
        return self.expression(exp.Interval(this=this, unit=unit))

    def _parse_function_call(self, *args: Any, **options: Any) -> exp.Expr | None:
        """Keep what was written: of the arguments, sqlglot passes over those that it does not know."""
        name, opening, is_call = self._curr.text, self._index + 1, self._next.token_type == TokenType.L_PAREN
        node = super()._parse_function_call(*args, **options)
        if node is not None and is_call:
            begins_with_text = self._tokens[opening + 1].token_type in (TokenType.STRING, TokenType.RAW_STRING)
            node.meta[CALL] = WrittenCall(name, self._count_arguments(opening), begins_with_text)
        return node

    def _count_arguments(self, opening: int) -> int:
        """How many expressions stand between a bracket that was read and the one that closes it."""
        commas = depth = 0
        for token in self._tokens[opening : self._index]:
            depth += _DEPTH.get(token.token_type, 0)
            if depth == 0:
                break
            if depth == 1 and token.token_type == TokenType.COMMA:
                commas += 1
        return 0 if self._tokens[opening + 1].token_type == TokenType.R_PAREN else commas + 1

    def _placed(self, node: exp.Expr | None, start: Token) -> exp.Expr | None:
        """Keep where a node was read from, for errors that point at it."""
        if node is not None and start and self._prev and PLACE not in node.meta:
            node.meta[PLACE] = Span(start.start, self._prev.end + 1)
        return node

    def _parse_table(self, *args: Any, **options: Any) -> exp.Expr | None:
        if args or options.get("schema") or options.get("is_db_reference") or not self._at_stream():
            start = self._curr
            return self._placed(super()._parse_table(*args, **options), start)
        return self._parse_windowed_stream(bool(options.get("joins")))

    def _at_stream(self) -> bool:
        """Whether a name comes next that is no call of a table function."""
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
        table.meta[PLACE] = Span(start.start, self._prev.end + 1)
        return table

    def _parse_stream_alias(self, has_window: bool) -> exp.TableAlias | None:
        name = self._curr
        alias = self._parse_table_alias(alias_tokens=self.TABLE_ALIAS_TOKENS)
        if alias is None and self._prev.token_type == TokenType.ALIAS:
            raise self._query_error("a name is missing after AS", self._prev, "write it, or leave out AS")
        forgotten = name.text.upper() in ("RANGE", "ROWS", "NOW", "UNBOUNDED")
        if alias is not None and forgotten and not has_window and self._curr.token_type != TokenType.L_BRACKET:
            raise self._query_error("a window stands in brackets", name, f"a window is one of {FORMS}")
        return alias

    def _parse_stream_window(self) -> WindowNode | None:
        if not self._match(TokenType.L_BRACKET):
            return None
        opening = self._prev
        words: list[Word] = []
        while self._curr and self._curr.token_type != TokenType.R_BRACKET:
            words += self._words(self._curr)
            if self._curr.token_type in (TokenType.L_BRACKET, TokenType.WHERE, TokenType.FROM):
                raise self._query_error("the bracket of this window is not closed", opening, "write ] after the window")
            self._advance()
        if not self._match(TokenType.R_BRACKET):
            raise self._query_error("the bracket of this window is not closed", opening, "write ] after the window")
        span = Span(opening.start, self._prev.end + 1)
        node = WindowNode(this=WindowReader(words, self.sql, span).read())
        node.meta[PLACE] = span
        return node

    def _words(self, token: Token) -> list[Word]:
        span = Span(token.start, token.end + 1)
        if token.token_type == TokenType.IDENTIFIER:
            return [Word(token.text, span, quoted=True)]
        if token.token_type == TokenType.PARTITION_BY:
            return [Word("PARTITION", span), Word("BY", span)]
        if token.token_type == TokenType.DCOLON and self._prev.start == token.start:
            # Spark reads 5s as a smallint and 5d as a double: here they are seconds and days.
            self._advance()
            return []
        return [Word(self.sql[span.start : span.end], span)]

    def _query_error(self, problem: str, token: Token, hint: str) -> QueryError:
        return QueryError(problem, self.sql, Span(token.start, token.end + 1), hint)


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
        """JSON paths are refused later: there is no use in sqlglot's warnings of what is wrong with them."""
        return path


def parse_statement(text: str) -> exp.Select | exp.Except:
    """The syntax tree of the one SELECT, or EXCEPT of several, that a text holds; anything else is a `QueryError`.

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
        raise QueryError("the query is nested too deeply", text, hint="take it apart") from None
    except Exception:
        # Whatever sqlglot stumbles over, the fault is in the text.
        raise QueryError("the query cannot be understood", text, hint=f"it reads like {EXAMPLE}") from None
    statement = statements[0] if statements else None
    if isinstance(statement, exp.Select | exp.Except):
        return statement
    if isinstance(statement, exp.SetOperation):
        raise QueryError(f"{statement.key.upper()} is not supported", text, hint="run its parts as two queries")
    raise QueryError("a query is a SELECT statement", text, hint=f"for example {EXAMPLE}")
