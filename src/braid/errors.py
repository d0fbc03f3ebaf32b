"""The errors Braid raises: each says what happened, what was given and what to do about it.

All of them survive pickling, because they cross process boundaries on their way to the user.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from unicodedata import combining, east_asian_width

LONGEST_EXCERPT = 100
"""The most characters of query text that an error shows."""

LONGEST_LINE = 300
"""Longer error texts lose their middle."""

MOST_SHOWN = 20
"""The most known names that a hint lists."""


class BraidError(Exception):
    """Parent of every error that Braid raises."""


class ModelError(BraidError, ValueError):
    """An invalid part of a query, a plan or statistics."""


class StreamError(BraidError):
    """A stream, its schema or its data cannot be used as declared."""


class PlanError(BraidError):
    """A plan does not fit the query it was given for."""


class TopologyError(BraidError):
    """An invalid network: unknown sites, negative costs, sites that cannot reach each other."""


class PlanningError(BraidError):
    """Planning is impossible: a figure is unknown, a stream has no site, or a limit is exceeded."""


class DeadlineError(PlanningError):
    """The time limit for planning ran out."""


class FileError(BraidError):
    """A file that cannot be read or has invalid content; the text says where in the file."""


class ChannelError(BraidError):
    """A channel between sites cannot be read or written, or holds what does not belong there."""


class InvariantError(BraidError):
    """Something that must always hold did not hold in a simulation. This is a mistake in Braid."""


class RunError(BraidError):
    """A valid query or command failed while it ran."""


@dataclass(frozen=True, slots=True)
class Span:
    """A range of characters in a query text; `end` is exclusive."""

    start: int
    end: int

    def union(self, other: Span | None) -> Span:
        if other is None:
            return self
        return Span(min(self.start, other.start), max(self.end, other.end))


class QueryError(BraidError):
    """A query text that cannot be run. The message shows the position in the text and suggests a correction.

    >>> print(QueryError("unknown column 'prize'", "SELECT prize FROM s", Span(7, 12), "did you mean 'price'?"))
    unknown column 'prize' (line 1, column 8)
      SELECT prize FROM s
             ^^^^^
    did you mean 'price'?
    """

    def __init__(self, problem: str, text: str = "", span: Span | None = None, hint: str | None = None) -> None:
        super().__init__(problem, text, span, hint)
        self.problem = _one_line(problem)
        self.text = text
        self.span = span
        self.hint = None if hint is None else _one_line(hint)

    def __str__(self) -> str:
        lines = [self.problem]
        if self.place is not None:
            lines[0] += f" (line {self.place[0]}, column {self.place[1]})"
            lines += self._excerpt()
        if self.hint:
            lines.append(self.hint)
        return "\n".join(lines)

    @property
    def place(self) -> tuple[int, int] | None:
        """Line and column of the problem, both counted from 1; None if the position is unknown."""
        if self.span is None:
            return None
        before = self.text[: self.span.start]
        return before.count("\n") + 1, self.span.start - (before.rfind("\n") + 1) + 1

    def _excerpt(self) -> list[str]:
        assert self.span is not None
        line_start = self.text.rfind("\n", 0, self.span.start) + 1
        line_end = self.text.find("\n", self.span.start)
        if line_end < 0:
            line_end = len(self.text)
        if line_end - line_start > LONGEST_EXCERPT:
            # Of a very long line, show only the characters around the problem.
            line_start = max(line_start, self.span.start - LONGEST_EXCERPT // 2)
            line_end = min(line_end, line_start + LONGEST_EXCERPT)
        line = _printable(self.text[line_start:line_end])
        start = self.span.start - line_start
        end = min(self.span.end, line_end) - line_start
        indent = " " * _width(line[:start])
        underline = "^" * max(1, _width(line[start:end]))
        return [f"  {line}", f"  {indent}{underline}"]


def _one_line(text: str) -> str:
    """The text on one line. It may quote a very long name or constant of a query; then its middle is left out."""
    if len(text) > LONGEST_LINE:
        half = LONGEST_LINE // 2
        text = f"{text[:half]} .. {text[-half:]}"
    return _printable(text)


def _printable(text: str) -> str:
    return "".join(character if character.isprintable() else " " for character in text)


def _width(text: str) -> int:
    """How many columns a text takes in a terminal: wide (East Asian) characters take two, combining accents none."""
    return sum(_character_width(character) for character in text)


def _character_width(character: str) -> int:
    if combining(character):
        return 0
    return 2 if east_asian_width(character) in "WF" else 1


def reason_of(error: Exception) -> str:
    """Why a file cannot be read or written, without the error number and the path that an OSError prints."""
    if isinstance(error, UnicodeDecodeError):
        return "it is not valid UTF-8"
    if isinstance(error, FileNotFoundError):
        return "there is no such file; check the path"
    return error.strerror if isinstance(error, OSError) and error.strerror else str(error)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A hint for an unknown name: the most similar known name or, if none is similar, all known names.

    >>> did_you_mean("flihgts", ["flights", "bags"])
    "did you mean 'flights'?"
    >>> did_you_mean("x", ["flights", "bags"])
    'known: flights, bags'
    """
    candidates = list(dict.fromkeys(known))
    by_folded = {candidate.casefold(): candidate for candidate in candidates}
    close = get_close_matches(name.casefold(), list(by_folded), n=1)
    if close:
        return f"did you mean '{by_folded[close[0]]}'?"
    if not candidates:
        return "none are known"
    shown = ", ".join(candidates[:MOST_SHOWN])
    return f"known: {shown}, .." if len(candidates) > MOST_SHOWN else f"known: {shown}"
