"""Both controllers: from the same figures, the site that plans and the sites among themselves come to the same plan."""

import json
import random
from collections import deque
from typing import Any

import pytest

from braid.adapt.controller import Policy
from braid.adapt.network.central import CentralController, Report
from braid.adapt.network.distributed import PATIENCE, DistributedController
from braid.adapt.network.figures import INTAKES, SiteFigures
from braid.adapt.network.messages import Send, SiteController
from braid.adapt.network.proposal import Comparison, Proposal
from braid.adapt.network.token import Token
from braid.language import parse
from braid.model.network.generators import random_geometric
from braid.model.query import Query
from braid.model.statistics import Sized, Statistics
from braid.planning.cost.figures import Expected
from braid.planning.cost.models import cost_model
from braid.planning.deployment import Deployment
from braid.planning.order.greedy import Greedy
from braid.planning.problem import Problem

EAGER = Policy(threshold=0.0, horizon=1e12, drift=0.0)
"""Tells and compares everything."""


class Obedient(Comparison):
    """Changes to any plan that is found, also if it does not pay."""

    def weigh(self, best: Deployment, problem: Problem, time: float) -> Proposal:
        return Proposal(best, "it was found", 1.0, 1.0, 0.0)


class Network:
    """Carries messages between the controllers of some sites, one after the other."""

    def __init__(self, controllers: dict[str, SiteController]) -> None:
        self.controllers = controllers
        self.sent: list[Send] = []
        self.proposals: list[Proposal] = []

    def observe(self, figures: SiteFigures, time: float) -> None:
        queue = deque(self.controllers[figures.site].observe(figures, time))
        while queue:
            outcome = queue.popleft()
            if isinstance(outcome, Send):
                self.sent.append(outcome)
                queue.extend(self.controllers[outcome.target].receive(carried(outcome.content), time))
            else:
                self.proposals.append(outcome)


def carried(content: Any) -> Any:
    """What arrives: a token travels as JSON."""
    if not isinstance(content, Token):
        return content
    return Token.from_json(json.loads(json.dumps(content.to_json())), 1 + len(content.sequence.order))


class Case:
    """A query whose streams start at sites of a random network, with random figures."""

    def __init__(self, seed: int) -> None:
        self.chance = chance = random.Random(seed)
        count = chance.randint(2, 6)
        names = [f"s{number}" for number in range(count)]
        joined = [(names[chance.randrange(number)], names[number]) for number in range(1, count)]
        keys = ["k", "k"] if chance.random() < 0.5 else ["k", "l"]
        conditions = " AND ".join(f"{one}.{keys[0]} = {other}.{keys[1]}" for one, other in joined)
        sources = ", ".join(f"{name} [RANGE {chance.randint(1, 60)} SECONDS]" for name in names)
        self.query = parse(f"SELECT * FROM {sources} WHERE {conditions}")
        self.topology = random_geometric(count + 1, seed=seed)
        self.sites = dict(zip(names, chance.sample(self.topology.names, count), strict=True))
        self.shares = {
            frozenset((one, other)): 10 ** chance.uniform(-4, 0)
            for group in self.query.graph.classes
            for one in group.sources
            for other in group.sources
            if one < other
        }
        self.sink = chance.choice([*self.topology.names, None])
        self.plan = self._planned(self.statistics(self.rates()))

    def rates(self) -> dict[str, float]:
        return {name: 10 ** self.chance.uniform(0, 3) for name in self.sites}

    def statistics(self, rates: dict[str, float]) -> Statistics:
        sizes = dict.fromkeys(self.sites, 100.0)
        return Statistics(rates, sizes, selectivities=self.shares, sites=self.sites)

    def _planned(self, statistics: Statistics) -> Deployment:
        problem = Problem.of(self.query, statistics, self.topology, cost_model("network_usage"), self.sink)
        return Deployment("greedy", Greedy().plan(problem))

    def best(self, rates: dict[str, float]) -> Deployment:
        return self._planned(self.statistics(rates))

    def figures(self, rates: dict[str, float], reached: int) -> list[SiteFigures]:
        """What each site tells: its own stream, and its pairs with the streams that the query names later."""
        expected = Expected.of(self.query, Statistics(rates, selectivities=dict.fromkeys(self.shares, 1.0)))
        told = []
        for name, site in self.sites.items():
            known: dict[Sized, float] = {name: rates[name]}
            for pair, share in self.shares.items():
                if name in pair:
                    known[pair] = share * expected.rate(mask(self.query, pair)) / 2  # The other site tells half.
            told.append(SiteFigures(site, INTAKES, known, {name: 100.0}, reached=reached))
        return told

    def comparison(self) -> Comparison:
        return Obedient(self.plan, "greedy", EAGER)


