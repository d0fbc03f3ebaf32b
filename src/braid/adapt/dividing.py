"""Plans with parts under given statistics: what they cost, and which parts would cost least.

Keys are divided as in the PMJoin paper: each frequent key is a part of its own, or cells are grouped by k-means on rank
vectors, so that the streams of a group have a similar order by their number of rows. The paper's FINDPARTITION chooses
which join key to divide.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np

from braid.adapt.cells import Cells, Flags, Floats, Labels, ValueCells
from braid.adapt.costing import COUNTING, Costing
from braid.model.graph import AttributeClass
from braid.model.plan import Plan
from braid.model.query import Query
from braid.model.statistics import Statistics
from braid.planning.cost.models import EngineTime
from braid.planning.order.exact import Exact
from braid.planning.partition.find import choose_partitions, find_partitions
from braid.planning.partition.functions import by_rate

GROUPS = 3
"""The number of groups that k-means makes of the cells. Groups with the same best order become one part."""

MOST_PARTS = 4
"""At most this many parts beside the rest. Each part is a lane in every engine, which costs a little in every batch."""

MOST_IN_TREES = 10
"""FINDPARTITION chooses the join key of queries with at most this many streams; with more, every key is compared."""


class Dividing:
    """The cost of plans with parts of one query, in seconds of work per second (see `Costing`)."""

    def __init__(
        self, query: Query, statistics: Statistics, cells: Sequence[Cells], model: EngineTime | None = None
    ) -> None:
        self._query = query
        self._statistics = statistics
        self._cells = cells
        self._model = model
        self.whole = Costing(query, statistics, model)
        self._costings: dict[tuple[int, bytes], Costing] = {}

    def cost(self, plan: Plan) -> float | None:
        """The cost of a plan; None if the cells do not tell the figures of its parts."""
        shares = self._shares(plan)
        if shares is None:
            return None
        return sum(costing.cost(part) for costing, part in shares)

    def head_cost(self, plan: Plan, head: str) -> float | None:
        """The cost of the probes by new rows of one head, without trees; None as for `cost`."""
        shares = self._shares(plan)
        if shares is None:
            return None
        return sum(costing.head_cost(part, head) for costing, part in shares)

    def transition(self, before: Plan, after: Plan) -> float:
        """The seconds of work that a change between two plans takes, if no row expires before it is needed."""
        old = dict(before.parts)
        shares = self._shares(after) or []
        partitions = (None, *after.partitions)
        return sum(
            costing.transition(before.whole if partition is None else old.get(partition, before.whole), plan)
            for partition, (costing, plan) in zip(partitions, shares, strict=True)
        )

    def best(self, like: Plan) -> Iterator[Plan]:
        """For each way to divide the keys, the cheapest plan with parts of the same form as the plan `like`."""
        for cells in self._cells:
            if cells.are_different and cells.attribute_class in self._divided:
                plan = self._plan(cells, _groups(cells, self._populations(cells)), like)
                if 0 < len(plan.parts) <= MOST_PARTS:
                    yield plan

    @cached_property
    def _divided(self) -> tuple[AttributeClass, ...]:
        """The join keys to divide: those that FINDPARTITION chooses, of the joins with the most input; else all."""
        classes, problem = self._query.graph.classes, self.whole.problem
        if len(classes) < 2 or len(problem.streams) > MOST_IN_TREES:
            return classes
        chosen = choose_partitions(problem, find_partitions(problem, Exact().plan(problem).tree))
        return tuple(dict.fromkeys(join.attribute for join in chosen)) or classes

    def _plan(self, cells: Cells, labels: Labels, like: Plan) -> Plan:
        """The plan with the cheapest order for each group of cells. Groups with the same order are one part."""
        plans = {label: self._costing(cells, labels == label).best(like.whole) for label in np.unique(labels)}
        return cells.divide([plans[label] for label in labels])

    def _populations(self, cells: Cells) -> Floats:
        """The rows of each stream in the windows, by cell."""
        rows = [self._statistics.populations.get(stream, 0.0) for stream in cells.streams]
        populations: Floats = cells.shares * np.array(rows)[:, None]
        return populations

    def _costing(self, cells: Cells, chosen: Flags) -> Costing:
        key = id(cells), chosen.tobytes()
        if key not in self._costings:
            self._costings[key] = Costing(self._query, cells.statistics(self._statistics, chosen), self._model)
        return self._costings[key]

    def _shares(self, plan: Plan) -> list[tuple[Costing, Plan]] | None:
        """The plan of the rest, then that of each part, with the costings of their keys; None if no cells tell them."""
        if not plan.parts:
            return [(self.whole, plan)]
        for cells in self._cells:
            if cells.attribute_class != plan.partitions[0].attribute_class:
                continue
            chosen = [cells.find(partition) for partition in plan.partitions]
            known = [flags for flags in chosen if flags is not None]
            if len(known) == len(chosen):
                rest: Flags = ~np.logical_or.reduce(known)
                plans = [plan.whole, *(part for _, part in plan.parts)]
                return [(self._costing(cells, flags), part) for flags, part in zip([rest, *known], plans, strict=True)]
        return None


def work_per_row(plan: Plan, heads: Sequence[str], statistics: Statistics, cells: Sequence[Cells]) -> float | None:
    """The probes and matches for each new row of some heads. A plan with trees counts the rows of all streams as heads.

    None if the cells do not tell the figures of the plan's parts.
    """
    dividing = Dividing(plan.query, statistics, cells, COUNTING)
    if plan.keeps_combinations:
        work, heads = dividing.cost(plan), plan.query.aliases
    else:
        costs = [dividing.head_cost(plan, head) for head in heads]
        known = [cost for cost in costs if cost is not None]
        work = sum(known) if len(known) == len(costs) else None
    rate = sum(statistics.rates[head] for head in heads)
    return None if work is None else work / rate if rate else 0.0


def _groups(cells: Cells, populations: Floats) -> Labels:
    """The group of each cell. Every frequent key is a group of its own; other cells are grouped by k-means."""
    if isinstance(cells, ValueCells):
        return np.arange(len(cells.distinct))
    return by_rate(populations / cells.distinct, GROUPS)
