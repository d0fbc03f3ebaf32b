"""The cost of plans at one site under given statistics: of any plan, of the best plan, and of changing plans."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from braid.adapt.access_costs import AccessCosts
from braid.model.access import BAND, KEY, KEY_AND_BAND, SCAN, possible_paths
from braid.model.graph import AttributeClass
from braid.model.network.sites import Site
from braid.model.network.topology import Topology
from braid.model.plan import Plan
from braid.model.query import Query
from braid.model.statistics import Statistics
from braid.model.tree import JoinTree, Merge, merges, sequences
from braid.planning.cost.models import EngineTime, Probe
from braid.planning.order.best_sequences import BestSequences
from braid.planning.order.exact import Exact
from braid.planning.order.greedy import Greedy, candidate, cheapest
from braid.planning.problem import Problem
from braid.planning.solution.sequenced import Position

MOST_SEQUENCES = 6
"""The most streams whose probe sequences are all compared; for more streams they are chosen greedily."""

MOST_IN_TREES = 10
"""The most streams whose join trees are all compared; with more streams the tree is not changed."""

HERE = Topology((Site("here"),), ())
"""A topology of one site. It is shared, because a topology keeps its distances once they are computed."""

COUNTING = EngineTime(lookup=1.0, match=1.0, scan=1.0, update=0.0)
"""Counts work much as an engine does: the places that probes look into, and the rows that they look at."""

IndexKey = tuple[str, tuple[AttributeClass, ...], int | None]
"""An index of a window: its stream, and the attribute classes and the number of the band that it is on."""


class Costing:
    """The cost of plans of one query under one set of statistics, in seconds of work per second.

    All windows are at one site and nothing is shipped, so row sizes do not matter. If another figure is missing from
    the statistics, the constructor raises a `PlanningError`.
    """

    def __init__(self, query: Query, statistics: Statistics, model: EngineTime | None = None) -> None:
        self._model = model or EngineTime()
        at_one_site = replace(statistics, sites=dict.fromkeys(query.aliases, HERE.names[0]), sizes={})
        self.problem = Problem.of(query, at_one_site, HERE, self._model)
        self._access_costs = AccessCosts(self.problem, statistics, self._model)

    def cost(self, plan: Plan) -> float:
        """The cost of a plan: equations 1 to 3 of the NOS paper, summed over all heads and steps, or `tree_cost`."""
        if plan.tree is not None:
            return self.tree_cost(plan.tree)
        return sum(self.head_cost(plan, head) for head in plan.sequences)

    def head_cost(self, plan: Plan, head: str) -> float:
        """The cost of the probes by new rows of one head, without a tree."""
        return self._sequence_cost(head, plan.sequences[head]) + self._access_costs.of(plan, head)

    def best(self, like: Plan) -> Plan:
        """The cheapest plan of the same form, sequences or a tree, as far as it can be found quickly.

        The form is the user's choice: a tree keeps combinations, which takes memory.
        """
        streams = len(self.problem.streams)
        if like.tree is None:
            ordered = (BestSequences() if streams <= MOST_SEQUENCES else Greedy()).plan(self.problem).plan
            return self._access_costs.cheapest(ordered)
        if streams > MOST_IN_TREES:
            return like
        tree = Exact().plan(self.problem).tree
        return Plan(self.problem.query, sequences(tree, self.problem.query), tree)

    def out_of_order(self, plan: Plan, tolerance: float = 0.0) -> tuple[str, ...]:
        """The heads whose sequence violates the cost invariant (equation 4): a later stream would now cost less."""
        if plan.tree is not None:
            return ()
        return tuple(
            head for head, sequence in plan.sequences.items() if self._violates_order(head, sequence, tolerance)
        )

    def transition(self, before: Plan, after: Plan) -> float:
        """The seconds of work to change the plan, if no row expires before it is needed.

        The windows get the indexes that only the new sequences use, and the join states of the new tree are filled with
        the combinations that the old plan did not keep.
        """
        population, model = self.problem.figures.population, self._model
        new_indexes = _indexes(after) - _indexes(before)
        new_states = _join_states(after) - _join_states(before)
        rows = sum(population(self.problem.mask([stream])) for stream, *_ in new_indexes)
        combinations = sum(population(self.problem.mask(streams)) for streams in new_states)
        return rows * model.update + combinations * (model.match + model.update)

    def tree_cost(self, tree: JoinTree) -> float:
        """The cost of a tree that keeps the result of every inner join.

        Rates and populations follow from equations 2 and 3 of the PMJoin paper. Each result of a join is put into its
        join state, and probes the states of the other inputs one after the other. Putting rows into the windows of
        their streams is the same work under every plan, and is left out.
        """
        total = 0.0
        for merge in merges(tree):
            inputs = [self.problem.mask(subtree.streams) for subtree in merge.inputs]
            for head, subtree in zip(inputs, merge.inputs, strict=True):
                if isinstance(subtree, Merge):
                    total += self.problem.figures.rate(head) * self._model.update
                for cost in self._probes_of(head, inputs):
                    total += cost
        return total

    def _probes_of(self, head: int, inputs: list[int]) -> Iterator[float]:
        """The cost of each probe of the other inputs of a join by new rows of one input."""
        figures = self.problem.figures
        rate, mask = figures.rate(head), head
        for other in inputs:
            if other == head:
                continue
            population = figures.population(head)
            matches = figures.rate(head) * figures.population(mask | other) / population if population else 0.0
            keyed = self.problem.keyed(mask, other)
            yield self._model.probing(Probe(rate, matches, figures.rate(other), figures.population(other), keyed))
            rate, mask = matches, mask | other

    def _sequence_cost(self, head: str, sequence: tuple[str, ...]) -> float:
        total, at = 0.0, self._start(head)
        for stream in sequence:
            probe = candidate(self.problem, at, self.problem.streams.index(stream))
            total, at = total + probe.cost, probe.after
        return total

    def _violates_order(self, head: str, sequence: tuple[str, ...], tolerance: float) -> bool:
        at = self._start(head)
        for stream in sequence:
            probe = candidate(self.problem, at, self.problem.streams.index(stream))
            if probe.cost > cheapest(self.problem, at)[0].cost * (1 + tolerance):
                return True
            at = probe.after
        return False

    def _start(self, head: str) -> Position:
        return Position.start(self.problem, self.problem.streams.index(head))


def _indexes(plan: Plan) -> set[IndexKey]:
    """The indexes that the sequences of a plan use. A tree needs one index per window, which is not counted."""
    if plan.tree is not None:
        return set()
    graph = plan.query.graph
    indexes: set[IndexKey] = set()
    for head, sequence in plan.sequences.items():
        bound = [head]
        for stream in sequence:
            path = plan.paths.get((head, stream), possible_paths(graph, bound, [stream])[0])
            classes = graph.classes_between(bound, stream) if path in (KEY, KEY_AND_BAND) else ()
            band = graph.band_between(bound, [stream]) if path in (BAND, KEY_AND_BAND) else None
            if path != SCAN:
                indexes.add((stream, classes, band))
            bound.append(stream)
    return indexes


def _join_states(plan: Plan) -> set[frozenset[str]]:
    """The sets of streams whose combinations a plan keeps."""
    return set() if plan.tree is None else {merge.streams for merge in merges(plan.tree) if merge is not plan.tree}
