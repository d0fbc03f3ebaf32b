"""CREATE STREAM statements of a job file: the streams as users of Flink and Spark declare them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from braid.errors import FileError
from braid.files.located_yaml import Located
from braid.model.duration import parse_duration

EXAMPLE = (
    "CREATE STREAM bids (auction BIGINT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '5' SECONDS) "
    "WITH ('format' = 'json', 'path' = 'bids')"
)

_TOKEN = re.compile(
    r"\s+|--[^\n]*|/\*.*?\*/|(?P<text>'(?:[^']|'')*')|(?P<quoted>`(?:[^`]|``)*`|\"[^\"]*\")"
    r"|(?P<word>\d+\.\d+|\w+)|(?P<sign>.)",
    re.DOTALL,
)

_PRECISION = re.compile(
    r"\b(TIMESTAMP(?:_LTZ|_NTZ)?)\s*\(\s*\d\s*\)(\s+WITH(OUT)?(\s+LOCAL)?\s+TIME\s+ZONE)?", re.IGNORECASE
)
"""The digits of Flink's timestamps. Spark's have six."""


@dataclass(frozen=True)
class CreatedStream:
    """What a CREATE STREAM statement says. Columns are texts of Spark's DDL; options are those after WITH."""

    name: str
    columns: tuple[tuple[str, Located], ...]
    time: str
    lateness: str
    options: dict[str, str]
    location: Located


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    start: int
    end: int

    def says(self, *words: str) -> bool:
        """Whether this is one of these keywords or signs."""
        return self.kind in ("word", "sign") and self.text.upper() in words


def created_streams(statements: Located) -> tuple[CreatedStream, ...]:
    """The streams of CREATE STREAM statements, with a semicolon between them."""
    return tuple(_Reader(statements).streams())


