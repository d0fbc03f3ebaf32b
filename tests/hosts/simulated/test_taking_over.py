"""What two plans have in common goes on as it is while the plan changes: it is neither made nor shipped twice."""

from dataclasses import replace
from functools import cache, reduce
from itertools import pairwise

import pytest

import braid
from braid.adapt.network.filling import sites_going_on
from braid.errors import InvariantError
from braid.hosts.simulated.faults import PROFILES, Faults
from braid.hosts.simulated.simulation import Simulation
from braid.model.tree import JoinTree, Leaf, Merge, merges
from braid.planning.deployment import Deployment
from braid.planning.solution.tree import TreeSolution
from braid.runtime.migration.change import Phase
from braid.runtime.sites.site_compiler import SiteCompiler
from braid.testing import assert_same_rows, oracle
from braid.testing.stream_files import random_rows

TEXT = """SELECT a.n AS an, b.n AS bn, c.n AS cn, d.n AS dn
          FROM a [RANGE 9 SECONDS], b [RANGE 7 SECONDS], c [RANGE 9 SECONDS], d [RANGE 5 SECONDS]
          WHERE a.k = b.k AND b.k = c.k AND c.k = d.k"""
STREAMS = {name: random_rows(number, 60) for number, name in enumerate("abcd")}
NETWORK = braid.Topology.from_links([("paris", "lyon", 0.04), ("lyon", "nice", 0.06), ("nice", "rome", 0.05)])
SITES = {"a": "paris", "b": "paris", "c": "lyon", "d": "nice"}
EXPECTED = oracle(TEXT, STREAMS)


@cache
def planned(order: str, *sites: str) -> Deployment:
    """A left-deep plan in an order of the streams, with its joins at these sites, from the first to the last."""
    query = braid.parse(TEXT, {name: braid.Stream(name, table.schema, "ts") for name, table in STREAMS.items()})
    likely = {f"{one}.k = {other}.k": 0.1 for one, other in pairwise("abcd")}
    known = braid.Statistics(rates=dict.fromkeys("abcd", 1.0), selectivities=likely, sites=SITES)
    plan = braid.plan(query, known, NETWORK, sink="rome", planner="at_sink")
    assert isinstance(plan.solution, TreeSolution)
    leaves: list[JoinTree] = [Leaf(stream) for stream in order]
    tree = reduce(lambda joined, leaf: Merge((joined, leaf)), leaves)
    placement = dict(zip(merges(tree), sites, strict=True))
    return Deployment("by hand", replace(plan.solution, tree=tree, placement=placement))


FIRST = planned("abcd", "paris", "lyon", "nice")


def simulate(
    *changes: tuple[float, Deployment | tuple[str, str]], faults: Faults | str = "none", seed: int = 0
) -> Simulation:
    return braid.simulate(
        TEXT,
        STREAMS,
        NETWORK,
        sites=SITES,
        sink="rome",
        plan=FIRST,
        changes=changes,
        batch_rows=8,
        controller="distributed" if seed % 2 else "central",
        shards=1 + seed % 2,
        faults=faults,
        seed=seed,
    )


@pytest.mark.parametrize(
    ("plan", "taken_over"),
    [
        pytest.param(FIRST, {"paris", "lyon", "nice"}, id="the same plan"),
        pytest.param(planned("bacd", "paris", "lyon", "nice"), {"paris", "lyon", "nice"}, id="its first join turned"),
        pytest.param(planned("abcd", "paris", "lyon", "rome"), {"paris", "lyon"}, id="the last join elsewhere"),
        pytest.param(planned("abcd", "paris", "nice", "nice"), {"paris"}, id="the last two joins at one site"),
        pytest.param(planned("abcd", "lyon", "lyon", "nice"), set(), id="another input for all others"),
        pytest.param(planned("abdc", "paris", "lyon", "nice"), {"paris"}, id="another order"),
        pytest.param(planned("abcd", "rome", "rome", "rome"), set(), id="everything elsewhere"),
    ],
)
def test_sites_that_do_the_same_go_on(plan: Deployment, taken_over: set[str]) -> None:
    simulation = simulate((20.0, plan))
    assert_same_rows(simulation.results, EXPECTED)
    (change,) = simulation.changes
    assert change.phase is Phase.DONE
    assert set(change.taken_over) == taken_over
    assert sites_going_on(FIRST, plan) == taken_over, "what the controller expects"


def test_joins_move_one_by_one() -> None:
    """Each move begins with the plan that the one before has led to, in the order of their times."""
    simulation = simulate((30.0, ("a ⋈ b", "lyon")), (20.0, ("a ⋈ b ⋈ c ⋈ d", "rome")))
    assert_same_rows(simulation.results, EXPECTED)
    first, second = simulation.changes
    assert first.plan.solution.placement == planned("abcd", "paris", "lyon", "rome").solution.placement
    assert second.plan.solution.placement == planned("abcd", "lyon", "lyon", "rome").solution.placement
    with pytest.raises(braid.PlanError, match="the plan has no join 'a ⋈ d'"):
        simulate((20.0, ("a ⋈ d", "rome")))
    with pytest.raises(braid.TopologyError, match="athens"):
        simulate((20.0, ("a ⋈ b", "athens")))


def test_a_change_to_the_same_plan_ships_nothing_more() -> None:
    fixed, changed = simulate(), simulate((20.0, FIRST), (30.0, FIRST))
    assert changed.measured == fixed.measured


@pytest.mark.parametrize("faults", sorted(PROFILES))
def test_changes_that_take_over_survive_faults(faults: str) -> None:
    """Two of them overlap, and the third takes over what the first plan started, or leaves it."""
    later = planned("abcd", "paris", "lyon", "rome"), planned("abcd", "paris", "nice", "rome"), FIRST
    changes = zip((20.0, 20.5, 38.0), later, strict=True)
    simulation = simulate(*changes, faults=faults, seed=sorted(PROFILES).index(faults))
    assert_same_rows(simulation.results, EXPECTED)
    assert any(change.taken_over and change.phase is Phase.DONE for change in simulation.changes)


def test_a_join_whose_channel_does_not_keep_its_window_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SiteCompiler, "kept", lambda compiler, stream: 1)
    with pytest.raises(InvariantError, match=r"is ready, and its window of a\+b\+c has"):
        simulate((20.0, planned("abcd", "paris", "lyon", "rome")))
