"""What plans cost under given statistics: the running one, the best one, and the way from one to the other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

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
"""The sequences of up to so many streams are all compared; beyond that they are chosen greedily."""

MOST_IN_TREES = 10
"""The trees of up to so many streams are all compared; beyond that they stay as they are."""

HERE = Topology((Site("here"),), ())
"""The one site there is; a network knows its distances once somebody has asked for them."""

Index = tuple[str, tuple[AttributeClass, ...] | int | None]
"""What a window is looked up by: attribute classes, else the number of a band, if by anything."""


class Costing:
    """Plans of one query under one set of statistics, all windows at one site, in seconds of work per second.

    Nothing travels, so that sizes do not matter. Statistics that lack another figure are a `PlanningError`.
    """

    def __init__(self, query: Query, statistics: Statistics, model: EngineTime | None = None) -> None:
        self._model = model or EngineTime()
        at_one_site = replace(statistics, sites=dict.fromkeys(query.aliases, HERE.names[0]), sizes={})
        self.problem = Problem.of(query, at_one_site, HERE, self._model)

    def cost(self, plan: Plan) -> float:
        """Equations 1 to 3 of the NOS paper, added up over all heads and steps; see `tree_cost` for trees."""
        if plan.tree is not None:
            return self.tree_cost(plan.tree)
        return sum(self._sequence_cost(head, sequence) for head, sequence in plan.sequences.items())

    def best(self, like: Plan) -> Plan:
        """The cheapest plan of the same form, as far as it can be found in no time.

        Whether combinations are kept is for people to say: it is a matter of memory as well.
        """
        streams = len(self.problem.streams)
        if like.tree is None:
            return (BestSequences() if streams <= MOST_SEQUENCES else Greedy()).plan(self.problem).plan
        if streams > MOST_IN_TREES:
            return like
        tree = Exact().plan(self.problem).tree
        return Plan(self.problem.query, sequences(tree, self.problem.query), tree)

    def out_of_order(self, plan: Plan, tolerance: float = 0.0) -> tuple[str, ...]:
        """The heads whose sequence breaks the cost invariant (equation 4): a later stream would cost less now."""
        if plan.tree is not None:
            return ()
        return tuple(head for head, sequence in plan.sequences.items() if self._breaks_order(head, sequence, tolerance))

    def transition(self, before: Plan, after: Plan) -> float:
        """Seconds of work to change the plan, if nothing of what is missing expires before it is needed.

        Windows get the indexes that only the new sequences look into, and combinations that the old plan has not kept
        are found.
        """
        population, model = self.problem.figures.population, self._model
        indexed = sum(population(self.problem.mask([stream])) for stream, _ in _indexes(after) - _indexes(before))
        kept = sum(population(self.problem.mask(streams)) for streams in _kept(after) - _kept(before))
        return indexed * model.update + kept * (model.match + model.update)

    def tree_cost(self, tree: JoinTree) -> float:
        """A tree that keeps the result of every inner join (rates and populations by equations 2 and 3 of PMJoin).

        What a join yields is put into its state, and probes the states of the other inputs one after the other. That
        rows enter the windows of their streams is the same work under every plan, and left out.
        """
        figures, total = self.problem.figures, 0.0
        for merge in merges(tree):
            inputs = [self.problem.mask(part.streams) for part in merge.inputs]
            for head, part in zip(inputs, merge.inputs, strict=True):
                rate, mask = figures.rate(head), head
                total += figures.rate(head) * self._model.update if isinstance(part, Merge) else 0.0
                for other in inputs:
                    if other == head:
                        continue
                    held = figures.population(head)
                    matches = figures.rate(head) * figures.population(mask | other) / held if held else 0.0
                    keyed = self.problem.keyed(mask, other)
                    probe = Probe(rate, matches, figures.rate(other), figures.population(other), keyed)
                    total += self._model.probing(probe)
                    rate, mask = matches, mask | other
        return total

    def _sequence_cost(self, head: str, sequence: tuple[str, ...]) -> float:
        total, at = 0.0, self._start(head)
        for stream in sequence:
            step = candidate(self.problem, at, self.problem.streams.index(stream))
            total, at = total + step.cost, step.after
        return total

    def _breaks_order(self, head: str, sequence: tuple[str, ...], tolerance: float) -> bool:
        at = self._start(head)
        for stream in sequence:
            step = candidate(self.problem, at, self.problem.streams.index(stream))
            if step.cost > cheapest(self.problem, at)[0].cost * (1 + tolerance):
                return True
            at = step.after
        return False

    def _start(self, head: str) -> Position:
        return Position.start(self.problem, self.problem.streams.index(head))


def _indexes(plan: Plan) -> set[Index]:
    """Of sequences; a tree looks its windows up by what its lowest joins are on, which is one index each."""
    if plan.tree is not None:
        return set()
    graph = plan.query.graph
    steps = (
        ((head, *sequence[:place]), stream)
        for head, sequence in plan.sequences.items()
        for place, stream in enumerate(sequence)
    )
    looked_up: Iterator[Index] = (
        (stream, graph.classes_between(bound, stream) or graph.band_between(bound, [stream])) for bound, stream in steps
    )
    return {(stream, by) for stream, by in looked_up if by is not None}


def _kept(plan: Plan) -> set[frozenset[str]]:
    """The sets of streams whose combinations a plan keeps."""
    return set() if plan.tree is None else {merge.streams for merge in merges(plan.tree) if merge is not plan.tree}
