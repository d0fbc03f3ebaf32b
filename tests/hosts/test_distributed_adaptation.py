"""Distributed control as on Spark: programs of sites that have nothing in common but their channels."""

from collections import Counter
from functools import partial
from typing import Any

import pyarrow as pa
import pytest

import braid
from braid.adapt.controller import Policy
from braid.adapt.network.distributed import PATIENCE
from braid.adapt.network.figures import INTAKES, SiteFigures
from braid.adapt.network.proposal import Proposal
from braid.channels.memory import MemoryChannels
from braid.hosts.deployment_request import DeploymentRequest
from braid.hosts.mailbox import Mailbox
from braid.hosts.plan_controllers import PlanControllers
from braid.hosts.registry import Registry
from braid.model.statistics import Statistics
from braid.model.stream import Stream
from braid.planning.solution.written import written_of
from braid.runtime.migration.change import Answered, Promise, Ready, Verdict

SCHEMA = pa.schema({"ts": pa.timestamp("us", "UTC"), "k": pa.int64(), "n": pa.int64()})
NETWORK = braid.Topology.from_links([("paris", "lyon", 0.004), ("lyon", "nice", 0.006), ("paris", "nice", 0.009)])
SITES = {"a": "paris", "b": "lyon", "c": "nice"}
TEXT = """SELECT a.n AS an, b.n AS bn, c.n AS cn
          FROM a [RANGE 9 SECONDS], b [RANGE 9 SECONDS], c [RANGE 9 SECONDS] WHERE a.k = b.k AND b.k = c.k"""
KNOWN = Statistics(rates={"a": 10, "b": 12, "c": 900}, selectivities={"a.k = b.k": 0.001, "b.k = c.k": 0.5})
RATES = {"a": 10.0, "b": 400.0, "c": 9.0}
SHARES = {frozenset("ab"): 0.3, frozenset("bc"): 0.001, frozenset("ac"): 0.01}
EAGER = Policy(threshold=0.0, horizon=float("inf"))


class Programs:
    """The programs of three sites, each with a registry and controllers of its own."""

    def __init__(self, kind: str, policy: Policy = EAGER) -> None:
        self.channels = MemoryChannels()
        self.time = 0.0
        self._kind = kind
        self._policy = policy
        self.registries = {site: Registry(NETWORK, self.channels) for site in SITES.values()}
        for name, site in SITES.items():
            self.registries[site].declare(site, Stream(name, SCHEMA, "ts"))
        request = DeploymentRequest(TEXT, "joined", "lyon", "greedy", statistics=KNOWN)
        self.deployed = self.registries["lyon"].deploy(request)
        self.controllers = {site: self._started(site) for site in SITES.values()}

    def _started(self, site: str) -> PlanControllers:
        return PlanControllers("joined", self.registries[site], self.channels, self._policy, self._kind)

    @property
    def coordinator(self) -> str:
        return next(iter(self.deployed.current.results))

    def restart(self, site: str) -> None:
        self.controllers[site] = self._started(site)

    def tell(self, reached: int = 1) -> None:
        """Each site announces the figures of its stream, and its share of the joins of two streams."""
        for name, site in SITES.items():
            joins = {pair: 9 * share * prod(pair) for pair, share in SHARES.items() if name in pair}
            figures = SiteFigures(site, INTAKES, {name: RATES[name], **joins}, {name: 100.0}, reached=reached)
            self.registries[site].figures.tell("joined", figures)

    def look(self, sites: tuple[str, ...] = ("paris", "lyon", "nice")) -> dict[str, Proposal]:
        """Every program looks once."""
        self.time += 0.25
        looks = {site: self.controllers[site].look(self.deployed, {site}, self.time) for site in sites}
        return {site: proposal for site, proposal in looks.items() if proposal is not None}

    def waiting(self) -> Counter[str]:
        """How many messages wait for each site."""
        kinds = {site: f"messages to {site}" for site in SITES.values()}
        return +Counter({site: len(self.channels.announced(kind)) for site, kind in kinds.items()})

    def found(self, seconds: float = 2 * PATIENCE) -> Proposal:
        """The first proposal, which only the program of the coordinator may get."""
        for _ in range(int(seconds / 0.25)):
            proposals = self.look()
            if proposals:
                assert proposals.keys() == {self.coordinator}
                return proposals[self.coordinator]
        raise AssertionError(f"no plan was proposed in {seconds} seconds")

    def change(self, proposal: Proposal) -> None:
        """Change to a plan, carried out by all sites."""
        registry = self.registries[self.coordinator]
        change = registry.begin_change("joined", proposal.plan, proposal.reason, self.time)
        facts = [*(Ready(site) for site in change.preparing), Verdict(go=True)]
        for fact in (
            *facts,
            *(said(site) for site in change.answering for said in (partial(Promise, until=7), Answered)),
        ):
            registry.changes.say(change, fact)
        registry.retire(registry.deployment("joined"), registry.changes.state(change))
        registry.changes.end(registry.changes.state(change))
        self.deployed = registry.deployment("joined")

    def settled(self) -> Any:
        """The plan that runs when nobody has proposed another one for a while."""
        quiet_since = self.time
        while self.time - quiet_since < 2 * PATIENCE:
            for proposal in self.look().values():
                self.change(proposal)
                quiet_since = self.time
        return self.deployed.current.written


