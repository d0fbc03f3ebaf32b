"""Planning: the time and memory of the exact planner, and the quality of the other planners.

Run by `python -m benchmarks.plans`, on one thread. Times are the best of several runs after the distances of the
network are computed. Quality is the cost of all queries of a workload, as a multiple of the exact planner's cost.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from braid.model.network.generators import random_geometric, transit_stub, transit_stub_128
from braid.model.network.topology import Topology
from braid.planning.planners import PLANNERS
from braid.workloads.synthetic import synthetic
from braid.workloads.workload import Workload

RESULTS = Path(__file__).parent.parent / "docs" / "results" / "plans.md"


@dataclass(frozen=True)
class Goal:
    """A workload and the most seconds that planning it should take."""

    name: str
    seconds: float
    make: Callable[[], Workload]
    repeat: int = 7


def one_query(topology: Topology, streams: int) -> Workload:
    return synthetic(topology, streams=streams, queries=1, joins=(streams - 1, streams - 1), seed=3)


def network_1024() -> Topology:
    return transit_stub(transit_nodes=16, stubs_per_transit=7, stub_nodes=9, seed=2)


def goals() -> list[Goal]:
    return [
        Goal("5 streams, 128 sites", 0.005, lambda: one_query(transit_stub_128(), 5), 30),
        Goal("8 streams, 128 sites", 0.030, lambda: one_query(transit_stub_128(), 8), 20),
        Goal("5 streams, 1,024 sites (transit-stub)", 0.100, lambda: one_query(network_1024(), 5), 10),
        Goal("5 streams, 1,024 sites (geometric)", 0.100, lambda: one_query(random_geometric(1_024), 5), 10),
        Goal("5 streams, 100,000 sites, sparse", 10.0, lambda: one_query(random_geometric(100_000), 5), 2),
        Goal(
            "300 queries one after the other, 1,024 sites, with reuse",
            60.0,
            lambda: synthetic(random_geometric(1_024), streams=20, queries=300, joins=(2, 4), seed=5),
            1,
        ),
    ]


def measure(goal: Goal) -> tuple[float, float]:
    """The least seconds to plan the workload, and the total cost of its deployments."""
    workload = goal.make()
    # A first run, not measured, computes distances and compiles kernels.
    next(workload.solve("exact"))
    best, cost = float("inf"), 0.0
    for _ in range(goal.repeat):
        start = time.perf_counter()
        deployments = list(workload.solve("exact"))
        best = min(best, time.perf_counter() - start)
        cost = sum(deployment.cost for deployment in deployments)
    return best, cost


def quality(console: Console) -> list[str]:
    """The lines of the table of planners."""
    workload = synthetic(transit_stub_128(), streams=10, queries=60, joins=(2, 4), seed=9)
    exact_cost = sum(deployment.cost for deployment in workload.solve("exact", reuse=False))
    lines = []
    for name in sorted(PLANNERS):
        if name in ("exhaustive", "optimal"):
            continue
        # A first run, not measured, makes the hierarchies and cost spaces of the network.
        next(workload.solve(name, reuse=False))
        with console.status(name):
            start = time.perf_counter()
            deployments = list(workload.solve(name, reuse=False))
            elapsed = time.perf_counter() - start
        cost = sum(deployment.cost for deployment in deployments) / exact_cost
        lines.append(f"| {name} | {cost:.3f} | {elapsed / len(deployments) * 1e3:.1f} |")
    return lines


def main() -> None:
    console = Console()
    words_of_names = sys.argv[1:]
    lines = ["| what | goal | time |", "|---|---|---|"]
    for goal in goals():
        if words_of_names and not any(word in goal.name for word in words_of_names):
            continue
        with console.status(goal.name):
            seconds, cost = measure(goal)
        console.print(f"{goal.name}: {seconds * 1e3:,.1f} ms (goal {goal.seconds * 1e3:,.0f} ms), cost {cost:,.6g}")
        lines.append(f"| {goal.name} | {goal.seconds * 1e3:,.0f} ms | {seconds * 1e3:,.1f} ms |")
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    lines += ["", f"Peak memory of the whole run: {memory:.2f} GB (goal: under 2 GB)."]
    if words_of_names:
        return
    lines += ["", "60 queries of 3 to 5 streams on 128 sites, each planned for itself:", ""]
    lines += ["| planner | cost, exact = 1 | ms per query |", "|---|---|---|", *quality(console)]
    text = "\n".join(lines)
    console.print(text, markup=False)
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(f"# Planning (`python -m benchmarks.plans`), one thread\n\n{text}\n")


if __name__ == "__main__":
    main()
