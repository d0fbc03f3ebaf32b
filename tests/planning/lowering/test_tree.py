"""Site programs give the results of their query: every planner, against the oracle, with and without reuse."""

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cache

import numpy as np
import pyarrow as pa
import pytest

import braid
from braid.model.network.generators import random_geometric
from braid.model.program import Join, Narrow, Ship, SiteProgram
from braid.model.statistics import Statistics
from braid.model.tree import Reused, leaves
from braid.planning.planners import PLANNERS
from braid.testing import oracle
from braid.testing.interpreter import Interpreter, Row

NETWORK = random_geometric(9, seed=2)
SELECTIVITIES = {"a.k = b.k": 0.3, "b.j = c.j": 0.25, "a.v <= 3": 0.6, "a.v < c.v": 0.4}


def statistics(seed: int) -> Statistics:
    sites = np.random.default_rng(seed).integers(9, size=3)
    return Statistics(
        rates={"a": 10, "b": 12, "c": 9},
        lengths={"c": 12},
        selectivities=SELECTIVITIES,
        sites={name: f"n{site}" for name, site in zip("abc", sites, strict=True)},
        histograms={"a.k": {0: 6.0, 1: 3.0, 2: 1.0}, "b.k": {0: 1.0, 1: 5.0, 2: 6.0}},
    )


def streams(seed: int, rows: int = 14) -> dict[str, list[Row]]:
    generator = np.random.default_rng(seed)

    def one() -> Row:
        values = {"k": 3, "j": 4, "v": 6, "id": 10_000}
        return {
            "ts": int(generator.integers(12)) * 1_000_000,
            **{name: int(generator.integers(most)) for name, most in values.items()},
        }

    return {name: [one() for _ in range(rows)] for name in "abc"}


def table(rows: list[Row]) -> pa.Table:
    times = [datetime(2024, 1, 1) + timedelta(microseconds=row["ts"]) for row in rows]
    columns = {name: [row[name] for row in rows] for name in ("k", "j", "v", "id")}
    return pa.table({"ts": pa.array(times, pa.timestamp("us")), **columns})


@cache
def expected(text: str, seed: int) -> list[tuple[int, ...]]:
    found = oracle(text, {name: table(rows) for name, rows in streams(seed).items()})
    return sorted(tuple(row.values()) for row in found.to_pylist())


def asking(windows: tuple[str, str, str], condition: str = "") -> str:
    a, b, c = windows
    return (
        f"SELECT a.id AS a_id, b.id AS b_id, c.id AS c_id FROM a [{a}], b [{b}], c [{c}] "
        f"WHERE a.k = b.k AND b.j = c.j{condition}"
    )


LONG = ("RANGE 8 SECONDS", "RANGE 6 SECONDS", "UNBOUNDED")
SHORTER = [
    ("RANGE 3 SECONDS", "RANGE 6 SECONDS", "UNBOUNDED"),
    ("RANGE 8 SECONDS", "RANGE 1 SECOND", "RANGE 4 SECONDS"),
    ("NOW", "RANGE 2 SECONDS", "RANGE 1 SECOND"),
    LONG,
]


@pytest.mark.parametrize("planner", sorted(PLANNERS))
@pytest.mark.parametrize("sink", ["n4", None])
def test_programs_give_the_results_of_the_query(planner: str, sink: str | None) -> None:
    for seed in range(3):
        given, known = streams(seed), statistics(seed)
        for condition in ("", " AND a.v <= 3 AND a.v < c.v"):
            text = asking(SHORTER[seed], condition)
            deployment = braid.plan(text, known, NETWORK, planner=planner, sink=sink)
            assert Interpreter(deployment, given).results() == expected(text, seed)


@pytest.mark.parametrize("planner", sorted(PLANNERS))
@pytest.mark.parametrize("name", ["a+b", "b+a", "a>b", "b>a", "0.0:a+b", "0.1:b"])
def test_a_stream_may_be_called_as_if_it_were_derived(planner: str, name: str) -> None:
    text = asking(LONG).replace("c.", f"`{name}`.").replace("c [UNBOUNDED]", f"c [UNBOUNDED] AS `{name}`")
    for seed in range(3):
        known = statistics(seed)
        known = replace(known, selectivities={**SELECTIVITIES, frozenset({"b", name}): 0.25})
        deployment = braid.plan(text, known, NETWORK, planner=planner, sink="n4")
        assert Interpreter(deployment, streams(seed)).results() == expected(asking(LONG), seed)


