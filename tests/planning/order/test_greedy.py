"""Sequences of heads: the equations by hand, examples 1 to 3 of the NOS paper, and both ways to update a plan."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import braid
from braid.model.network.generators import fully_connected
from braid.model.program import Join, Ship, Update
from braid.model.statistics import Statistics
from braid.planning.cost.models import MODELS, UnitTime
from braid.planning.lowering.sequences import head_operators, sequence_programs
from braid.planning.order.greedy import Greedy, candidate, cheapest
from braid.planning.order.plan_update import update_among_nodes, update_centrally
from braid.planning.plan import plan
from braid.planning.problem import Problem
from braid.planning.solution.sequenced import HeadPlan, Position, SequencedSolution
from braid.testing.networks import one_key_problem

EXAMPLE_1 = (HeadPlan(0, (1, 2), (1, 1)), HeadPlan(1, (0, 2), (0, 1)), HeadPlan(2, (0, 1), (0, 0)))


def shown(problem: Problem, plan: HeadPlan) -> dict[str, set[str]]:
    """Operator sets as the paper writes them."""

    def text(instruction: object) -> str:
        if isinstance(instruction, Join):
            return f"join({instruction.probe}, {instruction.stream})"
        if isinstance(instruction, Update):
            return f"update({instruction.stream})"
        assert isinstance(instruction, Ship)
        return f"ship({instruction.stream}, {instruction.site})"

    return {site: set(map(text, instructions)) for site, instructions in head_operators(problem, plan).items()}


def test_example_2_the_operator_sets_of_example_1() -> None:
    problem = one_key_problem([100, 100, 100])
    first, second, third = (shown(problem, plan) for plan in EXAMPLE_1)
    assert first == {
        "n1": {"ship(S1, n2)"},
        "n2": {"join(S1, S2)", "update(S2)", "ship(S1>S2, n3)"},
        "n3": {"join(S1>S2, S3)", "update(S3)", "ship(S1>S2>S3, n0)"},
    }
    assert second == {
        "n1": {"ship(S1, n2)"},
        "n2": {"join(S2, S1)", "update(S1)", "ship(S2>S1, n3)"},
        "n3": {"join(S2>S1, S3)", "update(S3)", "ship(S2>S1>S3, n0)"},
    }
    assert third == {
        "n1": {"ship(S1, n3)"},
        "n2": {"ship(S2, n3)"},
        "n3": {"join(S3, S1)", "join(S3>S1, S2)", "update(S1)", "update(S2)", "ship(S3>S1>S2, n0)"},
    }


def test_example_2_the_union_at_each_node() -> None:
    problem = one_key_problem([100, 100, 100])
    programs = sequence_programs(SequencedSolution(problem, EXAMPLE_1, 1))
    ships = {(site, ship.stream, ship.site) for site, program in programs.items() for ship in program.all_of(Ship)}
    assert {ship for ship in ships if ship[0] == "n1"} == {("n1", "S1", "n2"), ("n1", "S1", "n3")}
    windows = {site: {update.stream for update in program.all_of(Update)} for site, program in programs.items()}
    assert windows == {"n0": set(), "n1": set(), "n2": {"S1", "S2"}, "n3": {"S1", "S2", "S3"}}
    assert programs["n3"].arriving == ("S1>S2", "S2>S1")


def test_example_3_the_sequence_after_the_change() -> None:
    changed = shown(one_key_problem([100, 100, 100]), HeadPlan(0, (2, 1), (0, 1)))
    assert changed == {
        "n1": {"join(S1, S3)", "update(S3)", "ship(S1>S3, n2)"},
        "n2": {"join(S1>S3, S2)", "update(S2)", "ship(S1>S3>S2, n0)"},
        "n3": {"ship(S3, n1)"},
    }


def test_the_cost_of_a_sequence_by_hand() -> None:
    problem = one_key_problem([100, 40, 300], model=UnitTime(update=1e-3, probe=1e-4))
    solution = Greedy().plan(problem)
    charges = [
        charge.amount for charge in solution.bill.charges if "head S1" in charge.what or "with S1" in charge.what
    ]
    # S1 probes S2 first: 40 rows of 150 bytes are shipped here, which is less than 100 rows there.
    ship = 0.005 + 40 * 150 / 128_000
    probe = 40 * 1e-3 + 100 * 1e-4 * 20
    assert solution.heads[0] == HeadPlan(0, (1, 2), (0, 1))
    assert charges[:2] == pytest.approx([ship, probe])
    # Then 100 * 0.01 * 20 = 20 rows of 300 bytes are shipped to S3, which has 300 rows a second and 150 in its window.
    assert charges[2:4] == pytest.approx([0.005 + 20 * 300 / 128_000, 300 * 1e-3 + 20 * 1e-4 * 150])
    # The results of this head, 20 * 0.01 * 150 = 30 rows of 450 bytes, are shipped to the sink.
    assert charges[4] == pytest.approx(0.005 + 30 * 450 / 128_000)


def test_streams_without_a_condition_come_last() -> None:
    text = "SELECT * FROM a [RANGE 1 SECOND], b [RANGE 1 SECOND], c [RANGE 1 SECOND] WHERE a.x = b.x AND b.y = c.y"
    statistics = Statistics(
        rates={"a": 50, "b": 90, "c": 1},
        selectivities={"a.x = b.x": 0.5, "b.y = c.y": 0.5},
        sites={"a": "n0", "b": "n1", "c": "n2"},
    )
    deployment = plan(braid.parse(text), statistics, fully_connected(3), planner="greedy")
    assert deployment.plan.sequences["a"] == ("b", "c")
    assert deployment.tree is None


def in_order(problem: Problem, plan: HeadPlan) -> bool:
    """The cost invariant: no probe would be cheaper with a stream that comes later (equation 4 of the NOS paper)."""
    at = Position.start(problem, plan.head)
    for stream, placement in zip(plan.order, plan.placements, strict=True):
        probe = candidate(problem, at, stream)
        if probe.placement != placement or probe.cost > cheapest(problem, at)[0].cost:
            return False
        at = probe.after
    return True


rates = st.lists(st.sampled_from([20.0, 50.0, 80.0, 100.0, 200.0, 400.0]), min_size=2, max_size=6)


@given(rates, st.integers(0, 5), st.sampled_from([10.0, 50.0, 90.0, 200.0, 800.0]), st.sampled_from([0.001, 0.01, 0.1]))
@settings(max_examples=30, deadline=None)
def test_center_and_nodes_change_to_the_same_plan(
    before: list[float], changed: int, rate: float, selectivity: float
) -> None:
    stream = changed % len(before)
    after = [*before[:stream], rate, *before[stream + 1 :]]
    old = Greedy().plan(one_key_problem(before, selectivity=selectivity)).heads
    problem = one_key_problem(after, selectivity=selectivity)
    central, distributed = update_centrally(problem, old), update_among_nodes(problem, old, stream)
    assert central.plans == distributed.plans
    assert all(in_order(problem, plan) for plan in distributed.plans)


@pytest.mark.parametrize("where", ["", "WHERE a.k = b.k", "WHERE a.k = b.k AND b.j = c.j"])
def test_center_and_nodes_agree_where_streams_are_not_tied(where: str) -> None:
    query = braid.parse(f"SELECT * FROM a [RANGE 1 SECOND], b [RANGE 1 SECOND], c [RANGE 1 SECOND] {where}")

    def problem(rates: dict[str, float]) -> Problem:
        known = Statistics(
            rates=rates,
            selectivities={"a.k = b.k": 0.1, "b.j = c.j": 0.1},
            sites={"a": "n0", "b": "n1", "c": "n2"},
        )
        return Problem.of(query, known, fully_connected(3), MODELS["communication"])

    before = {"a": 10.0, "b": 5.0, "c": 9.0}
    old = Greedy().plan(problem(before)).heads
    for stream, rate in [("c", 2.0), ("b", 30.0), ("a", 1.0), ("a", 100.0), ("c", 100.0)]:
        changed = problem({**before, stream: rate})
        central, distributed = update_centrally(changed, old), update_among_nodes(changed, old, "abc".index(stream))
        assert distributed.plans == central.plans
        assert all(in_order(changed, plan) for plan in distributed.plans)


def test_messages_of_a_change() -> None:
    old = Greedy().plan(one_key_problem([50, 100, 100, 100])).heads
    problem = one_key_problem([200, 100, 100, 100])
    central, distributed = update_centrally(problem, old), update_among_nodes(problem, old, 0)
    assert central.modification == 4
    assert central.synchronization == 2 * 4 * 3
    assert distributed.modification > central.modification
    unchanged = update_centrally(problem, central.plans)
    assert (unchanged.modification, unchanged.migration) == (1, 0)
