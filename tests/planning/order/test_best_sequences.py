"""The cheapest probe sequences: no other sequence of a head costs less, nor do the greedy ones."""

from itertools import permutations, product

import pytest

from braid.errors import PlanningError
from braid.planning.cost.models import EngineTime, UnitTime
from braid.planning.order.best_sequences import BestSequences
from braid.planning.order.greedy import Greedy
from braid.planning.solution.sequenced import HeadPlan, SequencedSolution
from braid.testing.networks import one_key_problem


@pytest.mark.parametrize("rates", [[50, 100, 200, 20], [10, 10, 10, 10], [300, 1, 70, 8]])
@pytest.mark.parametrize("model", [UnitTime(), EngineTime()])
def test_no_sequence_is_cheaper(rates: list[float], model: UnitTime) -> None:
    problem = one_key_problem(rates, model=model, selectivity=0.05)
    best = BestSequences().plan(problem)
    assert best.bill.total <= Greedy().plan(problem).bill.total * (1 + 1e-12)
    for order in permutations((1, 2, 3)):
        for placements in product((0, 1), repeat=3):
            other = SequencedSolution(problem, (HeadPlan(0, order, placements), *best.heads[1:]), 1)
            assert other.bill.total >= best.bill.total * (1 - 1e-12)


def test_too_many_streams_are_refused() -> None:
    with pytest.raises(PlanningError, match="the limit is 3: choose planner 'greedy'"):
        BestSequences(largest=3).plan(one_key_problem([1, 2, 3, 4]))
