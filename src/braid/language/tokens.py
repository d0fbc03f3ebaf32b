"""Text to tokens: checks a query text before it is parsed (size, brackets, commas, one statement) and folds quotes."""

from __future__ import annotations

import itertools
import re

from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType
from sqlglot.tokens import Tokenizer

from braid.errors import QueryError, Span
from braid.language.syntax_errors import EXAMPLE, shorten, span_of, token_error

LONGEST_TEXT = 100_000
"""The most characters of a query text."""

DEEPEST_NESTING = 25
"""The most brackets that may be open at once."""

MOST_TOKENS = 20_000
"""The most tokens of a query: the tree of a longer one could not be built in reasonable time."""

_CLOSING = {TokenType.L_PAREN: ")", TokenType.L_BRACKET: "]", TokenType.L_BRACE: "}"}
_OPENING = {TokenType.R_PAREN: "(", TokenType.R_BRACKET: "[", TokenType.R_BRACE: "{"}

_NEVER_AFTER_COMMA = frozenset(
    {TokenType.COMMA, TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.FROM, TokenType.WHERE, TokenType.JOIN}
)
_NEVER_BEFORE_COMMA = frozenset(
    {TokenType.SELECT, TokenType.L_PAREN, TokenType.FROM, TokenType.WHERE, TokenType.GROUP_BY, TokenType.HAVING}
)

_PIVOTS = frozenset({TokenType.PIVOT, TokenType.UNPIVOT})
_TIME_TRAVEL = (("FOR", "SYSTEM_TIME"), ("FOR", "SYSTEM_VERSION"), ("TIMESTAMP", "AS", "OF"), ("VERSION", "AS", "OF"))
_WINDOWS = "a stream has a window in brackets, a [RANGE 5 MINUTES], and results are grouped by windows of time"
_QUERY_BEGINS = frozenset({TokenType.SELECT, TokenType.ALL, TokenType.DISTINCT})


def tokenize(text: str, tokenizer: Tokenizer) -> list[Token]:
    """The tokens of a text that may be one SELECT statement; a `QueryError` if it cannot be one."""
    _check_text(text)
    try:
        tokens = _fold_quotes(tokenizer.tokenize(text), text)
    except TokenError:
        raise token_error(text) from None
    if len(tokens) > MOST_TOKENS:
        raise QueryError(
            f"the query has {len(tokens):,} tokens; the limit is {MOST_TOKENS:,}",
            text,
            span_of(tokens[MOST_TOKENS]),
            "put long lists of values into a stream, and join it",
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
                "remove it: it is not allowed in a query",
            )


def _check_beginning(first: Token, text: str) -> None:
    if first.token_type in (TokenType.SELECT, TokenType.WITH):
        return
    shown = shorten(first.text) or text[first.start : first.end + 1]
    raise QueryError(f"a query begins with SELECT, not '{shown}'", text, span_of(first), f"for example {EXAMPLE}")


_WINDOW_FUNCTIONS = {
    "TUMBLE": f"{_WINDOWS}: GROUP BY WINDOW(event_time, '5 minutes'); in FROM, write TUMBLE(TABLE s, ..)",
    "HOP": f"{_WINDOWS}: GROUP BY WINDOW(event_time, '5 minutes', '1 minute'), a window of 5 minutes every minute; "
    "in FROM, write HOP(TABLE s, ..)",
    "CUMULATE": f"{_WINDOWS}: GROUP BY WINDOW(event_time, '5 minutes')",
    "SESSION": f"{_WINDOWS} of a fixed length: GROUP BY WINDOW(event_time, '5 minutes'); with braid.Session also by "
    "sessions: GROUP BY k, SESSION_WINDOW(event_time, '5 minutes')",
}
"""Windows of other streaming systems, and what to write instead."""

_AS_OF = "for the newest row of each key write a window after the stream: [PARTITION BY k ROWS 1]"


