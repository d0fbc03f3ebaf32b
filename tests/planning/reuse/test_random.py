"""Queries that reuse derived streams of others get their own results: random queries in turn, against the oracle."""

from __future__ import annotations

from random import Random

import pytest

import braid
from braid.model.advertisement import Advertisement
from braid.model.statistics import Statistics
from braid.model.tree import Reused, leaves
from braid.testing.interpreter import Interpreter
from braid.testing.networks import NINE_SITES
from braid.testing.similar_queries import random_query
from braid.testing.three_streams import expected_results, three_streams

PLANNERS = ("exact", "exhaustive", "left_deep", "top_down", "bottom_up", "npc", "phased", "in_network", "relaxation")


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
