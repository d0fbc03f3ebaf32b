"""What is announced in a network: which joins a later query may read, and what is left of a query that is dropped."""

from contextlib import suppress
from dataclasses import replace
from itertools import count

import pyarrow as pa
import pytest

import braid
from braid.channels.batch import Batch
from braid.channels.memory import MemoryChannels
from braid.engine.segment import Segment
from braid.errors import RunError
from braid.hosts.deployment_request import DeploymentRequest
from braid.hosts.drops import Drops
from braid.hosts.network_status import carried_sizes, link_traffic
from braid.hosts.registry import RESULTS, Registry
from braid.model.stream import Stream
from braid.model.window import FOREVER
from braid.planning.deployment import Deployment
from braid.planning.relocation import moved
from braid.runtime.migration.change import Answered, Fact, Promise, Ready, Verdict
from braid.runtime.sites.deployed import Deployed
from braid.runtime.sites.generation import Reign
from tests.hosts.conftest import (
    KNOWN,
    PAIRS,
    SCHEMA,
    SECOND,
    TRIANGLE,
    TRIPLES,
    before_write,
    check_readers,
    declared,
    reuses,
)


def pairs(registry: Registry, *, reuse: bool = True, since: int = -FOREVER) -> Deployed:
    request = DeploymentRequest(PAIRS, "pairs", "lyon", statistics=KNOWN, reuse=reuse, since=since)
    return registry.deploy(request)


def triples(registry: Registry, name: str = "triples", since: int = -FOREVER) -> Deployed:
    return registry.deploy(DeploymentRequest(TRIPLES, name, "nice", statistics=KNOWN, reuse=True, since=since))


def publish(channels: MemoryChannels, deployed: Deployed, seconds: int) -> None:
    """Publish one row that starts then on the channel of the join, and have everybody read it."""
    (offer,) = deployed.offers
    channel = channels.open(offer.channel)
    last = channel.last()
    rows = pa.RecordBatch.from_pydict({"any": [1]})
    number = 0 if last is None else last.number + 1
    moment = seconds * SECOND
    channel.publish(Batch.behind(last, offer.channel, number, (Segment("any", rows, newest=moment),), moment))
    for subscriber in channel.released():
        channel.release(subscriber, number)


def test_a_later_query_reads_the_channel_of_a_join(registry: Registry, channels: MemoryChannels) -> None:
    first = pairs(registry)
    (offer,) = first.offers
    assert (offer.keep, offer.since) == (20 * SECOND, -FOREVER)
    second = triples(registry)
    assert reuses(second)
    readers = {subscriber for channel, subscriber in second.subscriptions() if channel == offer.channel}
    assert readers == {f"{second.unique_name} #1 at lyon"}
    assert readers <= set(channels.open(offer.channel).released())
    assert Deployed.from_json(second.to_json()) == second
    assert registry.users(first) == ["triples"]


def test_a_query_that_does_not_share_its_joins_still_offers_what_it_ships(registry: Registry) -> None:
    assert pairs(registry, reuse=False).offers == []
    known = DeploymentRequest(PAIRS, "shipped", "nice", planner="exact", statistics=KNOWN)
    (offer,) = registry.deploy(known).offers
    assert {str(column) for column in offer.advertisement.columns or ()} == {"a.n", "b.n"}


def would_reuse(registry: Registry, since: int = -FOREVER) -> bool:
    """Whether a query that begins then reads the join of another one; it is gone afterwards."""
    deployed = triples(registry, since=since)
    assert registry.withdraw(deployed) is None
    return reuses(deployed)


def test_only_a_channel_that_holds_everything_is_reused(registry: Registry, channels: MemoryChannels) -> None:
    first = pairs(registry)
    publish(channels, first, 5)
    assert would_reuse(registry)
    for seconds in (20, 40):
        publish(channels, first, seconds)
    # Only what is not older than the longest window is there: rows that start later than 20 seconds.
    (offer,) = first.offers
    assert [entry.newest for entry in channels.open(offer.channel).entries(-1)] == [40 * SECOND]
    assert not would_reuse(registry)
    assert not would_reuse(registry, since=20 * SECOND)
    assert would_reuse(registry, since=20 * SECOND + 1)


def test_a_join_that_begins_later_than_the_query_is_not_reused(registry: Registry) -> None:
    pairs(registry, since=7 * SECOND)
    assert not would_reuse(registry, since=6 * SECOND)
    assert would_reuse(registry, since=7 * SECOND)


