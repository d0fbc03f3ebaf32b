"""Figures 19 and 20 of the D-CAPE paper: the connections of Query Plan 2 under Round Robin and Grouping."""

from __future__ import annotations

from collections import Counter

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from braid.planning.place.distribution import (
    PATTERNS,
    Distribution,
    GraphOperator,
    OperatorGraph,
    connections,
    connections_of,
    grouping,
    pieces,
)
from experiments.report import Cell, Report

PROCESSORS = 3


def query_plan_2() -> OperatorGraph:
    """Query Plan 2 of the paper: 20 operators, 5 of them joins, nine levels deep and six operators wide.

    The paper only draws the plan; this one has all sizes that the text of the paper gives.
    """
    leaves = [GraphOperator(f"select{number}", (f"stream{number}",), "select") for number in range(6)]
    second_select = [GraphOperator("select6", ("select0",), "select")]
    joins = [
        GraphOperator("join0", ("select6", "select1")),
        GraphOperator("join1", ("select2", "select3")),
        GraphOperator("join2", ("select4", "select5")),
    ]
    projects = [GraphOperator(f"project{number}", (f"join{number}",), "project") for number in range(3)]
    filters = [GraphOperator(f"filter{number}", (f"project{number}",), "select") for number in range(3)]
    top = [
        GraphOperator("join3", ("filter0", "filter1")),
        GraphOperator("project3", ("join3",), "project"),
        GraphOperator("join4", ("project3", "filter2")),
        GraphOperator("project4", ("join4",), "project"),
    ]
    return OperatorGraph((*leaves, *second_select, *joins, *projects, *filters, *top))


def run(report: Report) -> None:
    graph = query_plan_2()
    orders = {
        "round_robin, level by level from the leaves": [operator.name for operator in graph.operators],
        "round_robin, level by level from the root": ["project4", *graph.below("project4")],
        "round_robin, inputs before what reads them": _depth_first(graph, "project4"),
    }
    placements: dict[str, Distribution] = {
        name: {(0, operator): number % PROCESSORS for number, operator in enumerate(order)}
        for name, order in orders.items()
    }
    placements["grouping"] = grouping([graph], PROCESSORS)
    rows = [(name, *_measured(graph, placed)) for name, placed in placements.items()]
    by_processors = {
        name: [connections([graph], pattern([graph], count)) for count in range(1, 7)]
        for name, pattern in PATTERNS.items()
    }

    def draw(axes: list[Axes]) -> None:
        for name, counts in by_processors.items():
            axes[0].plot(range(1, 7), counts, marker="o", label=name)
        axes[0].set(xlabel="processors", ylabel="network connections", title="Query Plan 2: 20 operators, 6 streams")
        axes[0].set_ylim(bottom=0)
        axes[0].yaxis.set_major_locator(MaxNLocator(integer=True))

    report.table(
        [
            "pattern",
            "connections",
            "paper",
            "pieces",
            "paper",
            "most connections of a processor",
            "most joins",
            "paper",
        ],
        [_with_paper(row) for row in rows],
    )
    report.say(
        "A connection is a stream from outside, or an edge between two processors. With six streams and three "
        "processors, the paper's 8 is the lowest possible number, and its 17 means that the plan is cut into 12 "
        "pieces. Grouping gives the paper's number. Round Robin depends on the shape of the plan and on the order in "
        "which it takes operators, and the paper gives neither. From the root down, it is within one connection of "
        "the paper's number, and also puts three joins on one processor."
    )
    report.plot(draw)


def _measured(graph: OperatorGraph, placed: Distribution) -> tuple[int, int, int, int]:
    """Connections, pieces, the most connections of a processor, and the most joins on a processor."""
    joins = Counter(placed[0, operator.name] for operator in graph.operators if operator.kind == "join")
    busiest = max(connections_of([graph], placed).values())
    return connections([graph], placed), pieces([graph], placed), busiest, max(joins.values())


def _with_paper(row: tuple[str, int, int, int, int]) -> tuple[Cell, ...]:
    pattern, count, cut, busiest, joins = row
    paper = (8, None, None) if pattern == "grouping" else (17, 12, 3)
    return pattern, count, paper[0], cut, paper[1], busiest, joins, paper[2]


def _depth_first(graph: OperatorGraph, name: str) -> list[str]:
    """An operator and all operators it reads, each after its inputs."""
    order: list[str] = []
    for read in graph.by_name[name].inputs:
        if read in graph.by_name:
            order += _depth_first(graph, read)
    return [*order, name]
