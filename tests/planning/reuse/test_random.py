"""Whoever uses what others make gets its own results: random queries, one after the other, against the oracle."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

import braid
from braid.model.advertisement import Advertisement
from braid.model.statistics import Statistics
from braid.model.tree import Reused, leaves
from braid.testing.interpreter import Interpreter
from tests.planning.lowering.test_tree import NETWORK, expected, streams

PLANNERS = ("exact", "exhaustive", "left_deep", "top_down", "bottom_up", "npc", "phased", "in_network", "relaxation")
WINDOWS = ("RANGE 8 SECONDS", "RANGE 5 SECONDS", "RANGE 3 SECONDS", "UNBOUNDED", "NOW")
COMPARISONS = ("<", "<=", "=", ">", ">=")


@dataclass(frozen=True)
class Asked:
    """A query: streams and windows by name, and conditions by the names they are on."""

    sources: dict[str, tuple[str, str]]
    conditions: tuple[tuple[frozenset[str], str], ...]

    @property
    def text(self) -> str:
        shown = ", ".join(f"{name}.id AS {name}_id" for name in self.sources)
        sources = ", ".join(f"{stream} [{window}] AS {name}" for name, (stream, window) in self.sources.items())
        conditions = " AND ".join(text for _, text in self.conditions)
        return f"SELECT {shown} FROM {sources} WHERE {conditions or '1 = 1'}"

    def changed(self, random: Random) -> Asked:
        """The same, with another condition or window, without a stream, or as it is."""
        change, name = random.randrange(4), random.choice(list(self.sources))
        if change == 0:
            return replace(self, conditions=(*self.conditions, one_more(list(self.sources), random)))
        if change == 1:
            other = self.sources[name][0], random.choice(WINDOWS)
            return replace(self, sources={**self.sources, name: other})
        if change == 2 and len(self.sources) > 2:
            sources = {alias: source for alias, source in self.sources.items() if alias != name}
            return Asked(sources, tuple(found for found in self.conditions if name not in found[0]))
        return self


def asked(random: Random) -> Asked:
    """A query over two or three streams, some of them perhaps the same, by any names."""
    count = random.choice([2, 3, 3])
    names = random.sample("abcxyz", count)
    given = random.choices("abc", k=count) if random.random() < 0.4 else random.sample("abc", count)
    conditions = [one_more(names, random) for _ in range(random.choice([0, 0, 1, 2]))]
    for place in range(1, count):
        column, other = random.choice("kkj"), names[random.randrange(place)]
        column_there = random.choice("kjv") if random.random() < 0.2 else column
        text = f"{other}.{column} = {names[place]}.{column_there}"
        conditions.append((frozenset({other, names[place]}), text))
    random.shuffle(conditions)
    return Asked(
        {name: (stream, random.choice(WINDOWS)) for name, stream in zip(names, given, strict=True)}, tuple(conditions)
    )


def one_more(names: list[str], random: Random) -> tuple[frozenset[str], str]:
    one, other = random.sample(names, 2)
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


def reuses(seed: int) -> int:
    """How often queries have used what those before them have made; each may be much like the one before."""
    random, rows = Random(seed), streams(seed)
    sites = {name: f"n{random.randrange(9)}" for name in "abc"}
    advertised: list[Advertisement] = []
    made: list[Interpreter] = []
    wanted, found = asked(random), 0
    for _ in range(5):
        query = braid.parse(wanted.text)
        known = Statistics(
            rates=dict.fromkeys("abc", 10),
            lengths=dict.fromkeys(query.aliases, 8),
            selectivities={str(predicate): random.choice([0.5, 0.1, 0.01]) for predicate in query.predicates},
            sites=sites,
        )
        planner, sink = random.choice(PLANNERS), random.choice([None, "n1", "n4"])
        deployment = braid.plan(query, known, NETWORK, planner=planner, sink=sink, advertised=advertised)
        made.append(Interpreter(deployment, rows, made[:]))
        assert made[-1].results() == expected(wanted.text, seed), f"{planner}: {wanted}\n{deployment.explain()}"
        found += any(isinstance(leaf, Reused) for leaf in leaves(deployment.tree))
        advertised += deployment.advertised
        wanted = asked(random) if random.random() < 0.2 else wanted.changed(random)
    return found


def test_results_do_not_depend_on_what_is_reused() -> None:
    assert sum(map(reuses, range(20))) > 20