def mask(query: Query, streams: frozenset[str]) -> int:
    return sum(1 << query.aliases.index(stream) for stream in streams)


def central(case: Case) -> Network:
    home = case.topology.names[0]
    return Network({site: CentralController(site, home, case.comparison()) for site in case.topology.names})


def distributed(case: Case) -> Network:
    return Network({site: DistributedController(site, case.comparison()) for site in case.topology.names})


def settled(network: Network, case: Case, rates: dict[str, float]) -> Deployment:
    """The plan that runs once every site has told its figures: first some, then those that count."""
    running, time = case.plan, 0.0
    for reached, told in enumerate((case.rates(), rates)):
        for figures in case.figures(told, reached):
            time += 100.0
            network.observe(figures, time)
            for proposal in network.proposals:
                running = proposal.plan
                for controller in network.controllers.values():
                    controller.changed(running, INTAKES, time)
            network.proposals.clear()
    return running


@pytest.mark.parametrize("make", [central, distributed])
def test_controllers_come_to_the_greedy_plan(make: Any) -> None:
    changed = 0
    for seed in range(60):
        case = Case(seed)
        rates = case.rates()
        running, best = settled(make(case), case, rates), case.best(rates)
        assert running.solution.heads == best.solution.heads, seed
        changed += running.solution.heads != case.plan.solution.heads
    assert changed > 40


def test_a_plan_is_proposed_again_until_it_runs() -> None:
    """A proposal may be lost, or refused, and no figure moves any more."""
    for case in map(Case, range(60)):
        network, rates = distributed(case), case.rates()
        if case.best(rates).solution.heads == case.plan.solution.heads:
            continue
        for reached in range(2):  # In the first round, a site does not know of the sites behind it.
            for figures in case.figures(rates, reached):
                network.observe(figures, 0.0)
        if network.proposals:
            break
    last = case.figures(rates, 2)

    def proposed_at(time: float) -> list[Proposal]:
        network.proposals.clear()
        for figures in last:
            network.observe(figures, time)
        return list(network.proposals)

    proposals = proposed_at(PATIENCE + 1.0)
    assert proposals
    assert proposals[-1].plan.solution.heads == case.best(rates).solution.heads
    assert not proposed_at(PATIENCE + 2.0)
    assert len(proposed_at(2 * PATIENCE + 1.0)) == len(proposals)
    for controller in network.controllers.values():
        controller.changed(proposals[-1].plan, INTAKES, 2 * PATIENCE + 2.0)
    assert not proposed_at(4 * PATIENCE), "it runs"


def test_a_site_reports_only_what_has_moved() -> None:
    case = Case(1)
    network = central(case)
    for controller in network.controllers.values():
        controller._comparison.policy = Policy(drift=0.5)  # type: ignore[attr-defined]
    rates = case.rates()
    for figures in case.figures(rates, 1):
        network.observe(figures, 1.0)
    first = len(network.sent)
    for figures in case.figures(rates, 2):
        network.observe(figures, 2.0)
    assert len(network.sent) == first
    assert all(isinstance(sent.content, Report) for sent in network.sent)