def _check_refused(tokens: list[Token], text: str) -> None:
    """Refuse by name what sqlglot would complain about elsewhere, wherever it is in the query."""
    words = [token.text.upper() for token in tokens]
    depth = 0
    for index, (token, following) in enumerate(itertools.pairwise(tokens)):
        kind, hint = token.token_type, None
        depth += (kind in _CLOSING) - (kind in _OPENING)
        is_call = words[index] in _WINDOW_FUNCTIONS and following.token_type == TokenType.L_PAREN
        if is_call and not (words[index] in ("TUMBLE", "HOP") and words[index + 2 : index + 3] == ["TABLE"]):
            problem = f"{words[index]} is not supported"
            raise QueryError(problem, text, span_of(token), _WINDOW_FUNCTIONS[words[index]])
        for form in _TIME_TRAVEL:
            if tuple(words[index : index + len(form)]) == form:
                span = Span(token.start, tokens[index + len(form) - 1].end + 1)
                raise QueryError(f"{' '.join(form)} is not supported", text, span, _AS_OF)
        if kind == TokenType.UNION and following.token_type in _QUERY_BEGINS:
            if not depth:
                hint = "write it in FROM: SELECT * FROM (SELECT .. UNION ALL SELECT ..) [RANGE 5 MINUTES] AS x"
            elif following.token_type != TokenType.ALL:
                hint = "write UNION ALL; repeated rows can be removed from the results"
        elif kind == TokenType.INTERSECT and following.token_type in _QUERY_BEGINS:
            hint = "join the streams on all columns"
        elif kind in _PIVOTS and following.token_type == TokenType.L_PAREN:
            hint = "select the columns one by one"
        elif kind == TokenType.ARROW and not depth:
            hint = "lambda functions are arguments of other functions, such as TRANSFORM"
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
                    "simplify the query",
                )
        elif token.token_type in _OPENING:
            opening = open_brackets.pop() if open_brackets else None
            if opening is None:
                raise QueryError(
                    f"this {token.text} closes nothing",
                    text,
                    span_of(token),
                    f"remove it, or open a {_OPENING[token.token_type]} before it",
                )
            if _CLOSING[opening.token_type] != token.text:
                raise _unclosed(opening, text)
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
    """Refuse a comma with nothing before or after it: sqlglot ignores it, though something is missing."""
    if tokens[-1].token_type == TokenType.COMMA:
        raise QueryError(
            "the query ends with a comma", text, span_of(tokens[-1]), "remove it, or write what comes after it"
        )
    for before, token, following in zip([None, *tokens], tokens, tokens[1:], strict=False):
        is_column = before is not None and before.token_type == TokenType.DOT  # as in `a.from`
        leads = following.token_type == TokenType.COMMA and token.token_type in _NEVER_BEFORE_COMMA and not is_column
        trails = token.token_type == TokenType.COMMA and following.token_type in _NEVER_AFTER_COMMA
        if leads or trails:
            sides = (shorten(text[side.start : side.end + 1]) for side in (token, following))
            raise QueryError(
                f"something is missing between {' and '.join(sides)}",
                text,
                Span(token.start, following.end + 1),
                "write it, or remove the comma",
            )


def _check_names(tokens: list[Token], text: str) -> None:
    """Refuse a quoted text where only a name can be: other dialects quote names with the quotes of texts."""
    for index, token in enumerate(tokens):
        before = tokens[index - 1].token_type if index else None
        after = tokens[index + 1].token_type if index + 1 < len(tokens) else None
        if token.token_type == TokenType.STRING and (TokenType.DOT in (before, after) or after == TokenType.L_BRACKET):
            quoted = token.text.replace("`", "``")
            problem = f"{shorten(text[token.start : token.end + 1])} is a text, where a name is expected"
            raise QueryError(problem, text, span_of(token), f"backticks quote names: `{shorten(quoted)}`")


def _fold_quotes(tokens: list[Token], text: str) -> list[Token]:
    """Join the tokens of doubled quotes: 'it''s' is the text it's, as in Spark 4, and ''DL'', as papers print it, is
    the text DL.
    """
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
    """Whether two tokens are the beginning of a word in doubled quotes: an empty text, and a word right after it."""
    plain = word.token_type in (TokenType.VAR, TokenType.NUMBER) and re.fullmatch(r"\w+", word.text)
    return quote.token_type == TokenType.STRING and not quote.text and bool(plain) and _touch(quote, word)


def _touch(left: Token, right: Token) -> bool:
    return left.end + 1 == right.start


def _string(first: Token, last: Token, value: str) -> Token:
    return Token(TokenType.STRING, value, last.line, last.col, first.start, last.end, first.comments)