@pytest.mark.parametrize("planner", ["exact", "exhaustive", "top_down", "bottom_up", "npc", "phased", "in_network"])
@pytest.mark.parametrize("windows", SHORTER)
@pytest.mark.parametrize("condition", ["", " AND a.v <= 3"])
def test_a_derived_stream_of_longer_windows_is_narrowed(
    planner: str, windows: tuple[str, str, str], condition: str
) -> None:
    reused = 0
    for seed in range(4):
        given, known = streams(seed), statistics(seed)
        owner = braid.plan(asking(LONG), known, NETWORK, sink="n4")
        made = Interpreter(owner, given)
        text = asking(windows, condition)
        user = braid.plan(text, known, NETWORK, planner=planner, sink="n4", advertised=owner.advertised)
        found = Interpreter(user, given, [made]).results()
        assert found == expected(text, seed)
        reused += any(isinstance(leaf, Reused) for leaf in leaves(user.tree))
        # And once more, by somebody who uses what this one has narrowed.
        again = braid.plan(text, known, NETWORK, planner=planner, sink="n7", advertised=user.advertised)
        assert Interpreter(again, given, [Interpreter(user, given, [made])]).results() == found
    assert reused


def test_a_head_probes_first_what_something_ties_to_it() -> None:
    deployment = braid.plan(asking(LONG), statistics(1), NETWORK, planner="simple")
    assert [len(merge.inputs) for merge in deployment.placement] == [3]
    steps = [step for program in deployment.programs.values() for step in program.instructions]
    joins = {step.result: step for step in steps if isinstance(step, Join)}
    assert set(joins) == {"a>b", "a>b>c", "b>a", "b>a>c", "c>b", "c>b>a"}
    assert all(join.keys for join in joins.values())


COUNTING = "SELECT a.id AS a_id, b.id AS b_id FROM a [{}], b [RANGE 8 SECONDS] WHERE a.k = b.k{}"
FEW_OF_A = Statistics(
    rates={"a": 1, "b": 100},
    populations={"a": 5},
    selectivities={"a.k = b.k": 0.01, "a.v < 2": 0.3},
    sites={"a": "n0", "b": "n1"},
)


@pytest.mark.parametrize("planner", ["exact", "stream_join_opt", "top_down", "greedy", "best_sequences"])
def test_a_window_that_counts_rows_is_not_made_of_some_of_them(planner: str) -> None:
    def programs(window: str, condition: str, known: Statistics = FEW_OF_A) -> Mapping[str, SiteProgram]:
        return braid.plan(COUNTING.format(window, condition), known, NETWORK, planner=planner).programs

    told = "a [ROWS 5] counts all rows of its stream, but only those that satisfy a.v < 2 are shipped from 'n0' to 'n1'"
    with pytest.raises(braid.PlanningError, match=re.escape(told) + ".*; give it a window of time, or leave the cond"):
        programs("ROWS 5", " AND a.v < 2")
    together = replace(FEW_OF_A, sites={"a": "n0", "b": "n0"})
    assert list(programs("ROWS 5", " AND a.v < 2", together)) == ["n0"]
    # All rows are shipped; so are all those of the partitions that matter, each of which is counted on its own.
    for window, condition in (("ROWS 5", ""), ("PARTITION BY v ROWS 5", " AND a.v < 2")):
        assert any(isinstance(step, Ship) for step in programs(window, condition)["n0"].instructions)


def test_a_window_that_counts_rows_is_not_divided_into_parts() -> None:
    known = replace(statistics(1), sites={"a": "n0", "b": "n1"})

    def programs(window: str) -> Mapping[str, SiteProgram]:
        text = COUNTING.format(window, "")
        return braid.plan(text, known, NETWORK, planner="pmjoin", cost="communication").programs

    with pytest.raises(braid.PlanningError, match=r"only those of one part of the values of a.k are .* such as 'strea"):
        programs("ROWS 5")
    known = replace(known, populations={"a": 5})
    guarded = [step for step in programs("PARTITION BY k ROWS 5")["n0"].instructions if isinstance(step, Ship)]
    assert any(step.guard.partitions is not None for step in guarded)