def test_the_joins_of_a_later_plan_serve_only_queries_that_begin_when_it_did(registry: Registry) -> None:
    """Its channels are whole: nothing was removed. But rows that had ended when the plan began are not in its joins."""
    deployed = pairs(registry, reuse=False)
    known = replace(KNOWN, sites=deployed.origins)
    plan = braid.plan(deployed.query, known, TRIANGLE, sink="nice", planner="exact")
    changed = deployed.planned(plan, first=30 * SECOND)
    reigns = replace(deployed.current, reign=Reign(until=31 * SECOND)), replace(changed, reign=Reign(31 * SECOND))
    registry.announce(deployed.with_generation(*reigns))
    (offer,) = registry.deployment("pairs").offers
    assert offer.since == 30 * SECOND
    assert registry.offers(30 * SECOND) == [offer]
    assert registry.offers(30 * SECOND - 1) == []


def test_what_others_read_outlives_a_dropped_query(registry: Registry, channels: MemoryChannels) -> None:
    first = pairs(registry)
    second = triples(registry)
    remaining = registry.withdraw(first)
    assert remaining is not None
    # a comes from paris to the join at lyon; nobody reads results any more.
    assert (set(remaining.sites), remaining.results, remaining.is_dropped) == ({"paris", "lyon"}, [], True)
    assert registry.deployments()["pairs"] == remaining
    with pytest.raises(braid.BraidError, match="query 'pairs' was dropped, and triples still use its joins"):
        pairs(registry)
    assert registry.withdraw(second) is None
    assert registry.users(remaining) == []
    assert registry.withdraw(remaining) is None
    assert registry.deployments() == {}
    assert not reuses(triples(registry))


def test_a_query_that_is_dropped_leaves_what_it_reads(registry: Registry, channels: MemoryChannels) -> None:
    first = pairs(registry)
    second = triples(registry)
    assert registry.withdraw(second) is None
    (offer,) = first.offers
    reader = f"{first.unique_name} #1 at lyon"
    assert list(channels.open(offer.channel).released()) == [reader, f"publisher of {reader}"]
    assert registry.withdraw(first) is None


def test_traffic_is_counted_on_the_path_that_the_plan_chose(channels: MemoryChannels) -> None:
    """For money it is not the fastest one. What was planned is told beside what was carried."""
    dear = braid.Topology.from_links(
        [
            ("paris", "nice", {"latency": 0.001, "price_per_gb": 0.9}),
            ("paris", "lyon", {"latency": 0.1, "price_per_gb": 0.1}),
            ("lyon", "nice", {"latency": 0.1, "price_per_gb": 0.2}),
        ]
    )
    registry = Registry(dear, channels)
    for name, site in {"a": "paris", "b": "nice"}.items():
        registry.declare(site, Stream(name, SCHEMA, "ts"))
    known = replace(KNOWN, sizes={"a": 20, "b": 30})
    request = DeploymentRequest(PAIRS, "pairs", "nice", planner="at_sink", cost="money", statistics=known)
    deployed = Deployed.from_json(registry.deploy(request).to_json())
    (channel,) = {channel for channel, _ in deployed.subscriptions() if ": a at paris" in channel}
    rows = pa.RecordBatch.from_pydict({"any": [1, 2]})
    channels.open(channel).publish(Batch.behind(None, channel, 0, (Segment("a", rows),), 0))
    traffic = link_traffic(deployed, dear, channels)
    assert {link: (carried.rows, carried.planned) for link, carried in traffic.items()} == {
        "paris - lyon": (2, 200.0),
        "lyon - nice": (2, 200.0),
    }
    assert carried_sizes(deployed, channels) == {"a": traffic["paris - lyon"].bytes / 2}


def test_two_deployments_under_one_name_have_nothing_in_common(registry: Registry, channels: MemoryChannels) -> None:
    """Not what is stored of them either: a site may have kept its part of the first one."""
    first = pairs(registry)
    assert Deployed.from_json(first.to_json()) == first
    assert registry.deployment("pairs") == first == pairs(registry), "it is deployed already"
    assert registry.withdraw(first) is None
    second = pairs(registry)
    assert (second.name, second.text, second.current.bill) == (first.name, first.text, first.current.bill)
    assert first.published.isdisjoint(second.published)
    readers = [
        {subscriber for _, subscriber in one.subscriptions() if subscriber != one.reader} for one in (first, second)
    ]
    assert readers[0].isdisjoint(readers[1])
    assert {spec.deployment for spec in first.specs}.isdisjoint(spec.deployment for spec in second.specs)


