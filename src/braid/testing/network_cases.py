"""Random networks for generated cases: where streams start, who plans, and what the planner believes."""

from __future__ import annotations

import random
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import pyarrow as pa

from braid.language import parse
from braid.model.duration import duration_text
from braid.model.expressions.expression import Column
from braid.model.network.generators import random_geometric
from braid.model.network.topology import Topology
from braid.model.query import Query
from braid.model.statistics import Statistics
from braid.model.stream import Stream
from braid.planning.planners import PLANNERS
from braid.testing.case import Case

MOST_SITES = 6

MOST_KEYS = 6
"""The most keys in a histogram."""


@dataclass(frozen=True)
class NetworkCase:
    """A case laid out over a network. `sites` goes by stream; the statistics are made up, and may be far off."""

    case: Case
    topology: Topology
    sites: Mapping[str, str]
    sink: str | None
    planner: str
    seed: int

    def statistics(self, query: Query) -> Statistics:
        """Random figures for everything a planner may ask for: a plan may be bad, never wrong."""
        chance = random.Random(self.seed)
        return Statistics(
            rates={alias: chance.uniform(1, 100) for alias in query.aliases},
            populations={alias: chance.uniform(1, 1_000) for alias in query.aliases},
            lengths=dict.fromkeys(query.aliases, 10.0),
            selectivities={
                **{frozenset(pair): chance.uniform(0.001, 1) for pair in combinations(query.aliases, 2)},
                **{str(predicate): chance.uniform(0.01, 1) for predicate in query.predicates},
            },
            sites={source.alias: self.sites[source.declared.name] for source in query.sources},
            histograms=self._histograms(query),
        )

    def _histograms(self, query: Query) -> dict[str, dict[Hashable, float]]:
        """Random rates of some keys of each stream, so that planners may divide them into parts."""
        chance = random.Random(f"histograms {self.seed}")
        histograms: dict[str, dict[Hashable, float]] = {}
        for attribute_class in query.graph.classes:
            for alias, key in attribute_class.members:
                if isinstance(key, Column) and not pa.types.is_nested(attribute_class.type):
                    values = self.case.streams[query.source(alias).declared.name].column(key.name).drop_null().unique()
                    chosen = chance.sample(values.to_pylist(), min(len(values), MOST_KEYS))
                    histograms[f"{alias}.{key.name}"] = {value: chance.paretovariate(1) for value in chosen}
        return histograms

    def options(self) -> dict[str, Any]:
        """The arguments of `braid.simulate` that lay it out."""
        case = self.case
        declared = {
            name: Stream(name, table.schema, case.time[name], case.lateness[name])
            for name, table in case.streams.items()
        }
        return {
            "sites": self.sites,
            "sink": self.sink,
            "planner": self.planner,
            "statistics": self.statistics(parse(case.text, declared)),
            "time": case.time,
            "lateness": {name: duration_text(length) for name, length in case.lateness.items()},
            "batch_rows": case.batch_rows,
            "seed": self.seed,
            "shards": 1 + self.seed % 4,
        }


def over_a_network(case: Case, seed: int) -> NetworkCase:
    """A case over the network of this number, always the same."""
    chance = random.Random(seed)
    topology = random_geometric(chance.randint(2, MOST_SITES), seed=seed)
    sites = {name: chance.choice(topology.names) for name in case.streams}
    sink = chance.choice([*topology.names, None])
    return NetworkCase(case, topology, sites, sink, chance.choice(sorted(PLANNERS)), seed)
