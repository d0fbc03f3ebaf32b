"""Random join conditions: equalities and other conditions that connect the streams in every shape.

Every stream has the key columns k, l and m, the numbers v and w, the string t and an event time. In the templates
below, x, y and z stand for aliases.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from braid.testing.choices import Choices

KEYS = ("k", "l", "m")

SHAPES = ("one", "chain", "star", "cycle", "several", "theta", "cross", "mixed")
"""The shapes of join graphs; "one" is a single attribute class, "several" an equality of two columns."""

ABOUT_ONE = (
    "x.v > 2",
    "x.v IS NOT NULL",
    "x.t LIKE 'a%'",
    "x.v IN (1, 2, 3, 5)",
    "NOT x.t LIKE '%b'",
    "x.v BETWEEN 1 AND 8",
    "x.v % 2 = 0",
    "x.w > 0",
    "10 / x.v > 2",
    "x.t <> ''",
    "x.v = 3 OR x.w IS NULL",
    "x.t LIKE 'a\\\\%b'",
)
ABOUT_TWO = (
    "x.v < y.v",
    "x.v <= y.v",
    "x.v > y.v",
    "x.v >= y.v",
    "x.v <> y.v",
    "abs(x.v - y.v) <= 2",
    "x.v + y.v > 7",
    "x.v * 2 < y.v + 3",
    "x.v BETWEEN y.v - 2 AND y.v + 2",
    "x.v / y.v > 0.5",
    "x.v % y.v = 1",
    "x.v div y.v = 1",
    "x.w >= y.w",
    "x.w < y.v",
    "x.t < y.t",
    "x.time <= y.time",
    "x.time BETWEEN y.time - INTERVAL 2 SECONDS AND y.time + INTERVAL 1 SECOND",
    "x.v <=> y.v",
    "greatest(x.v, y.v) > 4",
    "x.v = y.v OR x.t LIKE 'a%'",
    "NOT (x.v = y.v)",
    "concat(x.t, y.t) LIKE '%ab%'",
    "x.v IS NULL OR y.v IS NULL",
    "CASE WHEN x.v > 3 THEN y.v ELSE x.v END = 2",
    "length(x.t) < length(y.t)",
    "x.w - y.w BETWEEN -0.75 AND 1.5",
    "abs(x.w - y.v) < 1.5",
    "x.v - y.v = 1",
    "x.v - 1 <= y.v AND y.v <= x.v + 2",
    "x.time - y.time BETWEEN INTERVAL -1 SECOND AND INTERVAL 1 SECOND",
)
NEAR_NUMBERS = (
    "abs(x.k - y.k) <= 1",
    "x.k BETWEEN y.k - 1.5 AND y.k + 0.5",
    "x.k BETWEEN y.k + 1 AND y.k + 2",
    "x.k - y.k >= -1 AND x.k - y.k < 2",
)
NEAR_TIMES = (
    "x.k - y.k <= INTERVAL 1 HOUR AND y.k - x.k < INTERVAL 1 HOUR",
    "x.k BETWEEN y.k - INTERVAL 1 DAY AND y.k + INTERVAL 2 HOURS",
    "x.k - y.k BETWEEN INTERVAL 0 DAYS AND INTERVAL 1 DAY",
)
NEAR_DAYS = (
    "x.k BETWEEN y.k - INTERVAL 1 DAY AND y.k + INTERVAL 2 HOURS",
    "x.k BETWEEN y.k - INTERVAL 1 HOUR AND y.k + INTERVAL 2 DAYS",
)
NEAR = {
    **dict.fromkeys(("integer", "decimal", "double", "number"), NEAR_NUMBERS),
    **dict.fromkeys(("timestamp", "instant", "duration"), NEAR_TIMES),
    **dict.fromkeys(("date", "day"), NEAR_DAYS),
}
"""Bands between two key columns, by the family of their type."""
ABOUT_THREE = (
    "x.v + y.v = z.v",
    "x.v BETWEEN y.v AND z.v",
    "x.v + y.v + z.v > 9",
    "least(x.v, y.v) < z.v",
    "x.v - y.v = y.v - z.v",
    "x.t = y.t OR y.t = z.t",
)
EQUAL_EXPRESSIONS = (
    "x.v % 3 = y.v % 3",
    "x.v + 1 = y.v",
    "upper(x.t) = upper(y.t)",
    "coalesce(x.v, 0) = coalesce(y.v, 0)",
    "length(x.t) = length(y.t)",
    "CAST(x.v AS DOUBLE) = y.w",
    "floor(x.w) = y.v",
)

Name = Callable[[int, str], str]
"""A function that writes a column of the n-th source."""


@dataclass(frozen=True)
class Condition:
    """The text of a condition and the numbers of the sources it refers to."""

    sources: frozenset[int]
    text: str


def make_conditions(
    choices: Choices, shape: str, count: int, families: Mapping[str, str], name: Name
) -> list[Condition]:
    """Conditions that connect `count` sources in the given shape.

    `families` maps key columns to the families of their types; only keys of one family are compared.
    """
    writer = _Writer(choices, families, name)
    conditions = writer.edges(shape, count)
    for source in range(count):
        if choices.once_in(4 + count):
            conditions.append(writer.fill(choices.pick(ABOUT_ONE), [source]))
    if count >= 2 and shape != "cross" and choices.once_in(2 + count):
        conditions.append(writer.fill(choices.pick(ABOUT_TWO), writer.some(count, 2)))
    if count >= 3 and shape != "cross" and choices.once_in(2 + count):
        conditions.append(writer.fill(choices.pick(ABOUT_THREE), writer.some(count, 3)))
    return conditions


def make_later_conditions(choices: Choices, count: int, families: Mapping[str, str], name: Name) -> list[Condition]:
    """Conditions between `count` sources and one that is joined or tested after them, whose number is `count`."""
    writer = _Writer(choices, families, name)
    later = count
    other = choices.integer(0, count - 1)
    keys = choices.shuffle(KEYS)[: choices.pick((1, 1, 2, 0))]
    conditions = [writer.equal(later, other, key) for key in keys]
    if not conditions or choices.once_in(3):
        conditions.append(writer.fill(choices.pick(ABOUT_TWO), [later, choices.integer(0, count - 1)]))
    if choices.once_in(4):
        conditions.append(writer.fill(choices.pick(EQUAL_EXPRESSIONS), [later, choices.integer(0, count - 1)]))
    if choices.once_in(3):
        conditions.append(writer.fill(choices.pick(ABOUT_ONE), [choices.pick((later, other))]))
    if count > 1 and choices.once_in(4):
        conditions.append(writer.fill(choices.pick(ABOUT_THREE), [later, *writer.some(count, 2)]))
    return conditions


def is_tied_by_equality(count: int, conditions: Sequence[Condition]) -> bool:
    """Whether equalities of key columns connect all sources; then the join has few results."""
    reached = {0}
    for _ in range(count):
        for condition in conditions:
            if len(condition.sources) == 2 and condition.sources & reached and _EQUALITY.fullmatch(condition.text):
                reached |= condition.sources
    return len(reached) == count


_EQUALITY = re.compile(r"[\w.]+ = [\w.]+")
_COLUMN = re.compile(r"\b([xyz])\.(\w+)")


class _Writer:
    """Writes random conditions in the words of one query."""

    def __init__(self, choices: Choices, families: Mapping[str, str], name: Name) -> None:
        self._choices = choices
        self._families = families
        self._name = name

    def edges(self, shape: str, count: int) -> list[Condition]:
        """Conditions between pairs of sources; none for the shape "cross"."""
        chain = [(source - 1, source) for source in range(1, count)]
        star = [(0, source) for source in range(1, count)]
        if shape == "one":
            return [self.equal(*pair, "k") for pair in self._choices.pick([chain, star])]
        if shape == "chain":
            return [self.equal(*pair, KEYS[position % 3]) for position, pair in enumerate(chain)]
        if shape == "star":
            return [self.equal(*pair, KEYS[position % 3]) for position, pair in enumerate(star)]
        if shape == "cycle":
            closing = [self.equal(0, count - 1, "m")] if count > 2 else []
            return [self.equal(*pair, KEYS[position % 2]) for position, pair in enumerate(chain)] + closing
        if shape == "several":
            return [self.equal(*pair, key) for pair in chain for key in ("k", "l")]
        if shape == "theta":
            return [self.near(pair) if self._choices.once_in(3) else self._about_two(pair) for pair in chain]
        if shape == "mixed":
            return [edge for source in range(1, count) for edge in self._any_edge(source)]
        return []

    def _any_edge(self, source: int) -> list[Condition]:
        """A condition of any kind between a source and one before it, or no condition."""
        pair = [self._choices.integer(0, source - 1), source]
        kind = self._choices.integer(0, 5)
        if kind <= 2:
            return [self.equal(pair[0], pair[1], self._choices.pick(KEYS))]
        if kind == 3:
            return [self.fill(self._choices.pick(EQUAL_EXPRESSIONS), pair)]
        return [self._about_two(pair)] if kind == 4 else []

    def _about_two(self, pair: Sequence[int]) -> Condition:
        return self.fill(self._choices.pick(ABOUT_TWO), pair)

    def near(self, pair: Sequence[int]) -> Condition:
        """A band between two key columns of one name, if a key has a type with differences; else another condition."""
        keys = [key for key in KEYS if self._families[key] in NEAR]
        if not keys:
            return self._about_two(pair)
        key = self._choices.pick(keys)
        template = self._choices.pick(NEAR[self._families[key]])
        return self.fill(template.replace(".k", f".{key}"), pair)

    def equal(self, left: int, right: int, key: str) -> Condition:
        """An equality of two key columns: usually of one name, sometimes two different keys of the same family."""
        others = [other for other in KEYS if self._families[other] == self._families[key] and other != key]
        other = self._choices.pick(others) if others and self._choices.once_in(4) else key
        return Condition(frozenset({left, right}), f"{self._name(left, key)} = {self._name(right, other)}")

    def fill(self, template: str, sources: Sequence[int]) -> Condition:
        """The condition of a template for these sources, in brackets if it has an OR."""
        source_of = dict(zip("xyz", sources, strict=False))
        text = _COLUMN.sub(lambda match: self._name(source_of[match[1]], match[2]), template)
        return Condition(frozenset(sources), f"({text})" if " OR " in text else text)

    def some(self, count: int, wanted: int) -> list[int]:
        """The numbers of `wanted` of the sources, in random order."""
        return self._choices.shuffle(range(count))[:wanted]
