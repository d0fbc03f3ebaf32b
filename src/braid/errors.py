"""The errors Braid raises: each says what happened, what was given and what to do about it.

All of them survive pickling, because they cross process boundaries on their way to the user.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from unicodedata import combining, east_asian_width

LONGEST_EXCERPT = 100
LONGEST_LINE = 300
MOST_SHOWN = 20


class BraidError(Exception):
    """Parent of every error that Braid raises."""


class ModelError(BraidError, ValueError):
    """A part of a query, a plan or a statistic that cannot exist."""


class StreamError(BraidError):
    """A stream, its schema or its data cannot be used as declared."""


class PlanError(BraidError):
    """A plan does not fit the query it was given for."""


class TopologyError(BraidError):
    """A network that cannot be: unknown sites, negative costs, parts that cannot reach each other."""


class PlanningError(BraidError):
    """No plan can be made from what was given: a figure is unknown, a stream has no site, a limit is passed."""


class DeadlineError(PlanningError):
    """The time given for planning ran out."""


class FileError(BraidError):
    """A file that cannot be read or says something that cannot be, with the place in it."""


class RunError(BraidError):
    """What was asked for was right, and running it failed."""


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of query text: character offsets, the end exclusive."""

    start: int
    end: int

    def union(self, other: Span | None) -> Span:
        if other is None:
            return self
        return Span(min(self.start, other.start), max(self.end, other.end))


class QueryError(BraidError):
    """A query text that cannot be run, with the place in the text and what would be right.

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
        """Line and column of the problem, both counted from 1; None where no place is known."""
        if self.span is None:
            return None
        before = self.text[: self.span.start]
        return before.count("\n") + 1, self.span.start - (before.rfind("\n") + 1) + 1

    def _excerpt(self) -> list[str]:
        assert self.span is not None
        first = self.text.rfind("\n", 0, self.span.start) + 1
        last = self.text.find("\n", self.span.start)
        last = len(self.text) if last < 0 else last
        if last - first > LONGEST_EXCERPT:
            # A very long line is cut to the surroundings of the problem.
            first = max(first, self.span.start - LONGEST_EXCERPT // 2)
            last = min(last, first + LONGEST_EXCERPT)
        line = _printable(self.text[first:last])
        start, end = self.span.start - first, min(self.span.end, last) - first
        return [f"  {line}", f"  {' ' * _width(line[:start])}{'^' * max(1, _width(line[start:end]))}"]


def _one_line(said: str) -> str:
    """What is said may quote any name or constant of a query: where that is long, the middle is left out."""
    half = LONGEST_LINE // 2
    return _printable(said if len(said) <= LONGEST_LINE else f"{said[:half]} .. {said[-half:]}")


def _printable(text: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in text)


def _width(text: str) -> int:
    """How many letters' room a text takes on a screen: Chinese signs take two, accents of their own none."""
    return sum(0 if combining(letter) else 2 if east_asian_width(letter) in "WF" else 1 for letter in text)


def reason_of(error: Exception) -> str:
    """Why a file cannot be read or written, without the number and the path that an error of the system begins with."""
    if isinstance(error, UnicodeDecodeError):
        return "it is no text in UTF-8"
    if isinstance(error, FileNotFoundError):
        return "there is no such file; check the path"
    return error.strerror if isinstance(error, OSError) and error.strerror else str(error)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A hint for a name nobody knows: the nearest known one, or all of them.

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
    shown = ", ".join(candidates[:MOST_SHOWN]) + (", .." if len(candidates) > MOST_SHOWN else "")
    return f"known: {shown}" if candidates else "none are known"