def test_a_query_is_dropped_when_all_its_sites_have_stopped_it(registry: Registry, channels: MemoryChannels) -> None:
    drops = Drops(registry, channels)
    deployed = pairs(registry)
    triples(registry)
    with pytest.raises(braid.BraidError, match="no query 'pars' is deployed; did you mean 'pairs'"):
        drops.drop("pars", wait=0)
    for stopped in ((), ("paris",)):
        for site in stopped:
            drops.stopped("pairs", site)
        missing = sorted(deployed.sites - set(stopped))
        with pytest.raises(RunError, match=f"site {' and site '.join(missing)} has not stopped"):
            drops.drop("pairs", wait=0)
    with pytest.raises(braid.BraidError, match="query 'pairs' is being dropped"):
        pairs(registry)
    for site in deployed.sites:
        drops.stopped("pairs", site)
    remaining = drops.drop("pairs", wait=0)
    assert remaining is not None
    assert drops.asked() == frozenset()
    with pytest.raises(braid.BraidError, match="'pairs' is dropped already; its joins go on for triples"):
        drops.drop("pairs", wait=0)
    # What was said about the first request does not count for another one, also if it comes late.
    channels.announce("stopped", "triples at paris", {"request": "an earlier one"})
    drops.ask("triples")
    assert "paris" in drops.running(registry.deployments()["triples"])
    for name, query in registry.deployments().items():
        drops.ask(name)
        for site in query.sites:
            drops.stopped(name, site)
    assert drops.drop("triples", wait=0) is None
    assert registry.deployments() == {}


def test_a_request_that_a_killed_program_has_left_is_forgotten_by_the_next_drop(
    registry: Registry, channels: MemoryChannels
) -> None:
    drops = Drops(registry, channels)
    drops.ask("pairs")
    drops.stopped("pairs", "paris")
    with pytest.raises(braid.BraidError, match="'pairs' is being dropped; wait until it is, drop it again if nobody"):
        pairs(registry)
    assert drops.drop("pairs", wait=0) is None
    assert channels.announced("stopped") == {}
    pairs(registry)


def other_plan(registry: Registry) -> Deployment:
    """Another plan for the query that `pairs` deploys."""
    deployed = registry.deployment("pairs")
    known = replace(KNOWN, sites=deployed.origins)
    return braid.plan(deployed.query, known, TRIANGLE, sink="nice", planner="at_sink")


def test_a_plan_change_begins_with_a_generation_that_answers_for_nothing_yet(registry: Registry) -> None:
    pairs(registry, reuse=False)
    change = registry.begin_change("pairs", other_plan(registry), "a test", 0.0)
    deployed = registry.deployment("pairs")
    assert [generation.reign for generation in deployed.generations] == [Reign(), None]
    assert (change.old, change.new, deployed.current.number) == (1, 2, 1)
    with pytest.raises(braid.PlanError, match="is under way, and is preparing"):
        registry.begin_change("pairs", other_plan(registry), "a test", 0.0)


def test_a_plan_that_has_just_changed_is_not_changed_from_the_old_one(registry: Registry) -> None:
    """All sites have answered, and the coordinator has not looked since: the old plan is announced as the current."""
    pairs(registry, reuse=False)
    change = registry.begin_change("pairs", other_plan(registry), "a test", 0.0)
    facts: list[Fact] = [
        *map(Ready, change.preparing),
        Verdict(go=True),
        *(Promise(site, 7) for site in change.answering),
    ]
    for fact in [*facts, *map(Answered, change.answering)]:
        registry.changes.say(change, fact)
    assert registry.changes.under_way("pairs") is None
    with pytest.raises(braid.PlanError, match="has just changed, and its coordinator has not announced that yet"):
        registry.begin_change("pairs", other_plan(registry), "another test", 0.0)


def test_a_program_that_dies_while_it_deploys_is_completed_by_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    class Died(Exception):  # noqa: N818
        pass

    def die() -> None:
        raise Died

    for number in count():
        channels = MemoryChannels()
        registry = declared(channels)
        pairs(registry)
        with monkeypatch.context() as patch:
            before_write(patch, number, die)
            try:
                triples(registry)
                has_died = False
            except Died:
                has_died = True
        again = declared(channels)
        deployed = triples(again)
        assert reuses(deployed)
        assert channels.announced(RESULTS)["triples"]["channels"].keys() == set(deployed.results)
        check_readers(again, channels)
        if not has_died:
            break
    assert number > 10


def is_changing(registry: Registry) -> bool:
    """Whether `pairs` changes its plan, and nobody has given that up."""
    state = registry.changes.under_way("pairs")
    return state is not None and state.verdict is None


