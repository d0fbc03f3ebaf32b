"""Networks, and queries over them, that several tests of planners share."""

from __future__ import annotations

from itertools import combinations

from braid.language import parse
from braid.model.network.generators import fully_connected, random_geometric
from braid.model.network.topology import Topology
from braid.model.statistics import Statistics
from braid.planning.cost.models import MODELS, CostModel
from braid.planning.problem import Problem

NINE_SITES = random_geometric(9, seed=2)
"""A random network of the sites n0 to n8."""

TWO_SIDES = Topology.from_links(
    {(f"{side}0", f"{side}{leaf}"): 1.0 for side in "lr" for leaf in (1, 2)} | {("l0", "r0"): 100.0}
)
"""Two clusters of three sites, l0 to l2 and r0 to r2, with a long link between l0 and r0."""

CHAIN = "SELECT * FROM a [RANGE 10 SECONDS], b [RANGE 10 SECONDS], c [RANGE 10 SECONDS] WHERE a.k = b.k AND b.j = c.j"
"""A join of three streams in a chain, to plan on the two sides."""


def one_key_problem(rates: list[float], *, model: str | CostModel = "unit_time", selectivity: float = 0.01) -> Problem:
    """The join of the NOS paper: streams S1, S2, .. on one key, each at its own site, with the sink at another site.

    `rates` are those of the streams, and `selectivity` is that of each equality.
    """
    names = [f"S{stream}" for stream in range(1, len(rates) + 1)]
    windows = ", ".join(f"{name} [RANGE 500 MILLISECONDS]" for name in names)
    equalities = " AND ".join(f"{names[0]}.J = {name}.J" for name in names[1:])
    statistics = Statistics(
        rates=dict(zip(names, rates, strict=True)),
        sizes=dict.fromkeys(names, 150.0),
        selectivities={f"{left}.J = {right}.J": selectivity for left, right in combinations(sorted(names), 2)},
        sites={name: f"n{stream}" for stream, name in enumerate(names, 1)},
    )
    topology = fully_connected(len(rates) + 1, latency=0.005, bandwidth=128_000)
    cost_model = MODELS[model] if isinstance(model, str) else model
    return Problem.of(parse(f"SELECT * FROM {windows} WHERE {equalities}"), statistics, topology, cost_model, sink="n0")
