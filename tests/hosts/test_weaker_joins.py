"""A later query that needs rows which the filters of a running one leave out: what is deployed and announced then."""

from itertools import count
from typing import Any

import pyarrow as pa
import pytest

from braid.channels.batch import Batch
from braid.channels.memory import MemoryChannels
from braid.engine.segment import Segment
from braid.errors import BraidError
from braid.hosts.delays import Delays
from braid.hosts.deployment_request import DeploymentRequest
from braid.hosts.drops import Drops
from braid.hosts.registry import Registry
from braid.model.network.topology import Topology
from braid.model.statistics import Statistics
from braid.model.stream import Stream
from braid.model.window import FOREVER
from braid.planning.reuse.weakening import reading
from braid.runtime.sites.deployed import KIND, Deployed
from braid.runtime.sites.weaker_join import RunningPlan
from tests.hosts.conftest import KNOWN, PAIRS, SCHEMA, SECOND, TRIPLES, before_write, check_readers, declared, reuses

STRICT = f"{PAIRS} AND a.n > 10"
WEAK = f"{TRIPLES} AND a.n > 5"
JOIN = "strict weaker"


def deploy(registry: Registry, name: str, text: str, since: int = -FOREVER) -> Deployed:
    sink = "lyon" if name == "strict" else "nice"
    return registry.deploy(DeploymentRequest(text, name, sink, statistics=KNOWN, reuse=True, since=since))


def shared_join(registry: Registry) -> Deployed:
    """The only join with weaker filters."""
    (join,) = (one for name, one in registry.deployments().items() if name.startswith(JOIN))
    return join


def read(deployed: Deployed) -> set[str]:
    return {channel for channel, _ in deployed.subscriptions()}


def test_the_join_runs_for_both_queries(registry: Registry) -> None:
    strict = deploy(registry, "strict", STRICT)
    weak = deploy(registry, "weak", WEAK)
    join = shared_join(registry)
    assert "`a`.`n` > 5" in join.text
    assert join.is_dropped and not join.intakes and not join.results
    assert Deployed.from_json(join.to_json()) == join
    assert read(join) >= {f"{strict.unique_name}: a at paris, all rows", f"{strict.unique_name}: b at lyon"}
    assert reuses(weak) and not join.published.isdisjoint(read(weak))
    changing = registry.changes.under_way("strict")
    assert changing is not None and changing.change.reason == "another query needs weaker filters"
    after = registry.deployment("strict").generation(changing.change.new)
    assert not join.published.isdisjoint(after.read)
    assert after.read.isdisjoint(strict.joined)
    assert set(registry.users(join)) == {"strict", "weak"}


def test_a_running_query_reads_the_first_join_that_has_all_it_needs(registry: Registry) -> None:
    """Of several that are offered, whatever the others are."""
    other = registry.deploy(DeploymentRequest(PAIRS.replace("a.k = b.k", "a.n = b.n"), "other", "lyon", reuse=True))
    strict = deploy(registry, "strict", STRICT)
    running = RunningPlan(strict, registry.plans.running(strict))
    deploy(registry, "weak", WEAK)
    (offer,) = shared_join(registry).offers
    plan = running.reading([*other.offers, offer])
    assert other.offers and plan is not None
    assert plan.explain() == reading(running.plan, offer.advertisement).explain()  # type: ignore[union-attr]
    assert "(reused)" in plan.explain()
    assert running.reading(other.offers) is None


def test_only_rows_that_one_of_the_queries_needs_leave_their_site(registry: Registry) -> None:
    """The filtered stream starts at paris and is joined at lyon."""
    deploy(registry, "strict", STRICT)
    deploy(registry, "weak", WEAK)
    work = shared_join(registry).current.sites["paris"].work
    (relay,) = work.fragments.values()
    assert [str(predicate) for predicate in relay.local_query.predicates] == ["a.n > 5"]
    assert relay.output is not None and set(relay.output.schema.names) == {"ts", "k", "n"}


def test_a_query_of_which_others_read_a_join_keeps_its_plan(registry: Registry) -> None:
    strict = deploy(registry, "strict", STRICT)
    third = deploy(registry, "third", f"{TRIPLES} AND a.n > 20")
    assert not strict.joined.isdisjoint(read(third))
    weak = deploy(registry, "weak", WEAK)
    assert not shared_join(registry).published.isdisjoint(read(weak))
    assert registry.changes.under_way("strict") is None
    assert registry.deployment("strict") == strict