class _Reader:
    def __init__(self, statements: Located) -> None:
        self._located = statements
        self._text = statements.text()
        matches = _TOKEN.finditer(self._text)
        self._tokens = [_Token(m.lastgroup, m[0], m.start(), m.end()) for m in matches if m.lastgroup is not None]
        self._position = 0

    def streams(self) -> Iterator[CreatedStream]:
        names: set[str] = set()
        while self._position < len(self._tokens):
            if self._match(";"):
                continue
            stream = self._stream()
            if stream.name.casefold() in names:
                raise stream.location.error(f"two streams are called '{stream.name}'; give one of them another name")
            names.add(stream.name.casefold())
            yield stream
            if self._position < len(self._tokens):
                self._expect(";")

    def _stream(self) -> CreatedStream:
        location = self._location(self._next)
        self._expect("CREATE")
        self._match("TEMPORARY")
        self._expect("STREAM", "TABLE")
        if self._match("IF"):
            self._expect("NOT")
            self._expect("EXISTS")
        name = self._name("the name of a stream")
        self._expect("(")
        columns: list[tuple[str, Located]] = []
        watermark: tuple[str, str] | None = None
        while True:
            if self._at("WATERMARK") and self._follows("FOR"):
                if watermark is not None:
                    raise self._error("a stream has one WATERMARK")
                watermark = self._watermark()
            else:
                columns.append(self._column())
            if not self._match(","):
                break
        self._expect(")")
        options = self._options()
        if self._next is not None and not self._at(";"):
            raise self._error("only WITH or USING, OPTIONS and LOCATION stand after the columns; remove the rest")
        if watermark is None:
            raise location.error(
                f"stream '{name}' has no WATERMARK, which names its event time: "
                "WATERMARK FOR ts AS ts - INTERVAL '5' SECONDS; a table without event time stands under tables:"
            )
        if not any(ddl.casefold().startswith(f"{_quoted(watermark[0])} ".casefold()) for ddl, _ in columns):
            raise location.error(f"stream '{name}' has no column '{watermark[0]}', which its WATERMARK names")
        return CreatedStream(name, tuple(columns), *watermark, options, replace(location, name=f"stream '{name}'"))

    def _watermark(self) -> tuple[str, str]:
        """The event-time column, and the lateness as a duration."""
        self._position += 2
        time = self._name("the event-time column")
        self._expect("AS")
        again = self._next
        if self._name("the event-time column") != time:
            raise self._error(f"a watermark is behind its own column: AS {time} - INTERVAL ..", again)
        if not self._match("-"):
            return time, "0 seconds"
        self._expect("INTERVAL")
        amount = self._advance("the length of the interval")
        words = [amount.text.strip("'")]
        if self._next is not None and self._next.kind == "word":
            words.append(self._advance("a unit").text)
        lateness = " ".join(words)
        if parse_duration(lateness) is None:
            raise self._error(f"'{lateness}' is no length of time; write INTERVAL '5' SECONDS", amount)
        return time, lateness

    def _column(self) -> tuple[str, Located]:
        """A column as Spark's DDL."""
        first = self._next
        name = self._name("the name of a column")
        if self._at("KEY"):
            raise self._error("keys are not declared: a stream is append-only; remove PRIMARY KEY", first)
        if self._at("AS"):
            problem = "columns that are computed are not declared; compute them in a query: FROM (SELECT .. FROM s) .."
            raise self._error(f"'{name}': {problem}", first)
        start = self._next
        depth = 0
        end: _Token | None = None
        while self._next is not None and (depth or not self._at(",", ")")):
            if self._next.says("ROW") and (self._follows("<") or self._follows("(")):
                raise self._error(f"column '{name}' is a ROW of Flink; write STRUCT<x: INT, y: STRING>", start)
            end = self._advance("a type")
            depth += {"(": 1, "<": 1, ")": -1, ">": -1}.get(end.text, 0) if end.kind == "sign" else 0
        if start is None or end is None:
            raise self._error(f"column '{name}' has no type", start)
        kind = _PRECISION.sub(lambda match: match[1].upper().removesuffix("_LTZ"), self._text[start.start : end.end])
        return f"{_quoted(name)} {' '.join(kind.split())}", self._location(first)

    def _options(self) -> dict[str, str]:
        """WITH ('key' = 'value', ..), or Spark's USING format OPTIONS (..) LOCATION 'path'."""
        options: dict[str, str] = {}
        if self._match("WITH"):
            return self._pairs()
        if self._match("USING"):
            options["format"] = self._name("a format")
        if self._match("OPTIONS"):
            options |= self._pairs()
        if self._match("LOCATION"):
            options["path"] = self._value()
        return options

    def _pairs(self) -> dict[str, str]:
        self._expect("(")
        pairs: dict[str, str] = {}
        while not self._match(")"):
            key = self._value()
            self._match("=")
            pairs[key] = self._value()
            if not self._at(")"):
                self._expect(",")
        return pairs

    def _value(self) -> str:
        token = self._advance("a text in quotes")
        if token.kind not in ("text", "word"):
            raise self._error("a text in quotes is missing here", token)
        return token.text[1:-1].replace("''", "'") if token.kind == "text" else token.text

    def _name(self, what: str) -> str:
        token = self._advance(what)
        if token.kind not in ("word", "quoted"):
            raise self._error(f"{what} is missing here", token)
        return token.text[1:-1].replace("``", "`") if token.kind == "quoted" else token.text

    @property
    def _next(self) -> _Token | None:
        return self._tokens[self._position] if self._position < len(self._tokens) else None

    def _advance(self, what: str) -> _Token:
        token = self._next
        if token is None:
            raise self._error(f"the statement ends before {what}")
        self._position += 1
        return token

    def _at(self, *words: str) -> bool:
        return self._next is not None and self._next.says(*words)

    def _follows(self, word: str) -> bool:
        rest: Sequence[_Token] = self._tokens[self._position + 1 : self._position + 2]
        return any(token.says(word) for token in rest)

    def _match(self, word: str) -> bool:
        is_next = self._at(word)
        self._position += is_next
        return is_next

    def _expect(self, *words: str) -> None:
        if not self._at(*words):
            raise self._error(f"{' or '.join(words)} is missing here")
        self._position += 1

    def _location(self, token: _Token | None) -> Located:
        """The line of a token. A text of several lines begins on the line after its key."""
        start = token.start if token is not None else self._tokens[-1].end if self._tokens else 0
        before = self._text.count("\n", 0, start) + 1 if "\n" in self._text else 0
        return replace(self._located, line=self._located.line + before)

    def _error(self, problem: str, token: _Token | None = None) -> FileError:
        token = token or self._next
        shown = "the end" if token is None else f"'{token.text}'"
        return self._location(token).error(f"{problem} (at {shown}); a stream is declared as {EXAMPLE}")


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
