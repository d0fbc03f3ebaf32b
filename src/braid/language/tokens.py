"""Checks and repairs of a query text before it is parsed: size, quotes, brackets, one statement only."""

from __future__ import annotations

import itertools
import re
from difflib import get_close_matches

from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType
from sqlglot.tokens import Tokenizer

from braid.errors import QueryError, Span

LONGEST_TEXT = 100_000
"""No query text is longer than this many characters."""

DEEPEST_NESTING = 25
"""Brackets within brackets, at most."""

MOST_TOKENS = 20_000
"""No query has more words and signs than this: a tree of them could not be built in reasonable time."""

EXAMPLE = "SELECT * FROM bids [RANGE 5 MINUTES]"

TYPE_HINT = (
    "types are BOOLEAN, TINYINT, SMALLINT, INT, BIGINT, FLOAT, DOUBLE, DECIMAL(p, s), "
    "STRING, BINARY, DATE and TIMESTAMP"
)

_CLOSING = {TokenType.L_PAREN: ")", TokenType.L_BRACKET: "]", TokenType.L_BRACE: "}"}
_AFTER_NO_COMMA = frozenset(
    {TokenType.COMMA, TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.FROM, TokenType.WHERE, TokenType.JOIN}
)
_BEFORE_NO_COMMA = frozenset(
    {TokenType.SELECT, TokenType.L_PAREN, TokenType.FROM, TokenType.WHERE, TokenType.GROUP_BY, TokenType.HAVING}
)
_OPENING = {TokenType.R_PAREN: "(", TokenType.R_BRACKET: "[", TokenType.R_BRACE: "{"}


_SET_OPERATIONS = frozenset({TokenType.UNION, TokenType.INTERSECT})
_PIVOTS = frozenset({TokenType.PIVOT, TokenType.UNPIVOT})
_QUERY_BEGINS = frozenset({TokenType.SELECT, TokenType.ALL, TokenType.DISTINCT})


def span_of(token: Token) -> Span:
    return Span(token.start, token.end + 1)


def tokenize(text: str, tokenizer: Tokenizer) -> list[Token]:
    """The tokens of a text that may be one SELECT statement; a `QueryError` if it cannot be one."""
    _check_text(text)
    try:
        tokens = _fold_quotes(tokenizer.tokenize(text), text)
    except TokenError:
        raise _token_error(text) from None
    if len(tokens) > MOST_TOKENS:
        raise QueryError(
            f"the query has {len(tokens):,} words and signs; the limit is {MOST_TOKENS:,}",
            text,
            span_of(tokens[MOST_TOKENS]),
            "join long lists with a stream instead of writing them down",
        )
    while tokens and tokens[-1].token_type == TokenType.SEMICOLON:
        tokens.pop()
    if not tokens:
        raise QueryError("the query is empty", text, Span(0, 1), f"for example {EXAMPLE}")
    _check_beginning(tokens[0], text)
    _check_brackets(tokens, text)
    _check_refused(tokens, text)
    _check_single(tokens, text)
    _check_commas(tokens, text)
    _check_names(tokens, text)
    return tokens


def _check_text(text: object) -> None:
    if not isinstance(text, str):
        raise QueryError(f"a query is text, not {type(text).__name__}", hint="give a str")
    if len(text) > LONGEST_TEXT:
        raise QueryError(
            f"the query has {len(text):,} characters, which is too long",
            text,
            Span(LONGEST_TEXT, LONGEST_TEXT + 1),
            f"at most {LONGEST_TEXT:,} are read",
        )
    for position, letter in enumerate(text):
        if letter == "\0" or "\ud800" <= letter <= "\udfff":
            raise QueryError(
                f"the query contains the character U+{ord(letter):04X}",
                text,
                Span(position, position + 1),
                "remove it: it is no text",
            )


def _check_beginning(first: Token, text: str) -> None:
    if first.token_type == TokenType.SELECT:
        return
    if first.token_type == TokenType.WITH:
        raise QueryError(
            "common table expressions (WITH) are not supported",
            text,
            span_of(first),
            "write one SELECT over streams",
        )
    shown = shorten(first.text) or text[first.start : first.end + 1]
    raise QueryError(f"a query begins with SELECT, not '{shown}'", text, span_of(first), f"for example {EXAMPLE}")


