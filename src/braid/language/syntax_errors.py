"""Error messages for texts that cannot be tokenized or parsed, and the helpers to quote a text in a message."""

from __future__ import annotations

import re
from difflib import get_close_matches

from sqlglot.tokenizer_core import Token

from braid.errors import QueryError, Span

EXAMPLE = "SELECT * FROM bids [RANGE 5 MINUTES]"

TYPE_HINT = (
    "types are BOOLEAN, TINYINT, SMALLINT, INT, BIGINT, FLOAT, DOUBLE, DECIMAL(p, s), "
    "STRING, BINARY, DATE and TIMESTAMP"
)

_QUOTED = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|`[^`]*`|--[^\n]*|/\*(?s:.)*?\*/|(?P<open>['\"`]|/\*)"
"""A complete quoted text, name or comment; the group `open` is the beginning of one that is never closed."""

_KEYWORDS = ("FROM", "WHERE", "JOIN", "CROSS JOIN", "GROUP BY", "HAVING", "BETWEEN", "LIKE", "NOT EXISTS", "EXCEPT")
"""Keywords that are suggested for misspelled words."""


def span_of(token: Token) -> Span:
    return Span(token.start, token.end + 1)


def shorten(text: str) -> str:
    """A text as part of a message: on one line, and cut after about 40 characters."""
    line = " ".join(text.split())
    return line if len(line) <= 40 else line[:37] + ".."


def first_word(text: str) -> Span:
    """The span of the first word, for errors that concern the whole text."""
    word = re.search(r"\S+", text)
    return Span(*word.span()) if word else Span(0, 1)


def token_error(text: str) -> QueryError:
    """The error for a text that the tokenizer gave up on: it points at the quote or comment that never ends."""
    for match in re.finditer(_QUOTED, text):
        start = match.start()
        is_hex = re.fullmatch(r"\W?x", text[max(0, start - 2) : start], re.IGNORECASE)
        if is_hex and match.lastgroup != "open" and not re.fullmatch(r"'[0-9a-f]*'", match[0], re.IGNORECASE):
            return QueryError(
                "these are no hexadecimal digits", text, Span(start - 1, match.end()), "for example X'0AFF'"
            )
        if match.lastgroup == "open":
            opening = match[0]
            name = "a comment" if opening.startswith("/") else "a quote"
            closing = "*/" if opening.startswith("/") else opening
            return QueryError(f"{name} is never closed", text, Span(*match.span()), f"write {closing} where it ends")
    return QueryError("the query cannot be read", text, first_word(text), f"it reads like {EXAMPLE}")


def syntax_error(description: str, token: Token | None, text: str) -> QueryError:
    """The error for a complaint of sqlglot's parser at a token, or at the end of the text if there is none."""
    if token is None:
        end = len(text.rstrip().rstrip(";").rstrip())
        hint = _expected(description) or f"something is missing after '{_last_word(text[:end])}'"
        return QueryError("the query ends too early", text, Span(max(0, end - 1), end), hint)
    span = span_of(token)
    shown = shorten(text[span.start : span.end])
    if description.startswith("Required argument"):
        return QueryError(f"something is missing before '{shown}'", text, span, "write it, or remove this word")
    if description.startswith("The number of provided arguments"):
        return QueryError("this function has too many arguments", text, span, "leave some out")
    if description.upper().startswith("EXPECTED TYPE"):
        return QueryError(f"there is no type '{shown}'", text, span, TYPE_HINT)
    expected = _expected(description)
    if expected == f"expected {token.text.upper()}":
        # The expected token is there, but the parser took it for the operand that is missing before it.
        expected = None
    hint = _misspelled_keyword(token, text) or expected or "remove it, or write what is missing before it"
    return QueryError(f"'{shown}' is unexpected here", text, span, hint)


def _misspelled_keyword(token: Token, text: str) -> str | None:
    """A hint if the unexpected token, or the word before it, is nearly a keyword.

    A misspelled keyword is parsed as a name, and the word after it is then unexpected.
    """
    for word in (_last_word(text[: token.start]), token.text):
        close = get_close_matches(word.upper(), _KEYWORDS, n=1, cutoff=0.8)
        if close and close[0] != word.upper():
            return f"did you mean {close[0]} instead of '{shorten(word)}'?"
    return None


def _last_word(text: str) -> str:
    match = re.search(r"(\w+|\S)\s*$", text[-200:])
    return match[1] if match else ""


def _expected(description: str) -> str | None:
    """A hint from what sqlglot says it expected, if that is a keyword, a sign or a name."""
    match = re.match(r"Expect(?:ed|ing) ([A-Z]{2,}|[^\w\s]+|table name)(?=\W|$)", description)
    return f"expected {match[1].replace('table name', 'the name of a stream')}" if match else None