def test_a_query_that_is_changed_offers_nothing(registry: Registry) -> None:
    """What it offers ends with its plan. The weaker join stays."""
    strict = deploy(registry, "strict", STRICT)
    deploy(registry, "weak", WEAK)
    third = deploy(registry, "third", f"{PAIRS} AND a.n > 20")
    assert strict.joined.isdisjoint(read(third))
    assert not shared_join(registry).published.isdisjoint(read(third))


def test_a_program_that_died_on_the_way_leaves_what_the_next_one_uses(
    registry: Registry, channels: MemoryChannels, monkeypatch: Any
) -> None:
    deploy(registry, "strict", STRICT)

    def announce_new(kind: str, key: str, document: dict[str, Any]) -> bool:
        if (kind, key) == (KIND, "weak"):
            raise BraidError("the program dies here")
        return MemoryChannels.announce_new(channels, kind, key, document)

    with monkeypatch.context() as patch, pytest.raises(BraidError, match="dies here"):
        patch.setattr(channels, "announce_new", announce_new)
        deploy(registry, "weak", WEAK)
    join = shared_join(registry)
    again = declared(channels)
    weak = deploy(again, "weak", WEAK)
    assert shared_join(again) == join
    assert not join.published.isdisjoint(read(weak))
    check_readers(again, channels)