def _check_refused(tokens: list[Token], text: str) -> None:
    """What no query has, wherever it stands, by its name."""
    for token, following in itertools.pairwise(tokens):
        kind, hint = token.token_type, None
        if kind in _SET_OPERATIONS and following.token_type in _QUERY_BEGINS:
            hint = "run its parts as two queries"
        elif kind in _PIVOTS and following.token_type == TokenType.L_PAREN:
            hint = "select the columns one by one"
        elif kind == TokenType.ARROW:
            hint = "there are no functions of functions here"
        if hint is not None:
            raise QueryError(f"{token.text.upper()} is not supported", text, span_of(token), hint)


def _check_brackets(tokens: list[Token], text: str) -> None:
    open_brackets: list[Token] = []
    for token in tokens:
        if token.token_type in _CLOSING:
            open_brackets.append(token)
            if len(open_brackets) > DEEPEST_NESTING:
                raise QueryError(
                    f"brackets are nested more than {DEEPEST_NESTING} deep",
                    text,
                    span_of(token),
                    "take the query apart",
                )
        elif token.token_type in _OPENING:
            closes = open_brackets.pop() if open_brackets else None
            if closes is None:
                raise QueryError(
                    f"this {token.text} closes nothing",
                    text,
                    span_of(token),
                    f"remove it, or open a {_OPENING[token.token_type]} before it",
                )
            if _CLOSING[closes.token_type] != token.text:
                raise _unclosed(closes, text)
    if open_brackets:
        raise _unclosed(open_brackets[-1], text)


def _unclosed(opening: Token, text: str) -> QueryError:
    closing = _CLOSING[opening.token_type]
    return QueryError(f"this {opening.text} is never closed", text, span_of(opening), f"write {closing} where it ends")


def _check_single(tokens: list[Token], text: str) -> None:
    for token, following in itertools.pairwise(tokens):
        if token.token_type == TokenType.SEMICOLON:
            raise QueryError("a second statement begins here", text, span_of(following), "give one query at a time")


def _check_commas(tokens: list[Token], text: str) -> None:
    """sqlglot overlooks a comma too many; a reader of the query would not."""
    if tokens[-1].token_type == TokenType.COMMA:
        raise QueryError("the query ends with a comma", text, span_of(tokens[-1]), "remove it, or go on")
    for before, token, following in zip([None, *tokens], tokens, tokens[1:], strict=False):
        is_name = before is not None and before.token_type == TokenType.DOT  # `a.from` is a column
        leads = following.token_type == TokenType.COMMA and token.token_type in _BEFORE_NO_COMMA and not is_name
        trails = token.token_type == TokenType.COMMA and following.token_type in _AFTER_NO_COMMA
        if leads or trails:
            sides = (shorten(text[side.start : side.end + 1]) for side in (token, following))
            raise QueryError(
                f"something is missing between {' and '.join(sides)}",
                text,
                Span(token.start, following.end + 1),
                "or there is a comma too many",
            )


def _check_names(tokens: list[Token], text: str) -> None:
    """Where only a name can stand is no text: other dialects quote names by what quotes texts here."""
    for place, token in enumerate(tokens):
        before = tokens[place - 1].token_type if place else None
        after = tokens[place + 1].token_type if place + 1 < len(tokens) else None
        if token.token_type == TokenType.STRING and (TokenType.DOT in (before, after) or after == TokenType.L_BRACKET):
            quoted = token.text.replace("`", "``")
            problem = f"{shorten(text[token.start : token.end + 1])} is a text, where a name is expected"
            raise QueryError(problem, text, span_of(token), f"backticks quote names: `{shorten(quoted)}`")


def _fold_quotes(tokens: list[Token], text: str) -> list[Token]:
    """Doubled quotes: 'it''s' has a quote in it, as in Spark 4, and ''DL'', as papers print it, is 'DL'."""
    folded: list[Token] = []
    for token in tokens:
        before = folded[-1] if folded else None
        if before is not None and token.token_type == TokenType.STRING and _touch(before, token):
            quote = text[token.start]
            if before.token_type == TokenType.STRING and text[before.start] == quote:
                folded[-1] = _string(before, token, before.text + quote + token.text)
                continue
            if len(folded) > 1 and not token.text and _opens_doubled(folded[-2], before):
                start = folded[-2]
                folded[-2:] = [_string(start, token, text[before.start : before.end + 1])]
                continue
        folded.append(token)
    return folded


