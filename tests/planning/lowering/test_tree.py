"""Site programs give the results of their query: every planner against the oracle, with and without reuse."""

import re
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

import braid
from braid.model.program import Join, Narrow, Ship, SiteProgram
from braid.model.statistics import Statistics
from braid.model.tree import Reused, leaves
from braid.planning.planners import PLANNERS
from braid.testing.interpreter import Interpreter
from braid.testing.networks import NINE_SITES
from braid.testing.three_streams import expected_results, three_streams

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


def query_text(windows: tuple[str, str, str], condition: str = "") -> str:
    a, b, c = windows
    return (
        f"SELECT a.id AS a_id, b.id AS b_id, c.id AS c_id FROM a [{a}], b [{b}], c [{c}] "
        f"WHERE a.k = b.k AND b.j = c.j{condition}"
    )


LONGEST = ("RANGE 8 SECONDS", "RANGE 6 SECONDS", "UNBOUNDED")
WINDOWS = [
    ("RANGE 3 SECONDS", "RANGE 6 SECONDS", "UNBOUNDED"),
    ("RANGE 8 SECONDS", "RANGE 1 SECOND", "RANGE 4 SECONDS"),
    ("NOW", "RANGE 2 SECONDS", "RANGE 1 SECOND"),
    LONGEST,
]


@pytest.mark.parametrize("planner", sorted(PLANNERS))
@pytest.mark.parametrize("sink", ["n4", None])
def test_programs_give_the_results_of_the_query(planner: str, sink: str | None) -> None:
    for seed in range(3):
        streams, known = three_streams(seed), statistics(seed)
        for condition in ("", " AND a.v <= 3 AND a.v < c.v"):
            text = query_text(WINDOWS[seed], condition)
            deployment = braid.plan(text, known, NINE_SITES, planner=planner, sink=sink)
            assert Interpreter(deployment, streams).results() == expected_results(text, seed)


@pytest.mark.parametrize("planner", sorted(PLANNERS))
@pytest.mark.parametrize("name", ["a+b", "b+a", "a>b", "b>a", "0.0:a+b", "0.1:b"])
def test_a_stream_may_be_named_like_a_derived_stream(planner: str, name: str) -> None:
    text = query_text(LONGEST).replace("c.", f"`{name}`.").replace("c [UNBOUNDED]", f"c [UNBOUNDED] AS `{name}`")
    for seed in range(3):
        known = statistics(seed)
        known = replace(known, selectivities={**SELECTIVITIES, frozenset({"b", name}): 0.25})
        deployment = braid.plan(text, known, NINE_SITES, planner=planner, sink="n4")
        assert Interpreter(deployment, three_streams(seed)).results() == expected_results(query_text(LONGEST), seed)


@pytest.mark.parametrize("planner", ["exact", "exhaustive", "top_down", "bottom_up", "npc", "phased", "in_network"])
@pytest.mark.parametrize("windows", WINDOWS)
@pytest.mark.parametrize("condition", ["", " AND a.v <= 3"])
def test_a_derived_stream_of_longer_windows_is_narrowed(
    planner: str, windows: tuple[str, str, str], condition: str
) -> None:
    reused = 0
    for seed in range(4):
        streams, known = three_streams(seed), statistics(seed)
        owner = braid.plan(query_text(LONGEST), known, NINE_SITES, sink="n4")
        owner_run = Interpreter(owner, streams)
        text = query_text(windows, condition)
        user = braid.plan(text, known, NINE_SITES, planner=planner, sink="n4", advertised=owner.advertised)
        results = Interpreter(user, streams, [owner_run]).results()
        assert results == expected_results(text, seed)
        reused += any(isinstance(leaf, Reused) for leaf in leaves(user.tree))
        # A third query reuses the derived stream that the second one has narrowed.
        again = braid.plan(text, known, NINE_SITES, planner=planner, sink="n7", advertised=user.advertised)
        assert Interpreter(again, streams, [Interpreter(user, streams, [owner_run])]).results() == results
    assert reused


def test_a_head_first_probes_streams_that_a_condition_ties_to_it() -> None:
    deployment = braid.plan(query_text(LONGEST), statistics(1), NINE_SITES, planner="simple")
    assert [len(merge.inputs) for merge in deployment.placement] == [3]
    joins = {join.result: join for program in deployment.programs.values() for join in program.all_of(Join)}
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
def test_a_window_that_counts_rows_is_refused_if_only_some_of_them_are_shipped(planner: str) -> None:
    def programs(window: str, condition: str, known: Statistics = FEW_OF_A) -> Mapping[str, SiteProgram]:
        return braid.plan(COUNTING.format(window, condition), known, NINE_SITES, planner=planner).programs

    message = (
        "a [ROWS 5] counts all rows of its stream, but only those that satisfy a.v < 2 are shipped from 'n0' to 'n1'"
    )
    with pytest.raises(
        braid.PlanningError, match=re.escape(message) + ".*; give it a window of time, or leave the cond"
    ):
        programs("ROWS 5", " AND a.v < 2")
    together = replace(FEW_OF_A, sites={"a": "n0", "b": "n0"})
    assert list(programs("ROWS 5", " AND a.v < 2", together)) == ["n0"]
    # All rows may be shipped, and so may whole partitions of a window that counts rows by partition.
    for window, condition in (("ROWS 5", ""), ("PARTITION BY v ROWS 5", " AND a.v < 2")):
        assert any(programs(window, condition)["n0"].all_of(Ship))


