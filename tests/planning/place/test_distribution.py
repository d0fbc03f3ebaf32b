"""Round Robin and Grouping: the distribution over processors, and the connections it needs."""

import pytest

from braid.errors import PlanningError
from braid.planning.place.distribution import (
    PATTERNS,
    GraphOperator,
    OperatorGraph,
    Pattern,
    connections,
    connections_of,
    grouping,
    pieces,
    round_robin,
)

PAIRS = OperatorGraph(
    (
        GraphOperator("f1", ("s1",), "select"),
        GraphOperator("f2", ("s2",), "select"),
        GraphOperator("j1", ("f1", "f2")),
        GraphOperator("f3", ("s3",), "select"),
        GraphOperator("f4", ("s4",), "select"),
        GraphOperator("j2", ("f3", "f4")),
        GraphOperator("j3", ("j1", "j2")),
        GraphOperator("p", ("j3",), "project"),
    )
)


@pytest.mark.parametrize("pattern", list(PATTERNS.values()), ids=list(PATTERNS))
@pytest.mark.parametrize("processors", [1, 2, 3, 5, 20])
def test_all_operators_are_placed_evenly(pattern: Pattern, processors: int) -> None:
    placed = pattern([PAIRS, PAIRS], processors)
    assert set(placed) == {(number, operator.name) for number in (0, 1) for operator in PAIRS.operators}
    loads = [list(placed.values()).count(processor) for processor in range(processors)]
    share = -(-16 // processors)
    assert max(loads) <= (share if pattern is round_robin else 2 * share)
    assert pattern([PAIRS, PAIRS], processors) == placed


def test_round_robin_takes_operators_in_turn() -> None:
    placed = round_robin([PAIRS], 3)
    assert [placed[0, operator.name] for operator in PAIRS.operators] == [0, 1, 2, 0, 1, 2, 0, 1]


def test_grouping_keeps_neighbours_together() -> None:
    placed = grouping([PAIRS], 2)
    assert {placed[0, name] for name in ("f1", "f2", "j1")} == {0}
    assert connections([PAIRS], placed) < connections([PAIRS], round_robin([PAIRS], 2))


def test_connections_by_hand() -> None:
    apart = {(0, operator.name): number % 2 for number, operator in enumerate(PAIRS.operators)}
    # Four streams come from outside. f1-j1, f3-j2 and j1-j3 are on one processor each; the other four edges cross.
    assert connections([PAIRS], apart) == 4 + 4
    assert pieces([PAIRS], apart) == 5
    assert connections_of([PAIRS], apart) == {0: 2 + 4, 1: 2 + 4}


def test_depth_and_leaves() -> None:
    assert PAIRS.depth == 4
    assert PAIRS.leaves == ("f1", "f2", "f3", "f4")
    assert list(PAIRS.below("j3")) == ["j1", "j2", "f1", "f2", "f3", "f4"]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: round_robin([PAIRS], 0), "at least one processor, not 0"),
        (lambda: round_robin([PAIRS], 1.5), "the number of processors must be a whole number, not 1.5"),
        (lambda: grouping([PAIRS], "two"), "the number of processors must be a whole number, not 'two'"),
        (lambda: OperatorGraph((GraphOperator("a", ("b",)), GraphOperator("b", ()))), "'a' reads 'b', which does not"),
        (lambda: OperatorGraph((GraphOperator("a", ()), GraphOperator("a", ()))), "two operators are called 'a'"),
    ],
)
def test_invalid_arguments_are_refused(make: object, message: str) -> None:
    with pytest.raises(PlanningError, match=message):
        make()  # type: ignore[operator]
