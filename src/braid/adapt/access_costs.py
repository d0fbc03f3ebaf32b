"""What the access paths of a plan cost beyond a lookup and a match, and which of them cost least."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from braid.model.access import BAND, CELLS, KEY, KEY_AND_BAND, possible_paths
from braid.model.expressions.expression import Call
from braid.model.plan import Plan
from braid.model.predicate import Predicate
from braid.model.statistics import Statistics
from braid.planning.cost.models import EngineTime
from braid.planning.problem import Problem


class AccessCosts:
    """The costs of access paths under one set of statistics, in seconds of work per second.

    The share of pairs with equal keys must be known, from the selectivity of the equality; without it, nothing is
    known of a path, and the default remains.
    """

    def __init__(self, problem: Problem, statistics: Statistics, model: EngineTime) -> None:
        self._problem = problem
        self._statistics = statistics
        self._model = model
        self._has_choice = bool(problem.query.graph.bands and problem.query.graph.classes)

    def of(self, plan: Plan, head: str) -> float:
        """What the access paths of a head add to the cost of a plan."""
        total = 0.0
        for bound, stream in self._choices(plan, head):
            paths = possible_paths(plan.query.graph, bound, [stream])
            costs = self._costs(bound, stream)
            total += costs.get(plan.paths.get((head, stream), paths[0]), 0.0)
        return total

    def cheapest(self, plan: Plan) -> Plan:
        """The same probe sequences with the access paths that cost least."""
        paths = {}
        for head in plan.sequences:
            for bound, stream in self._choices(plan, head):
                costs = self._costs(bound, stream)
                if costs:
                    paths[head, stream] = min(costs, key=costs.__getitem__)
        return plan.with_paths(paths) if paths else plan

    def _choices(self, plan: Plan, head: str) -> Iterator[tuple[tuple[str, ...], str]]:
        """The probes of a head that have several access paths: the streams joined so far, and the probed stream."""
        if not self._has_choice:
            return
        sequence = plan.sequences[head]
        for position, stream in enumerate(sequence):
            bound = (head, *sequence[:position])
            if len(possible_paths(plan.query.graph, bound, [stream])) > 1:
                yield bound, stream

    def _costs(self, bound: Sequence[str], stream: str) -> dict[str, float]:
        """The cost of each access path; none if the share of equal keys is not known."""
        key_share = self._key_share(bound, stream)
        if key_share is None:
            return {}
        problem, model = self._problem, self._model
        head, joined = problem.streams.index(bound[0]), problem.mask(bound)
        rate = problem.figures.flow(head, joined)
        matches = problem.figures.flow(head, joined | problem.mask([stream]))
        pairs = rate * problem.figures.population(problem.mask([stream]))
        equal = max(pairs * key_share, matches)
        # Keys and distances are taken to be independent.
        near = min(pairs, matches / key_share) if key_share else matches
        # Rows in the places that a band looks into are skipped as in a scan if they are out of reach.
        further_lookups = rate * (CELLS - 1) * model.lookup
        return {
            KEY: (equal - matches) * model.match,
            BAND: further_lookups + CELLS * near * model.scan + (near - matches) * model.match,
            KEY_AND_BAND: further_lookups + CELLS * matches * model.scan,
        }

    def _key_share(self, bound: Sequence[str], stream: str) -> float | None:
        """The share of pairs that are equal in all attribute classes that join the stream."""
        product = 1.0
        for attribute_class in self._problem.query.graph.classes_between(bound, stream):
            partner = next(alias for alias in bound if alias in attribute_class.sources)
            keys = (attribute_class.key(partner), attribute_class.key(stream))
            share = self._statistics.share(*Predicate(Call("equal", keys)).spellings)
            if share is None:
                return None
            product *= share
        return product
