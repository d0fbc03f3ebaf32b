"""Queries that share joins in one simulated network give what each of them gives alone."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import braid
from braid.language import parse
from braid.model.moment import moment_of
from braid.model.statistics import Statistics
from braid.model.tree import Reused, leaves
from braid.planning.deployment import Deployment
from braid.runtime.migration.change import Phase
from braid.testing import assert_same_rows, oracle, random_case, without_late_rows
from braid.testing.cluster import counts_rows
from braid.testing.network_cases import over_a_network
from braid.testing.networks import NINE_SITES
from braid.testing.similar_queries import random_query
from braid.testing.three_streams import SECONDS, three_tables
from tests.hosts.simulated.conftest import LINE, START, airport, random_faults, table

PLANNERS = ("exact", "exhaustive", "left_deep", "top_down", "bottom_up", "npc", "phased", "in_network", "relaxation")
"""The planners that reuse derived streams."""


def reuses(deployment: Deployment) -> bool:
    tree = deployment.tree
    return tree is not None and any(isinstance(leaf, Reused) for leaf in leaves(tree))


def check_similar(seed: int) -> int:
    """Run five queries, most of them much like the one before; returns how many reuse joins of those before."""
    random, tables = Random(seed), three_tables(seed)
    asked = random_query(random)
    texts, sinks, known, since = {}, {}, {}, {}
    for number in range(5):
        name = f"q{number}"
        # What a query selects is there for later ones.
        texts[name] = asked.selecting("id", "k", "j", "v") if random.random() < 0.5 else asked.text
        sinks[name] = random.choice([None, "n1", "n4"])
        since[name] = random.choice([None, None, moment_of(START + timedelta(seconds=random.randrange(SECONDS)))])
        query = braid.parse(texts[name])
        known[name] = Statistics(
            rates=dict.fromkeys("abc", 10),
            lengths=dict.fromkeys(query.aliases, 8),
            selectivities={str(predicate): random.choice([0.5, 0.1, 0.01]) for predicate in query.predicates},
        )
        asked = random_query(random) if random.random() < 0.2 else asked.changed(random)
    simulations = braid.simulate(
        texts,
        tables,
        NINE_SITES,
        sites={stream: f"n{random.randrange(9)}" for stream in "abc"},
        sink=sinks,
        planner=random.choice(PLANNERS),
        statistics=known,
        lateness=f"{SECONDS} seconds",
        batch_rows=random.randint(1, 5),
        seed=seed,
        faults=random.choice([None, "crashes"]),
        shards=random.randint(1, 3),
        reuse=True,
        since=since,
    )
    for name, text in texts.items():
        message = f"seed {seed}, {name} since {since[name]}: {text}\n{simulations[name].deployment.explain()}"
        assert_same_rows(simulations[name].results, oracle(text, tables, since=since[name]), message=message)
    return sum(reuses(simulation.deployment) for simulation in simulations.queries.values())


def test_similar_queries_share_joins() -> None:
    assert sum(map(check_similar, range(20))) >= 20


@pytest.mark.sweep
@pytest.mark.parametrize("part", range(50))
def test_sweep_of_similar_queries(part: int) -> None:
    for seed in range(1_000 + 20 * part, 1_020 + 20 * part):
        check_similar(seed)


def cases(count: int, first: int) -> Iterator[int]:
    """Seeds of cases with a join, without windows that count rows."""
    for seed in range(first, first + 1_000_000):
        case = random_case(seed)
        if count and len(case.streams) > 1 and not counts_rows(case):
            count -= 1
            yield seed
        elif not count:
            return


def check_twice(seed: int) -> None:
    """The same query three times: whole, reusing the first, and reusing it since a later time."""
    case = random_case(seed)
    rows = case.batch_rows or max(1, *(table.num_rows for table in case.streams.values()))
    case = replace(case, batch_rows=rows)
    laid_out = over_a_network(case, seed)
    in_time = without_late_rows(case)
    since = middle(case.streams, case.time)
    simulations = braid.simulate(
        dict.fromkeys(["first", "again", "later"], case.text),
        case.streams,
        laid_out.topology,
        faults="crashes" if seed % 3 == 0 else None,
        reuse=True,
        since={"first": None, "again": None, "later": since},
        **laid_out.options(),
    )
    for name, moment in {"first": None, "again": None, "later": since}.items():
        expected = oracle(case.text, in_time, time=case.time, since=moment)
        message = f"{name}, since {moment}: {case!r}\n{simulations[name].deployment.explain()}"
        assert_same_rows(simulations[name].results, expected, message=message)


def middle(streams: dict[str, pa.Table], time: dict[str, str]) -> int:
    """The median event time of all rows; 0 if there is none."""
    times: list[datetime] = []
    for name, rows in streams.items():
        times += rows.column(time[name]).drop_null().to_pylist()
    return moment_of(sorted(times)[len(times) // 2]) if times else 0


@pytest.mark.parametrize("part", range(4))
def test_a_query_that_runs_already_serves_the_same_query(part: int) -> None:
    for seed in cases(10, first=1_000 * part):
        check_twice(seed)


@pytest.mark.sweep
@pytest.mark.parametrize("part", range(50))
def test_sweep_of_queries_that_run_already(part: int) -> None:
    for seed in cases(20, first=100_000 + 1_000 * part):
        check_twice(seed)


SITES = {"flights": "paris", "bags": "nice", "scans": "lyon"}
GATES = """SELECT f.num, f.gate, b.tag FROM flights [RANGE 5 SECONDS] f, bags [RANGE 3 SECONDS] b
           WHERE f.num = b.flight"""
SCANNED = """SELECT x.gate, y.tag, s.belt FROM flights [RANGE 4 SECONDS] x, bags [RANGE 2 SECONDS] y,
             scans [RANGE 1 SECOND] s WHERE x.num = y.flight AND y.tag = s.tag AND x.num < 7"""
"""Shorter windows, other aliases, one more condition and one more stream."""


def airport_with_scans(rows: int = 100) -> dict[str, pa.Table]:
    scans = table(rows, tag=[row + row % 3 for row in range(rows)], belt=[row % 4 for row in range(rows)])
    return {**airport(rows), "scans": scans}


def test_bytes_that_are_not_shipped_twice_are_counted() -> None:
    streams, queries = airport_with_scans(), {"gates": GATES, "scanned": SCANNED}
    alone = braid.simulate(queries, streams, LINE, sites=SITES, sink="lyon")
    shared = braid.simulate(queries, streams, LINE, sites=SITES, sink="lyon", reuse=True)
    for simulations in (alone, shared):
        for name, text in queries.items():
            assert_same_rows(simulations[name].results, oracle(text, streams))
    assert reuses(shared["scanned"].deployment)
    # Flights and bags come to lyon for the first query, and the second one ships nothing.
    assert shared["scanned"].links == {}
    assert shared["gates"].links == shared.links
    saved = shared.saved(alone)
    assert saved == {link: traffic.bytes for link, traffic in alone["scanned"].links.items()}
    assert all(count > 0 for count in saved.values())


def test_a_shared_join_ships_no_column_that_nobody_asked_for() -> None:
    """The join is at nice, the results go to paris: only the columns that they have cross the links."""
    streams, sites = airport_with_scans(), {**SITES, "flights": "nice"}
    text = "SELECT b.tag FROM flights [NOW] f, bags [NOW] b WHERE f.num = b.flight AND f.gate = 'A1'"
    alone = braid.simulate({"tags": text}, streams, LINE, sites=sites, sink="paris")
    shared = braid.simulate({"tags": text}, streams, LINE, sites=sites, sink="paris", reuse=True)
    assert alone.links
    assert shared.saved(alone) == dict.fromkeys(alone.links, 0)


def test_columns_that_a_join_does_not_carry_cannot_be_reused() -> None:
    """The keys and what the query selects are at the site of the join; the gate never left paris."""
    streams = airport_with_scans()
    sinks = {"tags": "nice", "numbers": "nice", "gates": "nice"}
    queries = {
        "tags": GATES.replace("f.num, f.gate, b.tag", "b.tag"),
        "numbers": GATES.replace("f.num, f.gate, b.tag", "f.num, b.tag, b.ts"),
        "gates": GATES,
    }
    shared = braid.simulate(queries, streams, LINE, sites=SITES, sink=sinks, reuse=True)
    for name, text in queries.items():
        assert_same_rows(shared[name].results, oracle(text, streams))
    assert {name: reuses(shared[name].deployment) for name in queries} == {
        "tags": False,
        "numbers": True,
        "gates": False,
    }


def test_one_join_may_serve_a_query_twice() -> None:
    pair = (
        "SELECT l.tag, r.tag AS other FROM bags [RANGE 1 SECOND] l, bags [RANGE 1 SECOND] r WHERE l.flight = r.flight"
    )
    chain = ", ".join(f"bags [RANGE 1 SECOND] {alias}" for alias in "abcd")
    twice = (
        f"SELECT a.tag, d.tag AS last FROM {chain} WHERE a.flight = b.flight AND c.flight = d.flight AND b.tag = c.tag"
    )
    streams, queries = airport_with_scans(60), {"pairs": pair, "twice": twice}
    known = {
        name: Statistics(
            rates={"bags": 10},
            selectivities={str(predicate): 0.01 for predicate in braid.parse(text).predicates},
        )
        for name, text in queries.items()
    }
    shared = braid.simulate(
        queries, streams, LINE, sites=SITES, sink="paris", reuse=True, statistics=known, cost="network_usage"
    )
    for name, text in queries.items():
        assert_same_rows(shared[name].results, oracle(text, streams))
    tree = shared["twice"].deployment.tree
    assert tree is not None
    assert len([leaf for leaf in leaves(tree) if isinstance(leaf, Reused)]) == 2


@pytest.mark.parametrize("slide", ["", " SLIDE 700 MILLISECONDS"])
def test_a_query_may_begin_at_a_moment(slide: str) -> None:
    streams, text = airport_with_scans(), GATES.replace("5 SECONDS", f"5 SECONDS{slide}")
    counts = []
    for seconds in (0, 4, 20):
        since = START + timedelta(seconds=seconds)
        simulation = braid.simulate(text, streams, LINE, sites=SITES, sink="lyon", since=since)
        assert_same_rows(simulation.results, oracle(text, streams, since=moment_of(since)))
        counts.append(simulation.results.num_rows)
    assert counts[0] > counts[1] > counts[2] == 0


def test_a_query_does_not_reuse_what_begins_later_than_itself() -> None:
    streams = airport_with_scans()
    moments = {name: START + timedelta(seconds=at) for name, at in {"late": 5, "early": 2, "later": 7}.items()}
    shared = braid.simulate(
        dict.fromkeys(moments, GATES), streams, LINE, sites=SITES, sink="lyon", reuse=True, since=moments
    )
    for name, since in moments.items():
        assert_same_rows(shared[name].results, oracle(GATES, streams, since=moment_of(since)))
    assert [reuses(simulation.deployment) for simulation in shared.queries.values()] == [False, False, True]


@pytest.mark.parametrize("starts", [0.0, 3.0, 7.0])
def test_a_running_query_shares_a_join_with_weaker_filters(starts: float) -> None:
    streams, since = airport_with_scans(), START + timedelta(seconds=starts)
    queries = {"strict": f"{GATES} AND b.tag > 50", "weak": f"{GATES} AND b.tag > 20"}
    later = {"strict": None, "weak": since}
    alone, shared = (
        braid.simulate(
            queries, streams, LINE, sites=SITES, sink="lyon", reuse=reuse, since=later, starts={"weak": starts}
        )
        for reuse in (False, True)
    )
    assert_same_rows(shared["strict"].results, oracle(queries["strict"], streams))
    assert_same_rows(shared["weak"].results, oracle(queries["weak"], streams, since=moment_of(since)))
    assert reuses(shared["weak"].deployment)
    (change,) = shared["strict"].changes
    assert (change.phase, change.reason) == (Phase.DONE, "another query needs weaker filters")
    # Flights and bags come to lyon once.
    assert shared["weak"].links == {}
    saved = shared.saved(alone)
    assert all(count > 0 for count in saved.values())


def test_a_query_that_needs_what_is_gone_computes_its_own_join() -> None:
    streams, queries = airport_with_scans(), {"strict": f"{GATES} AND b.tag > 50", "weak": f"{GATES} AND b.tag > 20"}
    shared = braid.simulate(queries, streams, LINE, sites=SITES, sink="lyon", reuse=True, starts={"weak": 7.0})
    for name, text in queries.items():
        assert_same_rows(shared[name].results, oracle(text, streams))
    assert not reuses(shared["weak"].deployment)
    assert shared["strict"].changes == ()


SHORT = ("RANGE 3 SECONDS", "RANGE 2 SECONDS", "RANGE 1 SECOND", "NOW")


def check_weaker(seed: int) -> int:
    """Queries one after the other, each like the one before with weaker filters; returns how many joins they share."""
    random = Random(f"weaker {seed}")
    tables = {name: rows.sort_by("ts") for name, rows in three_tables(seed, 40).items()}
    asked = random_query(random).within(random, SHORT).filtered(random)
    texts, sinks, known, since, starts = {}, {}, {}, {}, {}
    begins = 0.0
    for number in range(3):
        name = f"q{number}"
        texts[name] = asked.selecting("id", "k", "j", "v") if random.random() < 0.5 else asked.text
        sinks[name] = random.choice([None, "n1", "n4"])
        begins += random.choice([0.0, random.uniform(0, SECONDS / 2)]) if number else 0.0
        starts[name] = begins
        since[name] = random.choice([None, moment_of(START + timedelta(seconds=begins))])
        query = braid.parse(texts[name])
        known[name] = Statistics(
            rates=dict.fromkeys("abc", 10),
            lengths=dict.fromkeys(query.aliases, 8),
            selectivities={str(predicate): random.choice([0.5, 0.1, 0.01]) for predicate in query.predicates},
        )
        asked = asked.weakened(random)
    simulations = braid.simulate(
        texts,
        tables,
        NINE_SITES,
        sites={stream: f"n{random.randrange(9)}" for stream in "abc"},
        sink=sinks,
        planner=random.choice(PLANNERS),
        statistics=known,
        lateness=f"{random.randrange(3)} seconds",
        batch_rows=random.randint(1, 5),
        seed=seed,
        faults=random.choice([None, random_faults(seed)]),
        shards=random.randint(1, 3),
        reuse=True,
        since=since,
        starts=starts,
    )
    for name, text in texts.items():
        message = f"seed {seed}, {name} since {since[name]}, starts {starts[name]}: {text}"
        assert_same_rows(simulations[name].results, oracle(text, tables, since=since[name]), message=message)
    changes = [change for simulation in simulations.queries.values() for change in simulation.changes]
    return sum(change.phase is Phase.DONE for change in changes)


def test_filters_of_running_queries_are_weakened() -> None:
    assert sum(map(check_weaker, range(20))) >= 5


@pytest.mark.sweep
@pytest.mark.parametrize("part", range(50))
def test_sweep_of_filters_that_are_weakened(part: int) -> None:
    for seed in range(1_000 + 20 * part, 1_020 + 20 * part):
        check_weaker(seed)


def test_a_filter_of_a_running_deployment_is_not_weakened() -> None:
    """The plan is refused by name: a deployment that runs would have to change without losing a row."""
    streams = airport_with_scans()
    first = braid.simulate(f"{GATES} AND f.num < 3", streams, LINE, sites=SITES, sink="lyon").deployment
    query = parse(GATES, {source.declared.name: source.declared for source in first.query.sources})
    known = Statistics(
        rates={"f": 10, "b": 10}, selectivities={"f.num = b.flight": 0.1}, sites={"f": "paris", "b": "nice"}
    )
    plan = braid.plan(query, known, LINE, sink="lyon", advertised=first.advertise(weaken=True))
    assert plan.weakened
    with pytest.raises(braid.PlanError, match=r"to let more through than f\.num < 3"):
        braid.simulate(GATES, streams, LINE, sites=SITES, sink="lyon", plan=plan)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        (
            {"sink": {"gates": "lyon"}},
            braid.PlanError,
            "query 'scanned' is not among those",
        ),
        ({"starts": {"gate": 1.0}}, braid.PlanError, "no query 'gate' that could start later; did you mean 'gates'"),
        ({"starts": {"gates": -1.0}}, braid.PlanError, "starts some seconds after the first row, not -1.0"),
        ({"starts": {"gates": "soon"}}, braid.PlanError, "starts some seconds after the first row, not 'soon'"),
        ({"starts": 3.0}, braid.PlanError, "the starts of a simulation"),
        ({"since": 1.5}, braid.BraidError, "a moment is a datetime, or a whole number of microseconds"),
    ],
)
def test_wrong_arguments_are_refused(changes: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        braid.simulate({"gates": GATES, "scanned": SCANNED}, airport_with_scans(), LINE, **({"sites": SITES} | changes))