def prod(pair: frozenset[str]) -> float:
    one, other = sorted(pair)
    return RATES[one] * RATES[other]


def greedy(statistics: Statistics | None) -> Any:
    """The greedy plan by some statistics."""
    assert statistics is not None
    known = Statistics(statistics.rates, statistics.sizes, selectivities=statistics.selectivities, sites=SITES)
    query = braid.parse(TEXT, {name: Stream(name, SCHEMA, "ts") for name in SITES})
    return written_of(braid.plan(query, known, NETWORK, planner="greedy", sink="lyon").solution)


def test_sites_among_themselves_come_to_the_plan_of_central_control() -> None:
    plans = {}
    for kind in ("central", "distributed"):
        programs = Programs(kind)
        before = programs.deployed.current.written
        programs.tell()
        plans[kind] = programs.settled()
    assert (
        plans["distributed"]
        == plans["central"]
        == greedy(programs.registries["nice"].plans.statistics(programs.deployed))
    )
    assert plans["distributed"] != before


def test_a_site_knows_of_others_only_what_tokens_bring() -> None:
    programs = Programs("distributed")
    programs.tell()
    programs.channels.withdraw("figures", "joined #0 at paris")
    for _ in range(8):
        programs.look(("lyon",))
    assert programs.waiting()["paris"] > 0
    assert programs.waiting()["lyon"] == 0


def test_nothing_is_proposed_before_the_rates_of_all_streams_are_known() -> None:
    programs = Programs("distributed")
    programs.tell()
    programs.channels.withdraw("figures", "joined #0 at nice")
    assert not any(programs.look() for _ in range(100))
    programs.tell()
    programs.found()


def test_messages_to_a_site_that_is_away_wait_and_do_not_pile_up() -> None:
    programs = Programs("distributed")
    counts = set()
    for reached in range(1, 200):
        programs.tell(reached)
        assert not programs.look(("paris", "lyon"))
        counts.add(programs.waiting()["nice"])
    assert max(counts) <= 2 * 2 * len(SITES)  # two senders, rounds of two sites, and three heads
    programs.restart("nice")
    programs.found()


def test_messages_of_a_query_that_is_dropped_are_removed() -> None:
    programs = Programs("distributed")
    programs.tell()
    programs.look()
    assert programs.waiting()
    programs.registries["paris"].withdraw(programs.deployed)
    assert not programs.waiting()


def test_a_round_whose_tokens_are_lost_begins_again() -> None:
    programs = Programs("distributed")
    programs.tell()
    lost = 0
    for _ in range(8):
        assert not programs.look()
        lost += sum(len(Mailbox("joined", programs.channels).take(site)) for site in SITES.values())
    assert lost > 0
    programs.found()


def test_a_proposal_that_is_lost_is_made_again() -> None:
    """The program of the coordinator takes every proposal, and dies before it begins a change. No figure moves."""
    programs = Programs("distributed")
    programs.tell()
    lost = 0
    while programs.time < 2 * PATIENCE:
        lost += len(programs.look())
        if lost:
            programs.restart(programs.coordinator)
    assert lost > 0
    for _ in range(3):
        programs.found(seconds=PATIENCE + 5.0)
        while programs.look():
            pass


def test_a_plan_that_pays_only_later_is_proposed_later() -> None:
    programs = Programs("distributed", Policy(threshold=0.2, horizon=600.0, overlap=100_000.0))
    programs.tell()
    proposal = programs.found(seconds=60.0)
    assert (proposal.cost_before - proposal.cost_after) * programs.time > proposal.once
    assert programs.time > 2 * PATIENCE


def test_a_query_that_is_pinned_keeps_its_plan() -> None:
    programs = Programs("distributed")
    programs.registries["paris"].figures.pin("joined")
    programs.tell()
    assert not any(programs.look() for _ in range(100))
    programs.registries["paris"].figures.unpin("joined")
    programs.found()


@pytest.mark.parametrize(
    "content",
    [
        {"token": {"round": ["paris", 1]}},
        {"token": {"round": ["paris", 1], "sequence": [0, [1], [0]], "position": 0, "asked": 0}},
        {"proposal": {"generation": 1, "planner": "greedy", "plan": {"sequences": [["a", ["z"], [0]]]}}},
        {"proposal": 7},
        "hello",
    ],
)
def test_garbage_is_rejected_and_changes_nothing(content: Any, caplog: pytest.LogCaptureFixture) -> None:
    programs = Programs("distributed")
    for site in SITES.values():
        Mailbox("joined", programs.channels).send("rome", site, "nonsense", content)
    programs.tell()
    programs.found()
    assert "rejected" in caplog.text or content == "hello"