def test_a_window_that_counts_rows_is_not_divided_into_parts() -> None:
    known = replace(statistics(1), sites={"a": "n0", "b": "n1"})

    def programs(window: str) -> Mapping[str, SiteProgram]:
        text = COUNTING.format(window, "")
        return braid.plan(text, known, NINE_SITES, planner="pmjoin", cost="communication").programs

    with pytest.raises(braid.PlanningError, match=r"only those of one part of the values of a.k are .* such as 'strea"):
        programs("ROWS 5")
    known = replace(known, populations={"a": 5})
    ships = programs("PARTITION BY k ROWS 5")["n0"].all_of(Ship)
    assert any(ship.guard.partitions is not None for ship in ships)


@pytest.mark.parametrize("asked", ["a.k = c.k AND c.k = b.k", "a.k = c.k AND a.v = c.k AND a.j = b.j"])
def test_reusing_a_join_does_not_apply_the_other_conditions_of_its_owner(asked: str) -> None:
    """The equalities of the owner imply some between a and b, through c, which its text does not have."""
    select = "SELECT a.id AS a_id, b.id AS b_id FROM a [RANGE 8 SECONDS], b [RANGE 6 SECONDS]"
    known = Statistics(
        rates=dict.fromkeys("abc", 10),
        lengths={"c": 8},
        selectivities={"a.k = c.k": 1e-3, "b.k = c.k": 1e-3, "a.j = b.j": 1e-3},
        sites={"a": "n0", "b": "n0", "c": "n1"},
    )
    for seed in range(4):
        streams = three_streams(seed)
        owner = braid.plan(f"{select}, c [UNBOUNDED] WHERE {asked}", known, NINE_SITES)
        assert frozenset("ab") in {merge.streams for merge in owner.placement}
        text = f"{select} WHERE a.j = b.j"
        user = braid.plan(text, known, NINE_SITES, advertised=owner.advertised)
        assert Interpreter(user, streams, [Interpreter(owner, streams)]).results() == expected_results(text, seed)


def check_reuse(text: str, owners: list[str], known: Statistics) -> None:
    """Check that a query gets its own results from derived streams of the owners, whatever names they use."""
    deployments = [braid.plan(owner, known, NINE_SITES) for owner in owners]
    advertised = [advertisement for deployment in deployments for advertisement in deployment.advertised]
    user = braid.plan(text, known, NINE_SITES, advertised=advertised)
    assert any(isinstance(leaf, Reused) for leaf in leaves(user.tree))
    for seed in range(4):
        streams = three_streams(seed)
        others = [Interpreter(deployment, streams) for deployment in deployments]
        assert Interpreter(user, streams, others).results() == expected_results(text, seed)


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
    check_reuse(text, [OWNER], NAMED)


def test_a_self_join_is_reused_with_its_sides_swapped() -> None:
    select = "SELECT l.id AS l_id, r.id AS r_id FROM a [RANGE 4 SECONDS] AS l, a [RANGE 4 SECONDS] AS r WHERE l.k = r.k"
    check_reuse(f"{select} AND r.v < 2", [f"{select} AND l.v < 2"], NAMED)


def test_derived_streams_with_the_same_name_at_one_site_are_kept_apart() -> None:
    longer = OWNER.replace("8 SECONDS", "11 SECONDS").replace("SELECT", "SELECT y.id AS y_id,")
    check_reuse(longer, [OWNER, longer], NAMED)


def test_with_the_owners_filter_weakened_no_row_is_missing() -> None:
    known = replace(NAMED, sites={"a": "n0", "b": "n0"})
    owner = braid.plan(f"{OWNER} AND x.v = 1", known, NINE_SITES)
    text = f"{OWNER.replace('SELECT', 'SELECT y.id AS y_id,')} AND x.v > 2"
    user = braid.plan(text, known, NINE_SITES, advertised=owner.advertise(weaken=True))
    assert [str(condition) for _, condition in user.weakened] == ["x.v = 1"]
    for seed in range(4):
        streams = three_streams(seed)
        owner_run = Interpreter(owner, streams, weakened=[condition for _, condition in user.weakened])
        assert Interpreter(user, streams, [owner_run]).results() == expected_results(text, seed)


def test_only_windows_that_are_shorter_are_narrowed() -> None:
    known = statistics(1)
    owner = braid.plan(query_text(LONGEST), known, NINE_SITES, sink="n4")
    for windows in WINDOWS:
        user = braid.plan(query_text(windows), known, NINE_SITES, sink="n4", advertised=owner.advertised)
        narrows = [narrow for program in user.programs.values() for narrow in program.all_of(Narrow)]
        shorter = {name for name, long, short in zip("abc", LONGEST, windows, strict=True) if long != short}
        assert {name for narrow in narrows for name, _ in narrow.windows} == shorter