@pytest.mark.parametrize("asked", ["a.k = c.k AND c.k = b.k", "a.k = c.k AND a.v = c.k AND a.j = b.j"])
def test_who_uses_a_join_does_not_get_what_else_its_owner_asks(asked: str) -> None:
    """Owners ask a and b for more than they write: what follows through c."""
    select = "SELECT a.id AS a_id, b.id AS b_id FROM a [RANGE 8 SECONDS], b [RANGE 6 SECONDS]"
    known = Statistics(
        rates=dict.fromkeys("abc", 10),
        lengths={"c": 8},
        selectivities={"a.k = c.k": 1e-3, "b.k = c.k": 1e-3, "a.j = b.j": 1e-3},
        sites={"a": "n0", "b": "n0", "c": "n1"},
    )
    for seed in range(4):
        given = streams(seed)
        owner = braid.plan(f"{select}, c [UNBOUNDED] WHERE {asked}", known, NETWORK)
        assert frozenset("ab") in {merge.streams for merge in owner.placement}
        text = f"{select} WHERE a.j = b.j"
        user = braid.plan(text, known, NETWORK, advertised=owner.advertised)
        assert Interpreter(user, given, [Interpreter(owner, given)]).results() == expected(text, seed)


def reusing(text: str, owners: list[str], known: Statistics) -> None:
    """A query gets its own results from what others make, whatever they call their streams."""
    made = [braid.plan(owner, known, NETWORK) for owner in owners]
    advertised = [advertisement for deployment in made for advertisement in deployment.advertised]
    user = braid.plan(text, known, NETWORK, advertised=advertised)
    assert any(isinstance(leaf, Reused) for leaf in leaves(user.tree))
    for seed in range(4):
        given = streams(seed)
        others = [Interpreter(deployment, given) for deployment in made]
        assert Interpreter(user, given, others).results() == expected(text, seed)


NAMED = Statistics(
    rates={"a": 10, "b": 12, "c": 9},
    selectivities={"x.k = y.k": 0.3, "p.k = q.k": 0.3, "x.j = z.j": 0.25, "l.k = r.k": 0.3},
    sites={"a": "n0", "b": "n1", "c": "n2"},
)
OWNER = "SELECT x.id AS x_id FROM a [RANGE 8 SECONDS] AS x, b [RANGE 6 SECONDS] AS y WHERE x.k = y.k"


@pytest.mark.parametrize(
    "text",
    [
        "SELECT p.id AS p_id, q.id AS q_id FROM a [RANGE 8 SECONDS] AS p, b [RANGE 6 SECONDS] AS q WHERE p.k = q.k",
        "SELECT x.id AS x_id, y.id AS y_id FROM b [RANGE 6 SECONDS] AS x, a [RANGE 5 SECONDS] AS y WHERE x.k = y.k",
        """SELECT x.id AS x_id, y.id AS y_id, z.id AS z_id
           FROM c [RANGE 4 SECONDS] AS z, b [RANGE 6 SECONDS] AS x, a [RANGE 8 SECONDS] AS y
           WHERE x.k = y.k AND x.j = z.j""",
    ],
)
def test_a_derived_stream_is_used_under_other_names(text: str) -> None:
    reusing(text, [OWNER], NAMED)


def test_a_derived_stream_of_one_stream_is_used_the_other_way_round() -> None:
    select = "SELECT l.id AS l_id, r.id AS r_id FROM a [RANGE 4 SECONDS] AS l, a [RANGE 4 SECONDS] AS r WHERE l.k = r.k"
    reusing(f"{select} AND r.v < 2", [f"{select} AND l.v < 2"], NAMED)


def test_derived_streams_of_one_name_at_one_site_are_told_apart() -> None:
    longer = OWNER.replace("8 SECONDS", "11 SECONDS").replace("SELECT", "SELECT y.id AS y_id,")
    reusing(longer, [OWNER, longer], NAMED)


def test_rows_that_a_weakened_filter_lets_through_are_all_that_is_missing() -> None:
    known = replace(NAMED, sites={"a": "n0", "b": "n0"})
    owner = braid.plan(f"{OWNER} AND x.v = 1", known, NETWORK)
    text = f"{OWNER.replace('SELECT', 'SELECT y.id AS y_id,')} AND x.v > 2"
    user = braid.plan(text, known, NETWORK, advertised=owner.advertise(weaken=True))
    assert [str(condition) for _, condition in user.weakened] == ["x.v = 1"]
    for seed in range(4):
        given = streams(seed)
        made = Interpreter(owner, given, weakened=[condition for _, condition in user.weakened])
        assert Interpreter(user, given, [made]).results() == expected(text, seed)


def test_where_the_windows_are_the_same_nothing_is_narrowed() -> None:
    known = statistics(1)
    owner = braid.plan(asking(LONG), known, NETWORK, sink="n4")
    for windows in SHORTER:
        user = braid.plan(asking(windows), known, NETWORK, sink="n4", advertised=owner.advertised)
        steps = [step for program in user.programs.values() for step in program.instructions]
        shorter = {name for name, long, short in zip("abc", LONG, windows, strict=True) if long != short}
        assert {name for step in steps if isinstance(step, Narrow) for name, _ in step.windows} == shorter
