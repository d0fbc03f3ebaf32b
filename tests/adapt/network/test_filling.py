"""What a plan change ships once: the controller's figure against what is shipped in a simulation."""

import re
from dataclasses import replace
from functools import cache

import numpy as np
import pyarrow as pa
import pytest

import braid
from braid.adapt.network.filling import filling_cost
from braid.hosts.simulated.simulation import Simulation
from braid.model.tree import Leaf, Merge
from braid.planning.deployment import Deployment
from braid.planning.solution.tree import TreeSolution
from braid.runtime.migration.change import Phase

RATE, KEYS, WINDOW, ASKED = 50.0, 100, 8, 12.0
SITES = {"a": "paris", "b": "paris", "c": "lyon"}
NETWORK = braid.Topology.from_links([("paris", "lyon", 0.01)])
TEXT = f"""SELECT a.p AS ap, b.p AS bp, c.p AS cp
           FROM a [RANGE {WINDOW} SECONDS], b [RANGE {WINDOW} SECONDS], c [RANGE {WINDOW} SECONDS]
           WHERE a.k = b.k AND b.l = c.l"""


@cache
def streams() -> dict[str, pa.Table]:
    """Streams of a join key each for two joins, and a payload."""
    tables = {}
    for seed, name in enumerate(SITES):
        chance = np.random.default_rng(seed)
        times = np.arange(0, 16, 1 / RATE)
        columns = {key: chance.integers(0, KEYS, len(times)) * 10**15 for key in "kl"}
        payload = [chance.bytes(60) for _ in times]
        tables[name] = pa.table(
            {"ts": pa.array(np.round(times * 1e6).astype(np.int64), pa.timestamp("us")), **columns, "p": payload}
        )
    return tables


def plan(first_join: str) -> Deployment:
    """One join at Paris, the other one at Lyon."""
    declared = {name: braid.Stream(name, table.schema, "ts") for name, table in streams().items()}
    likely = dict.fromkeys(("a.k = b.k", "b.l = c.l"), 1 / KEYS)
    known = braid.Statistics(
        rates=dict.fromkeys(SITES, RATE), sizes=dict.fromkeys(SITES, 90.0), selectivities=likely, sites=SITES
    )
    made = braid.plan(braid.parse(TEXT, declared), known, NETWORK, sink="lyon", cost="communication", planner="at_sink")
    assert isinstance(made.solution, TreeSolution)
    one, other = first_join
    below = Merge((Leaf(one), Leaf(other)))
    above = Merge((below, Leaf(*set(SITES) - set(first_join))))
    return Deployment("by hand", replace(made.solution, tree=above, placement={below: "paris", above: "lyon"}))


@cache
def simulate(new: str | None) -> Simulation:
    changes = [] if new is None else [(ASKED, plan(new))]
    return braid.simulate(
        TEXT, streams(), NETWORK, sites=SITES, sink="lyon", plan=plan("ab"), changes=changes, batch_rows=50
    )


def rows_shipped(simulation: Simulation, begin: float, end: float) -> int:
    """The rows of joins that went from Paris to Lyon."""
    shipped = (
        re.match(r"ships ([0-9,]+) rows of .*[+].* to lyon", event.what)
        for event in simulation.timeline
        if begin <= event.time < end
    )
    return sum(int(match[1].replace(",", "")) for match in shipped if match)


def test_a_join_that_is_new_ships_its_live_rows() -> None:
    (change,) = simulate("bc").changes
    done = change.phases[Phase.DONE]
    before, after = plan("ab"), plan("bc")
    size, alive = 90.0, (WINDOW * RATE) ** 2 / KEYS
    windows_of_a_and_c = 2 * WINDOW * RATE * size
    assert filling_cost(before.solution.problem, before, after) == pytest.approx(windows_of_a_and_c + alive * 2 * size)
    more = rows_shipped(simulate("bc"), ASKED, done) - rows_shipped(simulate(None), ASKED, done)
    running = 2 * alive / WINDOW * (done - ASKED)
    assert more == pytest.approx(alive + running, rel=0.2)


def test_a_join_that_goes_on_ships_nothing_more() -> None:
    assert filling_cost(plan("ab").solution.problem, plan("ab"), plan("ab")) == 0
    assert simulate("ab").measured == simulate(None).measured