def _opens_doubled(quote: Token, word: Token) -> bool:
    plain = word.token_type in (TokenType.VAR, TokenType.NUMBER) and re.fullmatch(r"\w+", word.text)
    return quote.token_type == TokenType.STRING and not quote.text and bool(plain) and _touch(quote, word)


def _touch(left: Token, right: Token) -> bool:
    return left.end + 1 == right.start


def _string(first: Token, last: Token, value: str) -> Token:
    return Token(TokenType.STRING, value, last.line, last.col, first.start, last.end, first.comments)


def _token_error(text: str) -> QueryError:
    """The tokenizer gives up at what never ends; where it began, reading the text once more tells."""
    for match in re.finditer(_QUOTED, text):
        start = match.start()
        digits = re.fullmatch(r"\W?x", text[max(0, start - 2) : start], re.IGNORECASE)
        if digits and match.lastgroup != "open" and not re.fullmatch(r"'[0-9a-f]*'", match[0], re.IGNORECASE):
            return QueryError(
                "these are no hexadecimal digits", text, Span(start - 1, match.end()), "for example X'0AFF'"
            )
        if match.lastgroup == "open":
            quote = match[0]
            name = "a comment" if quote.startswith("/") else "a quote"
            closing = "*/" if quote.startswith("/") else quote
            return QueryError(f"{name} is never closed", text, Span(*match.span()), f"write {closing} where it ends")
    return QueryError("the query cannot be read", text, first_word(text), f"it reads like {EXAMPLE}")


_QUOTED = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|`[^`]*`|--[^\n]*|/\*(?s:.)*?\*/|(?P<open>['\"`]|/\*)"
"""Anything that is closed, or the opening of something that is not."""


def shorten(word: str) -> str:
    """A word that may be a long text, or a text of several lines, so that it fits into one line."""
    line = " ".join(word.split())
    return line if len(line) <= 40 else line[:37] + ".."


def first_word(text: str) -> Span:
    """Where a text begins, for what is wrong with all of it."""
    word = re.search(r"\S+", text)
    return Span(*word.span()) if word else Span(0, 1)


def syntax_error(description: str, token: Token | None, text: str) -> QueryError:
    """A parser's complaint in words for people."""
    if token is None:
        end = len(text.rstrip().rstrip(";").rstrip())
        hint = _expected(description) or f"something is missing after '{_last_word(text[:end])}'"
        return QueryError("the query ends too early", text, Span(max(0, end - 1), end), hint)
    shown = shorten(text[token.start : token.end + 1])
    if description.startswith("Required argument"):
        return QueryError(f"something is missing before '{shown}'", text, span_of(token), "write it, or remove this")
    if description.startswith("The number of provided arguments"):
        return QueryError("this function has too many arguments", text, span_of(token), "leave some out")
    if description.upper().startswith("EXPECTED TYPE"):
        return QueryError(f"there is no type '{shown}'", text, span_of(token), TYPE_HINT)
    expected = _expected(description)
    if expected == f"expected {token.text.upper()}":
        expected = None  # it has been read for something else, as what is missing before it
    hint = _keyword_meant(token, text) or expected or "remove it, or write what is missing before it"
    return QueryError(f"'{shown}' is unexpected here", text, span_of(token), hint)


_KEYWORDS = ("FROM", "WHERE", "JOIN", "CROSS JOIN", "GROUP BY", "HAVING", "BETWEEN", "LIKE", "NOT EXISTS", "EXCEPT")


def _keyword_meant(token: Token, text: str) -> str | None:
    """A word that is nearly a keyword is read as a name, and what comes after it is then unexpected."""
    for word in (_last_word(text[: token.start]), token.text):
        close = get_close_matches(word.upper(), _KEYWORDS, n=1, cutoff=0.8)
        if close and close[0] != word.upper():
            return f"did you mean {close[0]} instead of '{shorten(word)}'?"
    return None


def _last_word(text: str) -> str:
    match = re.search(r"(\w+|\S)\s*$", text[-200:])
    return match[1] if match else ""


def _expected(description: str) -> str | None:
    match = re.match(r"Expect(?:ed|ing) ([A-Z]{2,}|[^\w\s]+|table name)(?=\W|$)", description)
    return f"expected {match[1].replace('table name', 'the name of a stream')}" if match else None
