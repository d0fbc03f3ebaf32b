"""Programs of partitioned plans: run by a small interpreter of instructions, they give every result once."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

import braid
from braid.model.expressions.expression import Column
from braid.model.graph import AttributeClass
from braid.model.network.generators import fully_connected
from braid.model.partitions import HashPartitions
from braid.model.program import Emit, Filter, Guard, Join, Project, Ship, SiteProgram, Union, Update
from braid.model.statistics import Statistics
from braid.planning.cost.histograms import is_range
from braid.planning.deployment import Deployment
from braid.planning.partition.pmjoin import PMJoin
from braid.planning.plan import plan
from braid.planning.solution.partitioned import PartitionedSolution

Row = dict[str, dict[str, Any]]
"""Of each stream that has been joined, its columns."""
Programs = Mapping[str, SiteProgram]


def key_of(row: Row, attribute: AttributeClass) -> Any:
    source, key = next((source, key) for source, key in attribute.members if source in row)
    assert isinstance(key, Column)
    return row[source][key.name]


def lets_through(guard: Guard, row: Row) -> bool:
    assert not isinstance(guard.partitions, HashPartitions)
    return guard.partitions is None or guard.partitions.covers(key_of(row, guard.partitions.attribute_class))


class Network:
    """Sites that run programs on rows which come one by one, each followed to its end, under unbounded windows."""

    def __init__(self, programs: Programs) -> None:
        self._programs = programs
        self._windows: dict[tuple[str, str], list[Row]] = defaultdict(list)
        self.results: list[Row] = []
        self.shipped: list[tuple[str, Row]] = []

    def put(self, site: str, stream: str, row: Row) -> None:
        if site not in self._programs:
            return
        for instruction in self._programs[site].instructions:
            for made, result in self._do(site, instruction, stream, row):
                self.put(site, made, result)

    def _do(self, site: str, instruction: object, stream: str, row: Row) -> Iterator[tuple[str, Row]]:
        if isinstance(instruction, Update) and instruction.stream == stream:
            self._windows[site, stream].append(row)
        elif isinstance(instruction, Join) and instruction.probe == stream and lets_through(instruction.guard, row):
            assert not instruction.predicates
            for other in list(self._windows[site, instruction.stream]):
                if all(key_of(row, key) == key_of(other, key) for key in instruction.keys):
                    yield instruction.result, row | other
        elif (isinstance(instruction, Union) and stream in instruction.streams) or (
            isinstance(instruction, Project) and instruction.stream == stream
        ):
            yield instruction.result, row
        elif isinstance(instruction, Ship) and instruction.stream == stream and lets_through(instruction.guard, row):
            self.shipped.append((stream, row))
            self.put(instruction.site, stream, row)
        elif isinstance(instruction, Emit) and instruction.stream == stream:
            self.results.append(row)
        assert not isinstance(instruction, Filter)


def identity(row: Row) -> tuple[Any, ...]:
    return tuple(row[alias]["id"] for alias in sorted(row))


def check(deployment: Deployment, streams: Mapping[str, list[dict[str, Any]]], sites: Mapping[str, str]) -> Network:
    """Every combination that joins comes out, and comes out once."""
    network = Network(deployment.programs)
    arrivals = [(alias, row) for alias, rows in streams.items() for row in rows]
    for place in np.random.default_rng(len(arrivals)).permutation(len(arrivals)):
        alias, row = arrivals[place]
        network.put(sites[alias], alias, {alias: row})
    classes = deployment.query.graph.classes
    expected = [
        identity(row)
        for rows in product(*streams.values())
        if all(
            len({row[source][key.name] for source, key in tied.members if isinstance(key, Column)}) == 1
            for row in [dict(zip(streams, rows, strict=True))]
            for tied in classes
        )
        for row in [dict(zip(streams, rows, strict=True))]
    ]
    assert expected
    assert sorted(map(identity, network.results)) == sorted(expected)
    return network


def partitioned(text: str, known: Statistics, planner: PMJoin, sink: str | None, sites: int) -> Deployment:
    deployment = plan(
        braid.parse(text), known, fully_connected(sites), planner=planner, cost="communication", sink=sink
    )
    assert isinstance(deployment.solution, PartitionedSolution)
    return deployment


ONE_KEY = "SELECT * FROM {} WHERE {}"


@pytest.mark.parametrize("function", ["rate", "range", "hash"])
@pytest.mark.parametrize("sink", [None, "n1"])
@pytest.mark.parametrize("texts", [False, True])
def test_each_combination_is_covered_once(function: str, sink: str | None, texts: bool) -> None:
    generator = np.random.default_rng(11)
    names = [f"s{number}" for number in range(4)]
    text = ONE_KEY.format(
        ", ".join(f"{name} [UNBOUNDED]" for name in names), " AND ".join(f"s0.k = {name}.k" for name in names[1:])
    )

    def value(number: int) -> int | str:
        return f"k{number:02}" if texts else number

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
    # Keys from before, between and after those that the histograms know.
    keys = [value(number) for number in (-3, *range(12), 12, 50)]
    for key in keys:
        found = [guard.partitions.covers(key) for guard in join.guards]  # type: ignore[union-attr]
        assert sum(found) == 1
    for part, guard in zip(join.parts, join.guards, strict=True):
        assert all(guard.partitions.covers(key) for key in part.values)  # type: ignore[union-attr]
    streams = {
        name: [{"id": number, "k": keys[generator.integers(len(keys))]} for number in range(14)] for name in names
    }
    network = check(deployment, streams, sites)
    assert network.shipped, "rows travel to where their part is"


@pytest.mark.parametrize("function", ["rate", "range", "hash"])
@pytest.mark.parametrize("seed", range(4))
def test_each_key_is_of_one_part_of_ranges_and_values(function: str, seed: int) -> None:
    """Ranges that overlap, with values in and between them, some of which are no whole numbers."""
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


def test_what_comes_out_of_a_partitioned_join_goes_on() -> None:
    """a, b and c meet on x in parts; their join meets d on y, and that one e on z, in parts again."""
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
        check(deployment, streams, sites)


def test_a_stream_that_is_named_like_a_join() -> None:
    """What comes out of a and b meets a stream whose name is `a+b`."""
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
    check(deployment, streams, sites)


@pytest.mark.parametrize("planner", ["exact", "stream_join_opt", "top_down"])
def test_programs_of_whole_plans_give_every_result_once(planner: str) -> None:
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
    check(deployment, streams, sites)
