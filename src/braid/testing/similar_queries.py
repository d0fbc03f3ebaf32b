"""Random queries over the three streams a, b and c, and queries much like them: for tests of reuse."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random

WINDOWS = ("RANGE 8 SECONDS", "RANGE 5 SECONDS", "RANGE 3 SECONDS", "UNBOUNDED", "NOW")
COMPARISONS = ("<", "<=", "=", ">", ">=")


@dataclass(frozen=True)
class RandomQuery:
    """A query: the stream and the window of each alias, and its conditions, each with the aliases it reads."""

    sources: dict[str, tuple[str, str]]
    conditions: tuple[tuple[frozenset[str], str], ...]

    @property
    def text(self) -> str:
        return self.selecting("id")

    def selecting(self, *columns: str) -> str:
        """The query with these columns of each stream."""
        outputs = ", ".join(f"{alias}.{column} AS {alias}_{column}" for alias in self.sources for column in columns)
        sources = ", ".join(f"{stream} [{window}] AS {alias}" for alias, (stream, window) in self.sources.items())
        conditions = " AND ".join(text for _, text in self.conditions)
        return f"SELECT {outputs} FROM {sources} WHERE {conditions or '1 = 1'}"

    def changed(self, random: Random) -> RandomQuery:
        """The query with one more condition, with another window, without one of its streams, or unchanged."""
        change, alias = random.randrange(4), random.choice(list(self.sources))
        if change == 0:
            return replace(self, conditions=(*self.conditions, random_condition(list(self.sources), random)))
        if change == 1:
            source = self.sources[alias][0], random.choice(WINDOWS)
            return replace(self, sources={**self.sources, alias: source})
        if change == 2 and len(self.sources) > 2:
            sources = {other: source for other, source in self.sources.items() if other != alias}
            return RandomQuery(sources, tuple(entry for entry in self.conditions if alias not in entry[0]))
        return self

    def within(self, random: Random, windows: Sequence[str]) -> RandomQuery:
        """The query with some of these windows."""
        sources = {alias: (stream, random.choice(windows)) for alias, (stream, _) in self.sources.items()}
        return replace(self, sources=sources)

    def filtered(self, random: Random) -> RandomQuery:
        """The query with a filter on at least one of its streams."""
        filters = [_random_filter(alias, random) for alias in self.sources if random.random() < 0.6]
        return replace(
            self, conditions=(*self.conditions, *(filters or [_random_filter(next(iter(self.sources)), random)]))
        )

    def weakened(self, random: Random) -> RandomQuery:
        """The query with another filter, or none, instead of one of its filters."""
        filters = [condition for condition in self.conditions if len(condition[0]) == 1]
        if not filters:
            return self
        left_out = random.choice(filters)
        others = tuple(condition for condition in self.conditions if condition != left_out)
        (alias,) = left_out[0]
        return replace(self, conditions=(*others, _random_filter(alias, random)) if random.random() < 0.5 else others)


def _random_filter(alias: str, random: Random) -> tuple[frozenset[str], str]:
    return frozenset({alias}), f"{alias}.v {random.choice(COMPARISONS)} {random.randrange(6)}"


def random_query(random: Random) -> RandomQuery:
    """A query over two or three streams with random aliases, where a stream may occur more than once."""
    count = random.choice([2, 3, 3])
    aliases = random.sample("abcxyz", count)
    streams = random.choices("abc", k=count) if random.random() < 0.4 else random.sample("abc", count)
    conditions = [random_condition(aliases, random) for _ in range(random.choice([0, 0, 1, 2]))]
    for position in range(1, count):
        column, left = random.choice("kkj"), aliases[random.randrange(position)]
        right_column = random.choice("kjv") if random.random() < 0.2 else column
        right = aliases[position]
        conditions.append((frozenset({left, right}), f"{left}.{column} = {right}.{right_column}"))
    random.shuffle(conditions)
    sources = {alias: (stream, random.choice(WINDOWS)) for alias, stream in zip(aliases, streams, strict=True)}
    return RandomQuery(sources, tuple(conditions))


def random_condition(aliases: list[str], random: Random) -> tuple[frozenset[str], str]:
    """A condition on one alias, on two, or on none, with the aliases it reads."""
    one, other = random.sample(aliases, 2)
    comparison, constant = random.choice(COMPARISONS), random.randrange(5)
    return random.choice(
        [
            (frozenset({one}), f"{one}.v {comparison} {constant}"),
            (frozenset({one}), f"{constant} {comparison} {one}.v"),
            (frozenset({one, other}), f"{one}.v {comparison} {other}.v"),
            (frozenset({one, other}), f"{one}.k = {other}.k"),
            (frozenset(), random.choice(["1 = 0", "1 = 1", "1 = 1"])),
        ]
    )
