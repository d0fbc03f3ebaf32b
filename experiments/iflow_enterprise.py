"""Figures 13 and 14: cost and number of operators on the airline's workload of 300 queries."""

from __future__ import annotations

from itertools import accumulate

from matplotlib.axes import Axes

from braid.model.network.generators import transit_stub_128
from braid.model.tree import Reused, leaves
from braid.planning.deployment import Deployment
from braid.workloads.airline import airline
from experiments.report import Report, percent
from experiments.sinks import found_below_the_top

PLANNERS = ("exact", "top_down", "npc", "bottom_up", "in_network", "relaxation")
FIXED = ("in_network", "relaxation")
PAPER_ABOVE = {"exact": 0.0, "top_down": 0.05, "npc": 0.06, "bottom_up": 0.36}
FEWER_JOINS = {"top_down": "81%", "bottom_up": "73%", "npc": "48%"}


def run(report: Report) -> None:
    workload = airline(transit_stub_128(seed=1), queries=300, seed=1)
    shared: dict[str, list[Deployment]] = {}
    phased: dict[str, list[Deployment]] = {}
    for planner in report.progress(PLANNERS, "planners"):
        # Planners with a fixed order reuse joins that their plan happens to share, but do not weaken filters.
        weaken = planner not in FIXED
        shared[planner] = list(workload.solve(planner, weaken=weaken))
        phased[planner] = list(workload.solve(planner, reuse=False))
    cost = {planner: sum(deployment.cost for deployment in runs) for planner, runs in shared.items()}
    alone = {planner: sum(deployment.cost for deployment in runs) for planner, runs in phased.items()}
    joins = {planner: sum(len(deployment.placement) for deployment in runs) for planner, runs in shared.items()}
    filters = {planner: sum(map(_filters, runs)) for planner, runs in shared.items()}

    def draw(axes: list[Axes]) -> None:
        for planner, runs in shared.items():
            axes[0].plot(range(1, 301), list(accumulate(deployment.cost for deployment in runs)), label=planner)
        axes[0].set(xlabel="queries", ylabel="network usage, cumulative", title="airline workload", yscale="log")
        positions = range(len(PLANNERS))
        axes[1].bar([position - 0.2 for position in positions], [joins[name] for name in PLANNERS], 0.4, label="joins")
        axes[1].bar(
            [position + 0.2 for position in positions], [filters[name] for name in PLANNERS], 0.4, label="filters"
        )
        axes[1].set_xticks(list(positions), PLANNERS, rotation=30)
        axes[1].set(title="operators deployed")

    report.table(
        ["planner", "cost", "above optimal", "paper", "cost without reuse", "joins", "filters"],
        [
            (
                planner,
                cost[planner],
                percent(cost[planner] / cost["exact"] - 1),
                percent(PAPER_ABOVE[planner]) if planner in PAPER_ABOVE else None,
                alone[planner],
                joins[planner],
                filters[planner],
            )
            for planner in PLANNERS
        ],
    )
    report.table(
        ["", "paper", "ours"],
        [
            *(
                (f"cost saved by {better} against {worse}", paper, f"{1 - cost[better] / cost[worse]:.0%}")
                for better, worse, paper in (
                    ("top_down", "in_network", "42%"),
                    ("bottom_up", "in_network", "25%"),
                    ("npc", "in_network", "41%"),
                    ("top_down", "relaxation", "96%"),
                    ("bottom_up", "relaxation", "93%"),
                    ("npc", "relaxation", "95%"),
                )
            ),
            *(
                (
                    f"fewer joins with {planner} than with in_network",
                    paper,
                    f"{1 - joins[planner] / joins['in_network']:.0%}",
                )
                for planner, paper in FEWER_JOINS.items()
            ),
            ("fewer joins with exact than with in_network", "-", f"{1 - joins['exact'] / joins['in_network']:.0%}"),
        ],
    )
    early = found_below_the_top(workload, 32)
    needed = [joins[planner] / joins["in_network"] for planner in PLANNERS if planner not in FIXED]
    worst = sum(map(_at_the_worst_site, phased["exact"])) / cost["exact"]
    report.say(
        "Four in five queries differ in one filter only, so to share a join, a planner must weaken that filter. "
        f"Planners that do so need {min(needed):.0%} to {max(needed):.0%} of the joins of planners that do not, much "
        "as in the paper. Optimal shares less than the others, because it also counts what the additional rows cost "
        f"within a cluster, on their way to the join. Top-Down, Bottom-Up and NPC give the same plans: only {early} of "
        "300 queries have two or more of their sources, but not all, in a cluster of their sink below the top. "
        "Top-Down and NPC are further from the optimum than in the paper. They decide to share by the distances "
        "between coordinators, which leave out the costs within a cluster. The paper's factor of 25 over Relaxation is "
        f"not reached. On this network, plans are that expensive ({worst:.0f} times the optimum) only if nearly all "
        "joins are at the worst of all sites and none is shared; our Relaxation finds sites near the sources."
    )
    report.plot(draw, 2)


def _at_the_worst_site(deployment: Deployment) -> float:
    """The cost of a query with all its joins at one site, at the most expensive site for that."""
    problem = deployment.solution.problem
    distances = problem.topology.distances()
    costs = sum(problem.volume(1 << stream) * distances[origin] for stream, origin in enumerate(problem.origins))
    assert problem.sink is not None
    return float((costs + problem.volume(problem.everything) * distances[:, problem.sink]).max())


def _filters(deployment: Deployment) -> int:
    """The number of filters: on the streams of a query, and on the derived streams it reuses."""
    graph = deployment.query.graph
    count = 0
    assert deployment.tree is not None
    for leaf in leaves(deployment.tree):
        if isinstance(leaf, Reused):
            count += len(deployment.solution.offer(leaf).match.remaining)  # type: ignore[attr-defined]
        else:
            count += len(graph.selections_of(leaf.stream))
    return count
