"""Queries that reuse derived streams of others get their own results: random queries in turn, against the oracle."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

import pytest

import braid
from braid.model.advertisement import Advertisement
from braid.model.statistics import Statistics
from braid.model.tree import Reused, leaves
from braid.testing.interpreter import Interpreter
from braid.testing.networks import NINE_SITES
from braid.testing.three_streams import expected_results, three_streams

PLANNERS = ("exact", "exhaustive", "left_deep", "top_down", "bottom_up", "npc", "phased", "in_network", "relaxation")
WINDOWS = ("RANGE 8 SECONDS", "RANGE 5 SECONDS", "RANGE 3 SECONDS", "UNBOUNDED", "NOW")
COMPARISONS = ("<", "<=", "=", ">", ">=")


@dataclass(frozen=True)
class RandomQuery:
    """A query: the stream and the window of each alias, and its conditions, each with the aliases it reads."""

    sources: dict[str, tuple[str, str]]
    conditions: tuple[tuple[frozenset[str], str], ...]

    @property
    def text(self) -> str:
        outputs = ", ".join(f"{alias}.id AS {alias}_id" for alias in self.sources)
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


def count_reuses(seed: int) -> int:
    """Plan five queries in turn, most of them much like the one before, and check the results of each.

    Returns how many of them reuse a derived stream of the ones before.
    """
    random, rows = Random(seed), three_streams(seed)
    sites = {stream: f"n{random.randrange(9)}" for stream in "abc"}
    advertised: list[Advertisement] = []
    interpreters: list[Interpreter] = []
    asked, reuses = random_query(random), 0
    for _ in range(5):
        query = braid.parse(asked.text)
        known = Statistics(
            rates=dict.fromkeys("abc", 10),
            lengths=dict.fromkeys(query.aliases, 8),
            selectivities={str(predicate): random.choice([0.5, 0.1, 0.01]) for predicate in query.predicates},
            sites=sites,
        )
        planner, sink = random.choice(PLANNERS), random.choice([None, "n1", "n4"])
        deployment = braid.plan(query, known, NINE_SITES, planner=planner, sink=sink, advertised=advertised)
        interpreter = Interpreter(deployment, rows, interpreters[:])
        assert interpreter.results() == expected_results(asked.text, seed), (
            f"{planner}: {asked}\n{deployment.explain()}"
        )
        interpreters.append(interpreter)
        reuses += any(isinstance(leaf, Reused) for leaf in leaves(deployment.tree))
        advertised += deployment.advertised
        asked = random_query(random) if random.random() < 0.2 else asked.changed(random)
    return reuses


def test_results_do_not_depend_on_reuse() -> None:
    assert sum(map(count_reuses, range(20))) > 20


@pytest.mark.sweep
@pytest.mark.parametrize("seed", range(100, 600))
def test_results_do_not_depend_on_reuse_sweep(seed: int) -> None:
    count_reuses(seed)
