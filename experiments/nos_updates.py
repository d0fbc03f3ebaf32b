"""Table 3 of the NOS paper: the messages of a plan update at a center and among nodes; and the costs of figure 4."""

from __future__ import annotations

from collections.abc import Iterator

from matplotlib.axes import Axes

from braid.model.expressions.expression import Call, Column
from braid.model.network.generators import fully_connected
from braid.model.predicate import Predicate
from braid.model.query import Query, Source, Star
from braid.model.statistics import Statistics, Subject
from braid.model.window import Range
from braid.planning.cost.models import UnitTime
from braid.planning.order.greedy import Greedy
from braid.planning.order.plan_update import Changed, update_among_nodes, update_centrally
from braid.planning.problem import Problem
from braid.planning.solution.sequenced import SequencedSolution
from experiments.report import Report

LOW, USUAL, HIGH = 50.0, 100.0, 200.0
TABLE_3 = {
    (4, "up", "CNU"): (4, 34, 24),
    (4, "up", "DNU"): (65, 61, 44),
    (4, "down", "CNU"): (4, 27, 24),
    (4, "down", "DNU"): (59, 55, 32),
    (8, "up", "CNU"): (8, 131, 112),
    (8, "up", "DNU"): (561, 181, 152),
    (8, "down", "CNU"): (8, 115, 112),
    (8, "down", "DNU"): (283, 83, 48),
}


def problem_of(streams: int, rate: float) -> Problem:
    """The join of the paper, with the first stream at a given rate."""
    names = [f"S{number}" for number in range(1, streams + 1)]
    keys = [Column(name, "J") for name in names]
    predicates = tuple(Predicate(Call("equal", (keys[0], key))) for key in keys[1:])
    query = Query(
        f"join of {streams} streams",
        tuple(Source(name, name, Range(500_000)) for name in names),
        (Star(None),),
        predicates,
    )
    equal: dict[Subject, float] = {frozenset({left, right}): 0.01 for left in names for right in names if left < right}
    statistics = Statistics(
        rates={name: rate if name == "S1" else USUAL for name in names},
        sizes=dict.fromkeys(names, 150.0),
        selectivities=equal,
        sites={name: f"n{number}" for number, name in enumerate(names)},
    )
    topology = fully_connected(streams, latency=0.005, bandwidth=1024 * 1000 / 8)
    return Problem.of(query, statistics, topology, UnitTime(), sink="n0")


def run(report: Report) -> None:
    rows, curves, same = [], {}, True
    for streams in report.progress((4, 8), "joins"):
        for direction, before, after in (("up", LOW, HIGH), ("down", HIGH, LOW)):
            old = Greedy().plan(problem_of(streams, before)).heads
            new = problem_of(streams, after)
            central, distributed = update_centrally(new, old), update_among_nodes(new, old, 0)
            same &= central.plans == distributed.plans
            for name, change in (("CNU", central), ("DNU", distributed)):
                rows.append((streams, direction, name, *_beside(change, TABLE_3[streams, direction, name])))
        curves[streams] = list(_costs(streams))

    def draw(axes: list[Axes]) -> None:
        for one, (streams, points) in zip(axes, curves.items(), strict=True):
            one.step(range(len(points)), [point[1] for point in points], where="post", label="fixed plan")
            one.step(range(len(points)), [point[2] for point in points], where="post", label="adapted plan")
            one.set(title=f"{streams}-way join", xlabel="changes of the rate", ylabel="unit-time cost, s/s")

    report.table(
        ["streams", "rate goes", "update", "modification (paper)", "migration (paper)", "synchronization (paper)"], rows
    )
    report.table(
        ["streams", "rate of S1", "cost of the fixed plan", "cost of the adapted plan"],
        [(streams, *point) for streams, points in curves.items() for point in points[:2]],
    )
    report.table(
        ["", "paper", "ours"],
        [("center and nodes arrive at the same plan", "always", "yes" if same else "no")],
    )
    report.say(
        "The messages of the center are those of the paper: one report, a new operator set for every other node, and "
        "two phases of all-to-all synchronization. Among nodes, we count one message to each later node of a "
        "sequence, one to the cheapest node, two to exchange operator sets, and one for each neighbour and each "
        "change of placement. The two nodes of a swap synchronize with four messages, as the paper's multiples of "
        "four suggest. The number of swaps depends on how ties between equal streams are broken, which the paper does "
        "not say. So our numbers agree with the paper's in size only. The rest of the migration messages are windows "
        "to copy, which depend on the plans in the same way."
    )
    report.plot(draw, 2)


def _beside(change: Changed, paper: tuple[int, int, int]) -> Iterator[str]:
    """Each figure of ours, with the paper's in parentheses."""
    ours = change.modification, change.migration, change.synchronization
    return (f"{our_figure} ({paper_figure})" for our_figure, paper_figure in zip(ours, paper, strict=True))


def _costs(streams: int) -> Iterator[tuple[float, float, float]]:
    """As the rate goes up and down: the rate, the cost of the first plan, and the cost of the plan for that rate."""
    first = Greedy().plan(problem_of(streams, LOW)).heads
    for rate in (LOW, HIGH, LOW, HIGH, LOW):
        problem = problem_of(streams, rate)
        fixed = SequencedSolution(problem, first, 1)
        yield rate, fixed.bill.total, Greedy().plan(problem).bill.total
