"""Plans with a tree for each part of the keys change between sites while they run, whatever goes wrong meanwhile."""

import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import count, islice

import pytest

import braid
from braid.hosts.simulated.simulation import Simulation
from braid.hosts.simulated.trace import told
from braid.language import parse
from braid.model.duration import duration_text
from braid.model.query import Query
from braid.model.stream import Stream
from braid.planning.deployment import Deployment
from braid.planning.partition.functions import FUNCTIONS
from braid.planning.planners import Planner
from braid.planning.solution.written import divided_inputs, written_of
from braid.runtime.migration.change import Phase
from braid.testing import Case, assert_same_rows, oracle, random_case, without_late_rows
from braid.testing.always_dividing import AlwaysDividing
from braid.testing.cluster import counts_rows
from braid.testing.network_cases import NetworkCase, over_a_network
from tests.hosts.simulated.conftest import EAGER, random_faults


def bound(case: Case) -> Query:
    return parse(
        case.text,
        {
            name: Stream(name, table.schema, case.time[name], case.lateness[name])
            for name, table in case.streams.items()
        },
    )


def is_divided(plan: Deployment) -> bool:
    return bool(divided_inputs(written_of(plan.solution)))


def planned(laid_out: NetworkCase, query: Query, planner: str | Planner, number: int) -> Deployment:
    """A plan by figures of its own."""
    known = replace(laid_out, seed=laid_out.seed + number).statistics(query)
    return braid.plan(query, known, laid_out.topology, sink=laid_out.sink, planner=planner)


def seeds_with_parts(first: int) -> Iterator[int]:
    """The seeds of cases that a plan can divide the keys of."""
    for seed in count(first):
        case = random_case(seed)
        if not counts_rows(case) and is_divided(planned(over_a_network(case, seed), bound(case), AlwaysDividing(3), 0)):
            yield seed


def check(seed: int) -> Simulation:
    """Plans with parts and others, one after the other, also by themselves, give what the oracle gives."""
    chance = random.Random(f"changes of parts {seed}")
    case = random_case(seed)
    rows = case.batch_rows or max(1, *(table.num_rows // 4 for table in case.streams.values()))
    case = replace(case, batch_rows=rows)
    laid_out, query = over_a_network(case, seed), bound(case)
    dividing = AlwaysDividing(chance.randint(2, 5), chance.choice(sorted(FUNCTIONS)))
    planners = [dividing, *(chance.choice([dividing, "exact", "greedy", "pmjoin"]) for _ in range(2))]
    chance.shuffle(planners)
    first, *others = [planned(laid_out, query, planner, number) for number, planner in enumerate(planners)]
    moments = [moment for name, table in case.streams.items() for moment in table[case.time[name]].drop_null()]
    times = [moment.as_py() for moment in moments]
    seconds = (max(times) - min(times)).total_seconds() if times else 0.0
    simulation = braid.simulate(
        case.text,
        case.streams,
        laid_out.topology,
        sites=laid_out.sites,
        sink=laid_out.sink,
        plan=first,
        planner=dividing,
        changes=[(chance.uniform(0, 0.7 * seconds), plan) for plan in others],
        adapt=chance.choice([False, EAGER]),
        faults=random_faults(seed),
        time=case.time,
        lateness={name: duration_text(length) for name, length in case.lateness.items()},
        batch_rows=case.batch_rows,
        seed=seed,
        shards=1 + seed % 3,
    )
    expected = oracle(case.text, without_late_rows(case), time=case.time)
    assert_same_rows(simulation.results, expected, message=f"{case!r}\n{told(simulation.timeline)}")
    return simulation


@pytest.mark.parametrize("part", range(2))
def test_plans_with_parts_change_and_give_what_the_oracle_gives(part: int) -> None:
    divided = 0
    for seed in islice(seeds_with_parts(10_000 * part), 12):
        changes = check(seed).changes
        assert all(change.phase in (Phase.DONE, Phase.ABORTED) for change in changes)
        divided += sum(change.phase is Phase.DONE and is_divided(change.plan) for change in changes)
    assert divided >= 2


@pytest.mark.sweep
@pytest.mark.parametrize("part", range(100))
def test_sweep_of_plans_with_parts(part: int) -> None:
    for seed in islice(seeds_with_parts(1_000_000 + 10_000 * part), 100):
        check(seed)
