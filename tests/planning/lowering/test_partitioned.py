"""Site programs of partitioned plans: the interpreter finds every result of the query in them, exactly once."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

import braid
from braid.model.expressions.expression import Column
from braid.model.network.generators import fully_connected
from braid.model.program import Filter, Join
from braid.model.statistics import Statistics
from braid.planning.cost.histograms import is_range
from braid.planning.deployment import Deployment
from braid.planning.partition.pmjoin import PMJoin
from braid.planning.plan import plan
from braid.planning.solution.partitioned import PartitionedSolution
from braid.testing.interpreter import Interpreter, Row


def check(deployment: Deployment, streams: Mapping[str, list[dict[str, Any]]]) -> Interpreter:
    """Check that every combination that joins is emitted, and emitted once. `streams` has the rows of each alias."""
    for program in deployment.programs.values():
        assert not any(program.all_of(Filter))
        assert not any(join.predicates for join in program.all_of(Join))
    interpreter = Interpreter(deployment, in_random_order(deployment, streams))
    expected = [
        tuple(rows[alias]["id"] for alias in sorted(rows)) for rows in matching_combinations(deployment, streams)
    ]
    assert expected
    results = [combination.rows for combination in interpreter.emitted()]
    emitted = [tuple(rows[alias]["id"] for alias in sorted(rows)) for rows in results]
    assert sorted(emitted) == sorted(expected)
    return interpreter


def in_random_order(deployment: Deployment, streams: Mapping[str, list[dict[str, Any]]]) -> dict[str, list[Row]]:
    """The rows of each stream, with event times that put the rows of all streams in a random order."""
    count = sum(len(rows) for rows in streams.values())
    times = iter(np.random.default_rng(count).permutation(count).tolist())
    return {
        deployment.query.source(alias).stream: [{"ts": next(times), **row} for row in rows]
        for alias, rows in streams.items()
    }


def matching_combinations(
    deployment: Deployment, streams: Mapping[str, list[dict[str, Any]]]
) -> Iterator[dict[str, dict[str, Any]]]:
    """One row of each stream, in all ways that satisfy every equality of the query."""
    for rows in product(*streams.values()):
        by_alias = dict(zip(streams, rows, strict=True))
        keys = [
            {by_alias[alias][key.name] for alias, key in tied.members if isinstance(key, Column)}
            for tied in deployment.query.graph.classes
        ]
        if all(len(values) == 1 for values in keys):
            yield by_alias


def partitioned(text: str, known: Statistics, planner: PMJoin, sink: str | None, sites: int) -> Deployment:
    deployment = plan(
        braid.parse(text), known, fully_connected(sites), planner=planner, cost="communication", sink=sink
    )
    assert isinstance(deployment.solution, PartitionedSolution)
    return deployment


@pytest.mark.parametrize("function", ["rate", "range", "hash"])
@pytest.mark.parametrize("sink", [None, "n1"])
@pytest.mark.parametrize("text_keys", [False, True])
def test_each_combination_is_covered_once(function: str, sink: str | None, text_keys: bool) -> None:
    generator = np.random.default_rng(11)
    names = [f"s{number}" for number in range(4)]
    windows = ", ".join(f"{name} [UNBOUNDED]" for name in names)
    equalities = " AND ".join(f"s0.k = {name}.k" for name in names[1:])
    text = f"SELECT * FROM {windows} WHERE {equalities}"

    def value(number: int) -> int | str:
        return f"k{number:02}" if text_keys else number

    rates = generator.pareto(1.0, (4, 12)) + 0.01
    sites = {name: f"n{number}" for number, name in enumerate(names)}
    known = Statistics(
        rates=dict(zip(names, rates.sum(axis=1).tolist(), strict=True)),
        lengths=dict.fromkeys(names, 1.0),
        sites=sites,
        histograms={
            f"{name}.k": {value(number): rate for number, rate in enumerate(row.tolist())}
            for name, row in zip(names, rates, strict=True)
        },
    )
    deployment = partitioned(text, known, PMJoin(4, function), sink, 4)
    assert isinstance(deployment.solution, PartitionedSolution)
    (join,) = deployment.solution.joins
    assert len({str(part.solution.tree) + part.site for part in join.parts}) > 1
    # Also keys below and above those in the histograms.
    keys = [value(number) for number in (-3, *range(12), 12, 50)]
    for key in keys:
        covers_key = [guard.partitions.covers(key) for guard in join.guards]  # type: ignore[union-attr]
        assert sum(covers_key) == 1
    for part, guard in zip(join.parts, join.guards, strict=True):
        assert all(guard.partitions.covers(key) for key in part.values)  # type: ignore[union-attr]
    streams = {
        name: [{"id": number, "k": keys[generator.integers(len(keys))]} for number in range(14)] for name in names
    }
    assert check(deployment, streams).shipped(), "rows travel to the site of their part"


@pytest.mark.parametrize("function", ["rate", "range", "hash"])
@pytest.mark.parametrize("seed", range(4))
def test_each_key_belongs_to_one_part_of_ranges_and_values(function: str, seed: int) -> None:
    """Ranges that overlap, with single values in and between them, some of which are not whole numbers."""
    generator = np.random.default_rng(seed)
    histograms: dict[str, dict[Any, float]] = {}
    for name in ("a", "b"):
        firsts = generator.integers(0, 60, 5)
        keys = [(int(first), int(first + generator.integers(0, 30))) for first in firsts]
        keys += [*generator.integers(0, 90, 3).tolist(), *(generator.integers(0, 180, 3) / 2).tolist()]
        histograms[f"{name}.k"] = {key: float(generator.pareto(1.0)) for key in keys}
    known = Statistics(rates={"a": 4, "b": 5}, lengths={"a": 1, "b": 1}, sites={"a": "n0", "b": "n1"})
    known = replace(known, histograms=histograms)
    text = "SELECT * FROM a [UNBOUNDED], b [UNBOUNDED] WHERE a.k = b.k"
    deployment = partitioned(text, known, PMJoin(4, function), "n1", 2)
    assert isinstance(deployment.solution, PartitionedSolution)
    (join,) = deployment.solution.joins
    assert any(is_range(value) for part in join.parts for value in part.values)
    for key in (number / 4 for number in range(-8, 400)):
        assert sum(guard.partitions.covers(key) for guard in join.guards) == 1  # type: ignore[union-attr]
    for part, guard in zip(join.parts, join.guards, strict=True):
        for value in part.values:
            ends = value if is_range(value) else (value, value)
            assert all(guard.partitions.covers(end) for end in ends)  # type: ignore[union-attr]


def test_the_result_of_a_partitioned_join_is_joined_further() -> None:
    """a, b and c are joined on x in parts; the result with d on y, and that with e on z, again in parts."""
    text = (
        "SELECT * FROM a [UNBOUNDED], b [UNBOUNDED], c [UNBOUNDED], d [UNBOUNDED], e [UNBOUNDED] "
        "WHERE a.x = b.x AND b.x = c.x AND c.y = d.y AND d.z = e.z"
    )
    sites = {alias: f"n{number}" for number, alias in enumerate("abcde")}
    generator = np.random.default_rng(5)
    histograms = {
        f"{alias}.{column}": dict(enumerate((generator.pareto(1.0, 6) + 0.01).tolist()))
        for alias, column in ("ax", "bx", "cx", "cy", "dy", "dz", "ez")
    }
    known = Statistics(
        rates={"a": 1, "b": 2, "c": 3, "d": 40, "e": 500},
        lengths=dict.fromkeys("abcde", 1.0),
        selectivities={"a.x = b.x": 0.1, "b.x = c.x": 0.1, "c.y = d.y": 0.1, "d.z = e.z": 0.1},
        sites=sites,
        histograms=histograms,
    )
    columns = {"a": "x", "b": "x", "c": "xy", "d": "yz", "e": "z"}
    streams = {
        alias: [{"id": n} | {name: int(generator.integers(7)) for name in columns[alias]} for n in range(7)]
        for alias in "abcde"
    }
    for function, sink in product(["rate", "range"], [None, "n4"]):
        deployment = partitioned(text, known, PMJoin(3, function), sink, 5)
        assert isinstance(deployment.solution, PartitionedSolution)
        assert deployment.solution.joins
        check(deployment, streams)


def test_a_stream_may_be_named_like_a_join() -> None:
    """The join of a and b is joined with a stream called `a+b`."""
    text = "SELECT * FROM a [UNBOUNDED], b [UNBOUNDED], c [UNBOUNDED] AS `a+b` WHERE a.x = b.x AND b.y = `a+b`.y"
    sites = {"a": "n0", "b": "n0", "a+b": "n1"}
    generator = np.random.default_rng(5)
    known = Statistics(
        rates={"a": 1, "b": 2, "a+b": 40},
        lengths=dict.fromkeys(sites, 1.0),
        selectivities={"a.x = b.x": 0.1},
        sites=sites,
        histograms={
            f"{alias}.y": dict(enumerate((generator.pareto(1.0, 6) + 0.01).tolist())) for alias in ("b", "a+b")
        },
    )
    streams = {
        alias: [{"id": n} | {name: int(generator.integers(5)) for name in "xy"} for n in range(7)] for alias in sites
    }
    deployment = partitioned(text, known, PMJoin(3), "n1", 2)
    assert isinstance(deployment.solution, PartitionedSolution)
    assert [len(join.join.inputs) for join in deployment.solution.joins] == [2]
    check(deployment, streams)


@pytest.mark.parametrize("planner", ["exact", "stream_join_opt", "top_down"])
def test_programs_of_plans_without_parts_give_every_result_once(planner: str) -> None:
    text = "SELECT * FROM a [UNBOUNDED], b [UNBOUNDED], c [UNBOUNDED] WHERE a.x = b.x AND b.y = c.y"
    sites = {"a": "n0", "b": "n1", "c": "n2"}
    known = Statistics(
        rates={"a": 1, "b": 20, "c": 3},
        lengths=dict.fromkeys("abc", 1.0),
        selectivities={"a.x = b.x": 0.1, "b.y = c.y": 0.1},
        sites=sites,
    )
    deployment = plan(braid.parse(text), known, fully_connected(4), planner=planner, cost="communication", sink="n3")
    generator = np.random.default_rng(1)
    streams = {
        alias: [{"id": n} | {name: int(generator.integers(4)) for name in "xy"} for n in range(9)] for alias in "abc"
    }
    check(deployment, streams)