@pytest.mark.parametrize("change_is_first", [True, False])
def test_a_query_keeps_its_plan_or_nobody_reads_its_joins(
    change_is_first: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One program changes the plan, and at the same moment another one deploys a query that reads a join of it."""
    outcomes = set()
    happened = True

    def change(registry: Registry) -> None:
        with suppress(braid.PlanError):
            registry.begin_change("pairs", other_plan(registry), "a test", 0.0)

    for number in count():
        channels = MemoryChannels()
        registry, other = declared(channels), declared(channels)
        first = pairs(registry)

        def meanwhile(other: Registry = other) -> None:
            nonlocal happened
            happened = True
            (triples if change_is_first else change)(other)

        happened = False
        with monkeypatch.context() as patch:
            before_write(patch, number, meanwhile)
            (change if change_is_first else triples)(registry)
        if not happened:
            break
        second = registry.deployment("triples")
        outcomes.add((reuses(second), is_changing(registry)))
        assert reuses(second) is not first.joined.isdisjoint({channel for channel, _ in second.subscriptions()})
        check_readers(registry, channels)
    assert outcomes <= {(True, False), (False, True), (False, False)}
    assert len(outcomes) > 1


def test_what_is_no_plan_is_refused_and_the_query_goes_on(registry: Registry) -> None:
    deployed = pairs(registry, reuse=False)
    with pytest.raises(braid.PlanError, match=r"not 'exact'; to name a planner, write planner=\.\."):
        registry.begin_change("pairs", "exact", "a test", 0.0)  # type: ignore[arg-type]
    request = DeploymentRequest(PAIRS, "pairs", "lyon", "exact", statistics="known")  # type: ignore[arg-type]
    with pytest.raises(braid.PlanError, match="the statistics of a plan must be a"):
        registry.plans.plan(request, deployed.query, deployed.origins)
    with pytest.raises(braid.BraidError, match="no query 'pears' is deployed; did you mean 'pairs'"):
        registry.begin_change("pears", other_plan(registry), "a test", 0.0)
    assert registry.deployment("pairs") == deployed
    assert registry.changes.under_way("pairs") is None


def test_a_change_that_is_refused_keeps_nothing_for_the_plan(registry: Registry, channels: MemoryChannels) -> None:
    deployed = pairs(registry, reuse=False)
    before = {channel: channels.open(channel).released() for channel in deployed.published}
    for name in deployed.current.outside:
        channels.open(name).publish(Batch.behind(None, name, 0, (), FOREVER))
    with pytest.raises(braid.PlanError, match="a stream has ended"):
        registry.begin_change("pairs", other_plan(registry), "a test", 0.0)
    assert {channel: channels.open(channel).released() for channel in deployed.published} == before
    assert registry.deployment("pairs") == deployed


def test_what_new_joins_ship_to_fill_windows_counts_as_copied(registry: Registry, channels: MemoryChannels) -> None:
    """The windows of streams that a site has not read yet, and what a join ships of the time before the change."""
    deployed = pairs(registry, reuse=False)

    def publish(name: str, *seconds: int) -> int:
        """A batch with rows that start at these seconds."""
        channel = channels.open(name)
        last = channel.last()
        starts = pa.array([second * SECOND for second in seconds], pa.timestamp("us", "UTC"))
        rows = pa.RecordBatch.from_pydict({"start of a": starts, "start of b": starts})
        newest = max(seconds) * SECOND
        batch = Batch.behind(
            last, name, 0 if last is None else last.number + 1, (Segment("a", rows, newest=newest),), newest
        )
        channel.publish(batch)
        return len(batch.data)

    windows = {name: publish(name, 10) for name in deployed.current.outside}
    known = replace(KNOWN, sites=deployed.origins)
    at_sink = braid.plan(deployed.query, known, TRIANGLE, sink="nice", planner="at_sink")
    plan = moved(at_sink, "a ⋈ b", "paris")
    change = registry.begin_change("pairs", plan, "a test", 0.0)
    shipped = windows[f"{deployed.unique_name}: b at lyon"]
    assert change.copied == shipped
    joined = f"{deployed.unique_name} #2: a+b at paris"
    filling = publish(joined, 3, 5) + publish(joined, 8, 8, 9, 20) * 3 / 4
    publish(joined, 21)
    assert registry.copied(registry.deployment("pairs"), change) == shipped + round(filling)


def test_a_batch_without_rows_copies_nothing(registry: Registry, channels: MemoryChannels) -> None:
    """A plan that is changed before any stream has brought something: the first batch of a new join is empty."""
    deployed = registry.deploy(DeploymentRequest(TRIPLES, "triples", "nice", statistics=KNOWN))
    change = registry.begin_change("triples", moved(registry.plans.running(deployed), "a ⋈ b", "paris"), "a test", 0.0)
    assert change.since == -FOREVER
    joined = f"{deployed.unique_name} #2: a+b at paris"
    channels.open(joined).publish(Batch.behind(None, joined, 0, (), -FOREVER))
    assert registry.copied(registry.deployment("triples"), change) == change.copied


def test_a_stream_cannot_start_at_an_unknown_site(registry: Registry) -> None:
    with pytest.raises(braid.BraidError, match="the topology has no site 'lion'; did you mean 'lyon'"):
        registry.declare("lion", Stream("d", SCHEMA, "ts"))