def test_two_programs_that_need_the_same_join_at_the_same_moment_share_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the first one has written last when the second one does everything."""
    happened = True
    for number in count():
        channels = MemoryChannels()
        registry, other = declared(channels), declared(channels)
        deploy(registry, "strict", STRICT)

        def meanwhile(other: Registry = other) -> None:
            nonlocal happened
            happened = True
            deploy(other, "other", f"{WEAK} AND c.n > 3")

        happened = False
        with monkeypatch.context() as patch:
            before_write(patch, number, meanwhile)
            weak = deploy(registry, "weak", f"{WEAK} AND c.n < 50")
        if not happened:
            break
        assert registry.deployment("weak") == weak
        join = shared_join(registry)
        assert all(not join.published.isdisjoint(read(registry.deployment(name))) for name in ("weak", "other"))
        assert registry.changes.under_way("strict") is not None
        assert set(registry.users(join)) == {"strict", "weak", "other"}
        check_readers(registry, channels)
    assert number > 20


def test_two_programs_that_deploy_the_same_query_at_the_same_moment_deploy_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    happened = True
    for number in count():
        channels = MemoryChannels()
        registry, other = declared(channels), declared(channels)
        deploy(registry, "strict", STRICT)

        def meanwhile(other: Registry = other) -> None:
            nonlocal happened
            happened = True
            deploy(other, "weak", WEAK)

        happened = False
        with monkeypatch.context() as patch:
            before_write(patch, number, meanwhile)
            weak = deploy(registry, "weak", WEAK)
        if not happened:
            break
        assert registry.deployment("weak") == weak == deploy(other, "weak", WEAK)
        assert not shared_join(registry).published.isdisjoint(read(weak))
        check_readers(registry, channels)


def test_a_join_that_was_made_in_vain_serves_its_query_later(registry: Registry) -> None:
    """The program died before the running query began to change."""
    deploy(registry, "strict", STRICT)
    deploy(registry, "weak", WEAK)
    strict = registry.deployment("strict")
    registry.announce(strict.without_generation(2))
    registry.changes.forget("strict")
    third = deploy(registry, "third", f"{PAIRS} AND a.n > 7")
    join = shared_join(registry)
    assert not join.published.isdisjoint(read(third))
    assert registry.changes.under_way("strict") is not None


@pytest.mark.parametrize(("since", "is_shared"), [(-FOREVER, False), (59 * SECOND, False), (60 * SECOND, True)])
def test_a_join_that_would_lack_rows_is_not_made(
    registry: Registry, channels: MemoryChannels, since: int, is_shared: bool
) -> None:
    strict = deploy(registry, "strict", STRICT)
    for name in strict.unfiltered_channels.values():
        channel = channels.open(name)
        for number, moment in enumerate([10 * SECOND, 60 * SECOND]):
            rows = pa.RecordBatch.from_pydict({"any": [1]})
            segments = (Segment("any", rows, newest=moment),)
            channel.publish(Batch.behind(channel.last(), name, number, segments, moment))
            for subscriber in channel.released():
                channel.release(subscriber, number)
    weak = deploy(registry, "weak", WEAK, since)
    assert reuses(weak) is is_shared
    if is_shared:
        assert {offer.since for offer in shared_join(registry).offers} == {60 * SECOND}
        changing = registry.changes.under_way("strict")
        assert changing is not None and changing.change.since == 60 * SECOND


def test_what_is_dropped_goes_on_for_the_others(registry: Registry) -> None:
    deploy(registry, "strict", STRICT)
    deploy(registry, "weak", WEAK)
    left = registry.withdraw(registry.deployment("strict"))
    assert left is not None and left.is_dropped
    assert set(left.intakes) == {"paris", "lyon"}
    assert not left.results and left.offers == []
    assert Deployed.from_json(left.to_json()) == left
    assert registry.withdraw(registry.deployment("weak")) is None
    assert registry.users(shared_join(registry)) == []
    assert registry.withdraw(shared_join(registry)) is None
    assert registry.withdraw(registry.deployment("strict")) is None
    assert registry.deployments() == {}


def test_what_the_later_query_reads_of_the_running_one_stays() -> None:
    """It reads a weaker join, and another join as it is: the running query must not end that one."""
    channels = MemoryChannels()
    registry = Registry(Topology.from_links([("hub", "far", 0.05)]), channels)
    for name in "abcd":
        registry.declare("hub", Stream(name, SCHEMA, "ts"))
    streams = ", ".join(f"{name} [RANGE 9 SECONDS]" for name in "abcd")
    text = f"SELECT a.n AS an, d.n AS dn FROM {streams} WHERE a.k = b.k AND c.k = d.k"
    rare, often = dict.fromkeys(["a.k = b.k", "c.k = d.k"], 1e-5), dict.fromkeys(["b.n = c.n", "a.n = d.n"], 0.9)
    known = Statistics(
        rates=dict.fromkeys("abcd", 100.0), selectivities={**rare, **often, "a.n > 5": 0.9, "a.n > 10": 0.9}
    )

    def deploy_at_far(name: str, condition: str) -> Deployed:
        request = DeploymentRequest(f"{text} AND {condition}", name, "far", statistics=known, reuse=True)
        return registry.deploy(request)

    strict = deploy_at_far("strict", "b.n = c.n AND a.n > 10")
    weak = deploy_at_far("weak", "a.n = d.n AND a.n > 5")
    assert any(channel.startswith(f"{strict.unique_name} #1") for channel in read(weak))
    assert any(channel.startswith(JOIN) for channel in read(weak))
    assert registry.changes.under_way("strict") is None


def test_a_running_query_can_be_dropped_while_it_changes_to_the_weaker_join(
    registry: Registry, channels: MemoryChannels
) -> None:
    """The drop may have begun before the change did: nothing of the change is left."""
    before = deploy(registry, "strict", STRICT)
    deploy(registry, "weak", WEAK)
    assert registry.changes.under_way("strict") is not None
    remaining = registry.withdraw(before)
    assert remaining is not None, "the weaker join reads its intakes"
    assert registry.changes.under_way("strict") is None
    readers = {reader for channel in shared_join(registry).published for reader in channels.open(channel).released()}
    assert not any(reader.startswith(f"{before.unique_name} #") for reader in readers)


def test_a_drop_that_dies_can_be_done_again(
    registry: Registry, channels: MemoryChannels, monkeypatch: pytest.MonkeyPatch
) -> None:
    deploy(registry, "strict", STRICT)
    weak = deploy(registry, "weak", WEAK)

    def stop_everywhere() -> None:
        for site in weak.sites:
            drops.stopped("weak", site)

    class Died(Exception):  # noqa: N818
        pass

    def die(*_: object) -> None:
        raise Died

    drops = Drops(registry, channels)
    drops.ask("weak")
    stop_everywhere()
    with monkeypatch.context() as patched, pytest.raises(Died):
        patched.setattr(channels, "remove", die)
        drops.end(weak, 1.0)
    again = Drops(Registry(registry.topology, channels), channels)
    again.end(again._registry.deployment("weak"), 1.0)
    assert "weak" not in registry.deployments()
    released = [reader for name in shared_join(registry).published for reader in channels.open(name).released()]
    assert not any(reader.startswith("weak") for reader in released)


def test_a_silent_stream_with_a_filter_is_told_of(registry: Registry, channels: MemoryChannels) -> None:
    """Its intake publishes it twice; only one of the channels has the name of the stream."""
    strict = deploy(registry, "strict", STRICT)
    warnings: list[str] = []
    delays = Delays(registry, warnings.append)
    delays.look(strict, 0.0)
    for number, time in enumerate((10.0, 100.0)):
        (channel,) = (outlet.channel for outlet in strict.intakes["lyon"].work.outlets)
        rows = pa.RecordBatch.from_pydict({"any": [1]})
        segments = (Segment("any", rows, newest=number),)
        channels.open(channel).publish(Batch.behind(channels.open(channel).last(), channel, number, segments, number))
        delays.look(strict, time)
    assert any("stream 'a' brings no rows at site 'paris'" in warning for warning in warnings)
