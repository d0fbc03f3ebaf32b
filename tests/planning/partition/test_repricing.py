"""Partitioned plans as plain data, and under other figures."""

import json
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pytest

import braid
from braid.errors import PlanError
from braid.model.network.generators import fully_connected
from braid.model.statistics import Others, Statistics
from braid.model.stream import Stream
from braid.planning.cost.models import cost_model
from braid.planning.deployment import Deployment
from braid.planning.partition.pmjoin import PMJoin
from braid.planning.partition.repricing import repriced
from braid.planning.plan import plan
from braid.planning.problem import Problem
from braid.planning.solution.partitioned import PartitionedSolution
from braid.planning.solution.written import divided_inputs, solution_of, written_of
from tests.planning.partition.conftest import EXAMPLE_1, KNOWN

SITES = fully_connected(3)


def planned(known: Statistics = KNOWN, planner: str | PMJoin = "pmjoin") -> PartitionedSolution:
    solution = plan(EXAMPLE_1, known, SITES, planner=planner, cost="communication").solution
    assert isinstance(solution, PartitionedSolution)
    return solution


def problem(known: Statistics) -> Problem:
    return Problem.of(EXAMPLE_1, known, SITES, cost_model("communication"))


@pytest.mark.parametrize("function", ["rate", "range", "hash"])
def test_a_partitioned_plan_is_the_same_after_a_way_through_json(function: str) -> None:
    with_ranges = {**KNOWN.histograms, "S1.dest": {"a": 1.0, "b": 2.0, "d": 3.0}}
    for known in (KNOWN, replace(KNOWN, histograms=with_ranges)):
        solution = planned(known, PMJoin(2, function))
        written = written_of(solution)
        assert written is not None
        for inputs in divided_inputs(written):
            assert sorted(map(sorted, inputs)) == [["S1"], ["S2"], ["S3"]]
        read = solution_of(json.loads(json.dumps(written)), problem(known))
        assert isinstance(read, PartitionedSolution)
        assert written_of(read) == written
        assert [join.guards for join in read.joins] == [join.guards for join in solution.joins]
        assert read.layout == solution.layout
        assert read.bill.total == pytest.approx(solution.bill.total)


def test_keys_of_any_type_can_be_written() -> None:
    for values in ([1, 2.5, 4], [datetime(2024, 1, 1, tzinfo=UTC)], [10**30, 5], ["ä", "b"], [(1, 5), (9, 12), 7]):
        histogram = {value: float(number) for number, value in enumerate(values, 1)}
        known = replace(KNOWN, histograms=dict.fromkeys(KNOWN.histograms, histogram))
        solution = planned(known, PMJoin(2, "range"))
        written = json.loads(json.dumps(written_of(solution)))
        read = solution_of(written, problem(known))
        assert isinstance(read, PartitionedSolution)
        assert [part.values for part in read.joins[0].parts] == [part.values for part in solution.joins[0].parts]


def test_what_is_no_plan_is_refused() -> None:
    written = written_of(planned())
    assert written is not None
    (join,) = written["joins"]
    for wrong in ({**join, "streams": ["S1", "S2"]}, {**join, "parts": []}, {"streams": []}):
        with pytest.raises(PlanError, match="this is no plan of the query"):
            solution_of({**written, "joins": [wrong]}, problem(KNOWN))


def test_a_plan_is_priced_by_other_figures() -> None:
    """The destinations change places: then the plan ships the fast streams, and none of the slow ones."""
    solution = planned()
    moved = {"S1.dest": "S2.dest", "S2.dest": "S3.dest", "S3.dest": "S1.dest"}
    other = replace(KNOWN, histograms={column: KNOWN.histograms[moved[column]] for column in moved})
    assert solution.bill.total == pytest.approx(0.07, abs=0.01)
    assert repriced(solution, problem(KNOWN)).bill.total == pytest.approx(solution.bill.total)
    assert repriced(solution, problem(other)).bill.total > 100 * solution.bill.total
    assert repriced(solution, problem(other)).layout == solution.layout
    evenly = repriced(solution, problem(replace(KNOWN, histograms={}, selectivities=EVEN)))
    for part in evenly.joins[0].parts:
        figures = part.solution.problem.figures
        rates = {stream: figures.rate(1 << number) for number, stream in enumerate(figures.streams)}
        assert rates == pytest.approx({"S1": 100.2 / 3, "S2": 50.07 / 3, "S3": 50.03 / 3})


EVEN = {"S1.dest = S2.dest": 0.001, "S2.dest = S3.dest": 0.001}


