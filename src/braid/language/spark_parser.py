"""sqlglot's parser for Spark with three repairs: it notes the span of every operand and the text of every call, it
reads some expressions as Spark does, and its time does not double with each nested JOIN or call.
"""

from __future__ import annotations

from typing import Any

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError
from sqlglot.parsers.spark import SparkParser
from sqlglot.parsers.spark2 import build_as_cast
from sqlglot.tokenizer_core import Token, TokenType

from braid.errors import QueryError, Span
from braid.language.nodes import CALL, SPAN, WrittenCall
from braid.language.syntax_errors import span_of

MOST_OPEN_JOINS = 100
"""The most JOINs that may follow each other before the ON of the first: each is parsed inside the one before it."""

_DEPTH = {TokenType.L_PAREN: 1, TokenType.L_BRACKET: 1, TokenType.R_PAREN: -1, TokenType.R_BRACKET: -1}
"""How a token changes the depth of brackets."""


class SyntaxFault(ParseError):  # noqa: N818
    """A syntax error together with the token where it was noticed; None is the end of the text."""

    def __init__(self, message: str, token: Token | None) -> None:
        super().__init__(message, [{"description": message}])
        self.description = message
        self.token = token


class RepairedSparkParser(SparkParser):
    """Parses expressions and joins."""

    # GROUP BY WINDOW(..) is a call. Without this, the word WINDOW would end GROUP BY and begin a WINDOW clause.
    QUERY_MODIFIER_TOKENS = SparkParser.QUERY_MODIFIER_TOKENS - {TokenType.WINDOW}

    # In Spark, || has the precedence of + and -; in sqlglot it binds tighter.
    TERM = {**SparkParser.TERM, TokenType.DPIPE: exp.DPipe}  # noqa: RUF012

    # Spark can call types like functions, as in BIGINT(x); sqlglot does not know all of them.
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
        self._parsed_joins: dict[int, tuple[exp.Join | None, int]] = {}
        """By the index of its first token: a join, and the index of the token after it."""
        self._open_joins = 0

    def _parse_join(self, *args: Any, **options: Any) -> exp.Join | None:
        """Parse the join at each position once.

        After a JOIN without ON, sqlglot parses what follows to see whether an ON comes later. If there is none, it
        parses the same text again, so each further JOIN would double the work.
        """
        start = self._index
        if start in self._parsed_joins:
            join, end = self._parsed_joins[start]
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
        self._parsed_joins[start] = join, self._index
        return join

    def _parse_types(self, *args: Any, **options: Any) -> exp.Expr | None:
        """Where an expression is expected, a type followed by a bracket is a call: INT(x).

        sqlglot would parse the bracket to see whether a text follows, and then parse it again as a call, so each
        nested call would double the work.
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
            # sqlglot would accept a JOIN with nothing after its ON as a JOIN without ON.
            raise self._query_error("a condition is missing after ON", before, "for example ON a.k = b.k")
        return self._placed(condition, start)

    def _parse_interval(self, *args: Any, **options: Any) -> exp.Add | exp.Interval | None:
        start = self._curr
        interval = super()._parse_interval(*args, **options)
        self._placed(interval, start)
        return interval

    def _parse_interval_span(self, this: exp.Expr, *_: Any, **__: Any) -> exp.Interval:
        """Parse the unit after a length; there is none if the length is a text with units, such as '2 days 3 hours'.

        sqlglot would keep one length of such a text and ignore the rest.
        """
        sign, length = ("-", this.this) if isinstance(this, exp.Neg) else ("", this)
        has_units = length.is_string and any(letter.isalpha() for letter in length.name)
        if isinstance(length, exp.Literal):
            this = exp.Literal.string(sign + length.name)
        unit: exp.Expr | None = None
        if not has_units and (self._curr.token_type == TokenType.VAR or self._curr.text.upper() in self._UNITS):
            unit = self._parse_var(any_token=True, upper=True)
            if self._match_text_seq("TO"):
                last = self._parse_var(any_token=True, upper=True)
                unit = self.expression(exp.IntervalSpan(this=unit, expression=last))
        return self.expression(exp.Interval(this=this, unit=unit))

    def _parse_function_call(self, *args: Any, **options: Any) -> exp.Expr | None:
        """Note the call as written, because sqlglot drops arguments that it does not know."""
        name = self._curr.text
        opening = self._index + 1
        is_call = self._next.token_type == TokenType.L_PAREN
        node = super()._parse_function_call(*args, **options)
        if node is not None and is_call:
            begins_with_text = self._tokens[opening + 1].token_type in (TokenType.STRING, TokenType.RAW_STRING)
            node.meta[CALL] = WrittenCall(name, self._count_arguments(opening), begins_with_text)
        return node

    def _count_arguments(self, opening: int) -> int:
        """The number of arguments in a call whose opening bracket is token `opening` and that is parsed already."""
        commas = depth = 0
        for token in self._tokens[opening : self._index]:
            depth += _DEPTH.get(token.token_type, 0)
            if depth == 0:
                break
            if depth == 1 and token.token_type == TokenType.COMMA:
                commas += 1
        return 0 if self._tokens[opening + 1].token_type == TokenType.R_PAREN else commas + 1

    def _placed(self, node: exp.Expr | None, start: Token) -> exp.Expr | None:
        """Note that a node was read from the tokens `start` to the previous one, for errors that point at it."""
        if node is not None and start and self._prev and SPAN not in node.meta:
            node.meta[SPAN] = Span(start.start, self._prev.end + 1)
        return node

    def _query_error(self, problem: str, token: Token, hint: str) -> QueryError:
        return QueryError(problem, self.sql, span_of(token), hint)
