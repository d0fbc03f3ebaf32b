"""The window in brackets after a stream: from its words to a `Window`."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from braid.errors import QueryError, Span, did_you_mean
from braid.model.duration import ABBREVIATIONS, UNITS, unit_length
from braid.model.window import LONGEST, Now, Range, Rows, Tumble, Unbounded, Until, Window
from braid.model.window_function import WindowFunction

FORMS = (
    "[RANGE 5 MINUTES], [RANGE 5 MINUTES SLIDE 1 MINUTE], [TUMBLE 5 MINUTES], [HOP 5 MINUTES SLIDE 1 MINUTE], "
    "[ROWS 100], [PARTITION BY k ROWS 10], [UNTIL column], [NOW] or [UNBOUNDED]"
)

_REFUSED = {
    "SESSION": "a session ends because no row came, which is known too late for a join; write [RANGE ..] with the gap, "
    "or [UNTIL column] if rows know when they end",
}
"""Windows of other systems, and what to write instead."""


@dataclass(frozen=True, slots=True)
class Word:
    """A word, number or sign between the brackets. A `quoted` word is a name, never a keyword."""

    text: str
    span: Span
    quoted: bool = False


class WindowReader:
    """Reads one window; a `QueryError` points at the word that is wrong."""

    def __init__(self, words: Sequence[Word], text: str, span: Span) -> None:
        self._words = list(itertools.chain.from_iterable(map(_number_and_unit, words)))
        self._text = text
        self._span = span
        self._next = 0
        """The index of the next word to read."""

    def read(self) -> Window | WindowFunction:
        if not self._words:
            raise self._error("the brackets are empty", self._span, f"a window is one of {FORMS}")
        window = self._window()
        if self._next < len(self._words):
            rest = self._words[self._next]
            raise self._error(f"'{rest.text}' does not belong in this window", rest.span, f"a window is one of {FORMS}")
        return window

    def _window(self) -> Window | WindowFunction:
        if self._accept("RANGE"):
            return Unbounded() if self._accept("UNBOUNDED") else self._range()
        if self._accept("ROWS"):
            return Unbounded() if self._accept("UNBOUNDED") else self._rows(())
        if self._accept("PARTITION"):
            return self._rows(self._partition())
        if self._accept("NOW"):
            return Now()
        if self._accept("UNBOUNDED"):
            return Unbounded()
        if self._accept("TUMBLE"):
            return Tumble(self._duration("TUMBLE", "the length of the window"))
        if self._accept("HOP"):
            return self._hop()
        if self._accept("UNTIL"):
            return Until(self._column("UNTIL", "[UNTIL expires]"))
        word = self._words[0]
        if not word.quoted and word.text.upper() in _REFUSED:
            name = word.text.upper()
            raise self._error(f"{name} windows are not supported", word.span, _REFUSED[name])
        keywords = ("RANGE", "TUMBLE", "HOP", "ROWS", "PARTITION BY", "UNTIL", "NOW", "UNBOUNDED")
        hint = did_you_mean(word.text, keywords)
        if hint.startswith("known"):
            hint = f"a window is one of {FORMS}"
        raise self._error(f"'{word.text}' is not the beginning of a window", word.span, hint)

    def _range(self) -> Window:
        length = self._duration("RANGE", "the length of the window")
        slide = self._duration("SLIDE", "the length of the slide") if self._accept("SLIDE") else None
        return Range(length, slide)

    def _hop(self) -> WindowFunction:
        size = self._duration("HOP", "the length of the window")
        if not self._accept("SLIDE"):
            hint = "say how far apart windows begin: [HOP 10 SECONDS SLIDE 2 SECONDS]"
            raise self._error("HOP needs SLIDE", self._next_span(), hint)
        slide = self._duration("SLIDE", "the length of the slide")
        if slide > size:
            hint = "write a slide that is at most as long as the window"
            raise self._error("the slide of HOP is longer than its windows", self._span, hint)
        return WindowFunction(None, size, slide)

    def _rows(self, partition_by: tuple[str, ...]) -> Window:
        return Rows(self._whole_number("ROWS", "the number of rows", "ROWS 100"), partition_by)

    def _partition(self) -> tuple[str, ...]:
        example = "[PARTITION BY k ROWS 10]"
        if not self._accept("BY"):
            raise self._error("PARTITION is followed by BY", self._next_span(), f"for example {example}")
        names = [self._column("PARTITION BY", example)]
        while self._accept(","):
            names.append(self._column("PARTITION BY", example))
        if not self._accept("ROWS"):
            raise self._error(
                "PARTITION BY is for ROWS windows, and ROWS is missing",
                self._next_span(),
                f"for example {example}",
            )
        return tuple(names)

    def _column(self, keyword: str, example: str) -> str:
        word = self._peek()
        if word is None or not (word.quoted or _is_name(word.text)):
            raise self._error(f"{keyword} needs the name of a column", self._next_span(), f"for example {example}")
        self._next += 1
        following = self._peek()
        if following is not None and following.text == ".":
            raise self._error(
                f"{keyword} takes names of columns without the name of the stream",
                word.span.union(following.span),
                f"for example {example}",
            )
        return word.text

    def _duration(self, keyword: str, meaning: str) -> int:
        """A number and its unit, in microseconds; `meaning` says in errors what the duration is."""
        if self._accept("INTERVAL"):
            self._unquote_interval()
        number = self._number(keyword, meaning, f"{keyword} 5 MINUTES")
        amount = self._words[self._next - 1]
        word = self._peek()
        if word is None or not word.text.isidentifier() or word.text.upper() == "SLIDE":
            raise self._error(
                f"{meaning} has no unit",
                amount.span,
                f"add a unit: {keyword} {amount.text} SECONDS, MINUTES, HOURS ..",
            )
        unit = unit_length(word.text)
        if unit is None:
            names = [f"{name}s" for name in UNITS]
            hint = did_you_mean(word.text.lower(), [*names, *UNITS, *ABBREVIATIONS])
            if hint.startswith("known"):
                hint = f"units are {', '.join(names)}"
            raise self._error(f"'{word.text}' is no unit of time", word.span, hint)
        self._next += 1
        length = number * unit
        span = amount.span.union(word.span)
        if length > LONGEST:
            raise self._error(f"{meaning} is too large", span, "[UNBOUNDED] keeps every row")
        if length.denominator != 1:
            raise self._error(f"{meaning} is no whole number of microseconds", span, "use fewer digits after the point")
        return int(length)

    def _unquote_interval(self) -> None:
        """Replace the text after INTERVAL, such as '5' or '5 minutes', by the words in it."""
        word = self._peek()
        match = None if word is None else re.fullmatch(r"(['\"])([^'\"]*)\1", word.text)
        if word is not None and match is not None:
            words = [Word(part, word.span) for part in match[2].split()]
            self._words[self._next : self._next + 1] = itertools.chain.from_iterable(map(_number_and_unit, words))

    def _number(self, keyword: str, meaning: str, example: str) -> Fraction:
        """A positive number, perhaps with a decimal point."""
        word = self._peek()
        if word is not None and len(word.text) <= 20 and re.fullmatch(r"[0-9]+\.[0-9]+", word.text):
            number = Fraction(word.text)
            if number > 0:
                self._next += 1
                return number
        return Fraction(self._whole_number(keyword, meaning, example))

    def _whole_number(self, keyword: str, meaning: str, example: str) -> int:
        """A positive number; `meaning` says in errors what the number is."""
        word = self._peek()
        hint = f"for example {example}" if keyword == "SLIDE" else f"for example [{example}]"
        if word is None:
            raise self._error(f"{keyword} needs {meaning}", self._next_span(), hint)
        if word.text in ("-", "+"):
            raise self._error(f"{meaning} must be a positive whole number, without a sign", word.span, hint)
        if not re.fullmatch(r"[0-9]+", word.text):
            raise self._error(f"{meaning} must be a whole number, not '{word.text}'", word.span, hint)
        if len(word.text) > 20:
            raise self._error(f"{meaning} is too large", word.span, "[UNBOUNDED] keeps every row")
        if int(word.text) == 0:
            raise self._error(f"{meaning} is zero; it must be at least 1", word.span, hint)
        self._next += 1
        return int(word.text)

    def _peek(self) -> Word | None:
        return self._words[self._next] if self._next < len(self._words) else None

    def _accept(self, keyword: str) -> bool:
        word = self._peek()
        if word is None or word.quoted or word.text.upper() != keyword:
            return False
        self._next += 1
        return True

    def _next_span(self) -> Span:
        """The span of the next word, or of the closing bracket after the last word."""
        word = self._peek()
        return Span(self._span.end - 1, self._span.end) if word is None else word.span

    def _error(self, problem: str, span: Span, hint: str | None = None) -> QueryError:
        return QueryError(problem, self._text, span, hint)


def _is_name(text: str) -> bool:
    return text.isidentifier() and text.upper() != "ROWS"


def _number_and_unit(word: Word) -> list[Word]:
    """A word such as `2min`, a number and its unit without a space, as two words."""
    match = None if word.quoted else re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)([^\W\d]+)", word.text)
    if match is None:
        return [word]
    number, unit = match.groups()
    middle = word.span.start + len(number)
    return [Word(number, Span(word.span.start, middle)), Word(unit, Span(middle, word.span.end))]