def test_parts_add_up_to_what_was_measured_of_all_keys() -> None:
    measured = {frozenset(("S1", "S2")): 0.004, frozenset(("S1", "S2", "S3")): 0.0002}
    known = replace(KNOWN, selectivities={**EVEN, **measured})
    solution, whole = planned(known, PMJoin(3)), problem(known).figures
    (join,) = solution.joins
    position = problem(known).streams.index
    for mask in range(1, 8):
        parts = [part.solution.problem.figures for part in join.parts]
        streams = [stream for number, stream in enumerate(parts[0].streams) if mask >> number & 1]
        expected = whole.rate(sum(1 << position(stream) for stream in streams))
        assert sum(figures.rate(mask) for figures in parts) == pytest.approx(expected, rel=1e-6), streams


def test_each_part_has_headers_of_its_own() -> None:
    """With ten batches a second, headers cost more than the parts save; with few batches, parts pay."""
    measured = replace(KNOWN, selectivities={frozenset(pair): 0.001 for pair in (("S1", "S2"), ("S2", "S3"))})
    measured = replace(measured, sizes=dict.fromkeys(KNOWN.sizes, 50.0))
    costs = {}
    for batches in (0.01, 10.0):
        solution = planned(replace(measured, batches=dict.fromkeys(KNOWN.rates, batches)))
        costs[batches] = len(solution.joins[0].parts), solution.bill.total
    assert costs[0.01][0] > 1
    assert costs[10.0][0] == 1
    assert costs[0.01][1] < costs[10.0][1]


def test_parts_with_the_same_plan_are_one() -> None:
    histograms = {"S1.dest": {"a": 1, "b": 1, "c": 9}, "S2.dest": {"a": 9, "b": 8, "c": 1}, "S3.dest": {"a": 9, "b": 9}}
    measured = {frozenset(pair): 0.001 for pair in (("S1", "S2"), ("S2", "S3"), ("S1", "S3"))}
    known = replace(KNOWN, histograms=histograms, selectivities=measured)
    plans = [
        [(part.solution.tree, dict(part.solution.placement)) for part in join.parts]
        for join in planned(replace(known, batches=dict.fromkeys(KNOWN.rates, 1e-6)), PMJoin(3)).joins
    ]
    assert all(placed not in others[:number] for others in plans for number, placed in enumerate(others))


def test_all_other_keys_are_in_the_first_part() -> None:
    others = Others(50)
    histograms = {
        column: {**rates, others: 40.0 if column == "S1.dest" else 0.1} for column, rates in KNOWN.histograms.items()
    }
    solution = planned(replace(KNOWN, histograms=histograms), PMJoin(4))
    (join,) = solution.joins
    assert len(join.parts) > 1
    assert others in join.parts[0].values
    assert join.label("never seen") == join.label(others) == 0
    for key in ("a", "b", "c", "never seen"):
        assert [guard.partitions.covers(key) for guard in join.guards].count(True) == 1  # type: ignore[union-attr]


def test_keys_of_different_types_are_compared_in_one() -> None:
    """Found by random cases: a moment with and without a time zone was in two parts, and its results came twice."""
    moments = [datetime(2024, 1, day, tzinfo=UTC) for day in (1, 2, 3)]
    streams = {
        name: Stream(name, pa.schema({"ts": pa.timestamp("us"), "k": pa.timestamp("us", zone)}), "ts", 0)
        for name, zone in (("a", "UTC"), ("b", None))
    }
    query = braid.parse("SELECT a.k FROM a [RANGE 9 SECONDS], b [RANGE 9 SECONDS] WHERE a.k = b.k", streams)
    rates = np.array([[1.0, 5.0, 9.0], [9.0, 4.0, 1.0]])
    histograms = {
        "a.k": dict(zip(moments, rates[0].tolist(), strict=True)),
        "b.k": {moment.replace(tzinfo=None): rate for moment, rate in zip(moments, rates[1].tolist(), strict=True)},
    }
    known = Statistics(rates={"a": 15, "b": 14}, sites={"a": "n0", "b": "n1"}, histograms=histograms)
    deployment: Deployment = plan(query, known, SITES, planner=PMJoin(3), cost="communication")
    assert isinstance(deployment.solution, PartitionedSolution)
    (join,) = deployment.solution.joins
    values = [value for part in join.parts for value in part.values]
    assert len(values) == 3


def test_joins_that_have_given_nothing_have_a_finite_price() -> None:
    """A selectivity of 0 gives rates of next to nothing. The header of a batch for such a row is beyond all numbers."""
    streams = ("S1", "S2", "S3")
    joins = {frozenset(pair): 0.0 for pair in (("S1", "S2"), ("S2", "S3"), ("S1", "S3"), streams)}
    sizes = dict.fromkeys(streams, 100.0)
    silent = replace(KNOWN, selectivities=joins, sizes=sizes, batches=dict.fromkeys(streams, 0.25))
    assert np.isfinite(repriced(planned(), problem(silent)).bill.total)
