"""Run queries over a network in virtual time: what would they give, what crosses each link, how late would it be?"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cache
from typing import TypeVar, overload

import pyarrow as pa

from braid.adapt.controller import Policy, policy_of
from braid.errors import PlanError, StreamError, did_you_mean
from braid.hosts.local.streams import Data, LocalStreams
from braid.hosts.simulated.faults import Faults, faults_of
from braid.hosts.simulated.measuring import measured_statistics
from braid.hosts.simulated.run import Run
from braid.hosts.simulated.settings import PlannedQuery, Settings
from braid.hosts.simulated.simulation import Simulation, Simulations
from braid.language import bind, parse
from braid.model.advertisement import Advertisement
from braid.model.checks import check, is_figure, shown
from braid.model.duration import Duration
from braid.model.moment import moment_of
from braid.model.network.controllers import check_controller
from braid.model.network.topology import Topology, check_rewiring
from braid.model.output import EVENT_TIME_COLUMN
from braid.model.query import Query
from braid.model.statistics import Statistics
from braid.planning.assumed import WITHOUT_STATISTICS
from braid.planning.cost.models import CostModel
from braid.planning.deployment import Deployment
from braid.planning.plan import plan as plan_query
from braid.planning.plan import refuse_views
from braid.planning.planners import Planner
from braid.planning.relocation import moved
from braid.runtime.migration.succession import check_movable
from braid.runtime.sites.deployed import Deployed
from braid.runtime.sites.fitting import fitted
from braid.runtime.sites.offer import OfferedStream
from braid.runtime.sites.weaker_join import RunningPlan, SharedJoin, reading_offers, shared_joins

Option = TypeVar("Option")

Move = tuple[str, str]
"""A join, named as `explain()` shows it, and the site to move it to."""

ONLY = "query"
"""The name of a query that has none."""


@overload
def simulate(
    query: str | Query,
    streams: Mapping[str, Data],
    topology: Topology,
    *,
    sites: Mapping[str, str],
    sink: str | None = None,
    planner: str | Planner = "exact",
    cost: str | CostModel = "network_usage",
    plan: Deployment | None = None,
    statistics: Statistics | None = None,
    time: str | Mapping[str, str] = "ts",
    lateness: Duration | Mapping[str, Duration] = "0 seconds",
    batch_rows: int | None = None,
    seed: int = 0,
    faults: Faults | str | None = None,
    shards: int = 1,
    reuse: bool = False,
    since: int | datetime | None = None,
    changes: Sequence[tuple[float, Deployment | Topology | str | Move]] = (),
    controller: str | None = "central",
    adapt: bool | Policy = False,
) -> Simulation: ...


@overload
def simulate(
    query: Mapping[str, str | Query],
    streams: Mapping[str, Data],
    topology: Topology,
    *,
    sites: Mapping[str, str],
    sink: str | Mapping[str, str | None] | None = None,
    planner: str | Planner = "exact",
    cost: str | CostModel = "network_usage",
    statistics: Statistics | Mapping[str, Statistics] | None = None,
    time: str | Mapping[str, str] = "ts",
    lateness: Duration | Mapping[str, Duration] = "0 seconds",
    batch_rows: int | None = None,
    seed: int = 0,
    faults: Faults | str | None = None,
    shards: int = 1,
    reuse: bool = False,
    since: int | datetime | Mapping[str, int | datetime | None] | None = None,
    starts: Mapping[str, float] | None = None,
) -> Simulations: ...


def simulate(
    query: str | Query | Mapping[str, str | Query],
    streams: Mapping[str, Data],
    topology: Topology,
    *,
    sites: Mapping[str, str],
    sink: str | Mapping[str, str | None] | None = None,
    planner: str | Planner = "exact",
    cost: str | CostModel = "network_usage",
    plan: Deployment | None = None,
    statistics: Statistics | Mapping[str, Statistics] | None = None,
    time: str | Mapping[str, str] = "ts",
    lateness: Duration | Mapping[str, Duration] = "0 seconds",
    batch_rows: int | None = None,
    seed: int = 0,
    faults: Faults | str | None = None,
    shards: int = 1,
    reuse: bool = False,
    since: int | datetime | Mapping[str, int | datetime | None] | None = None,
    starts: Mapping[str, float] | None = None,
    changes: Sequence[tuple[float, Deployment | Topology | str | Move]] = (),
    controller: str | None = "central",
    adapt: bool | Policy = False,
) -> Simulation | Simulations:
    """Run queries over streams that start at the sites of a network, in virtual time.

    `sites` maps streams to the sites where they start, `sink` is where the results are wanted (by default where they
    are made). The query is planned with `planner` and `cost`, from `statistics` or, where none are given, from figures
    measured on the streams themselves; `plan` runs a deployment that was planned before. Each stream comes in batches
    of `batch_rows` rows, or in 50 batches. `seed` decides how long sites pause before they look at what has arrived.
    `faults` says what goes wrong: `Faults`, or the name of a profile. `shards` is how many parts the work of each join
    is split into.

    `changes` are plan changes of the query while it runs: pairs of seconds since the first row, and the plan to change
    to, the planner that makes it, a move `("a ⋈ b", "lyon")` of one join of the plan given before, or a topology whose
    links have other figures from then on. The sites agree on each change through a coordinator, or, with the
    `controller` "distributed", by telling each other.

    With `adapt`, True or a policy, the plan also changes by itself. With the central controller, sites report to the
    coordinator, which plans anew with `planner` ("exact" if that is "at_sink"). With the distributed one, sites put the
    probe sequences of a greedy plan in order among themselves.

    `query` may be several queries by name, which run at the same time; then `sink`, `statistics` and `since` may go by
    name too. With `reuse`, later queries use the joins of earlier ones where that is cheaper; where a later query needs
    weaker filters than an earlier one has, that one changes its plan. With `since`, a time or microseconds of event
    time, a query has the combinations all of whose rows start then or later. Queries that `starts` names are deployed
    so many seconds after the first row, the others at the beginning.
    """
    policy = _policy(adapt, controller)
    rewirings = [(moment, wanted) for moment, wanted in changes if isinstance(wanted, Topology)]
    for _, rewired in rewirings:
        check_rewiring(topology, rewired)
    plans = [(moment, wanted) for moment, wanted in changes if not isinstance(wanted, Topology)]
    planning = _Planning(LocalStreams(streams, time, lateness), topology, sites, cost, reuse, batch_rows)
    queries = query if isinstance(query, Mapping) else {ONLY: query}
    moments = _moments(starts, queries)
    for name, wanted in queries.items():
        moment = moment_of(_option(since, name))
        planning.add(
            name,
            wanted,
            _option(sink, name),
            planner,
            plan,
            _option(statistics, name),
            moment,
            plans,
            moments.get(name, 0.0),
        )
    agreeing = controller or "central"
    settings = Settings(batch_rows, seed, faults_of(faults), shards, agreeing, policy, rewirings)
    run = Run(planning.planned, topology, settings)
    simulations = run.simulations()
    return simulations if isinstance(query, Mapping) else simulations[ONLY]


def _policy(adapt: bool | Policy, controller: str | None) -> Policy | None:
    """When plans change by themselves; None if they do not."""
    if controller is not None:
        check_controller(controller)
    check(adapt, bool | Policy, "adapt", PlanError)
    return None if controller is None else policy_of(adapt)


def _moments(starts: Mapping[str, float] | None, queries: Collection[str]) -> dict[str, float]:
    """The seconds after which queries start."""
    check(starts, Mapping | None, "the starts of a simulation", PlanError)
    for name, seconds in (starts or {}).items():
        if name not in queries:
            raise PlanError(f"there is no query '{name}' that could start later; {did_you_mean(name, queries)}")
        if not is_figure(seconds):
            raise PlanError(
                f"query '{name}' starts some seconds after the first row, not {shown(seconds)}; give 0 or more"
            )
    return {name: float(seconds) for name, seconds in (starts or {}).items()}


def _option(given: Option | Mapping[str, Option], name: str) -> Option:
    if not isinstance(given, Mapping):
        return given
    if name not in given:
        raise PlanError(f"query '{name}' is not among those that an option is given for: {', '.join(given)}; add it")
    return given[name]


def _offered(query: PlannedQuery) -> list[OfferedStream]:
    """The joins that a query makes, and those that it shares with queries before it."""
    shared = (offer for join in query.joins for offer in join.deployed().offers)
    return [*query.deployed.offers, *shared]


class _Planning:
    """Plans queries one after the other, later ones with what earlier ones offer."""

    def __init__(
        self,
        streams: LocalStreams,
        topology: Topology,
        sites: Mapping[str, str],
        cost: str | CostModel,
        reuse: bool,
        batch_rows: int | None,
    ) -> None:
        self._streams = streams
        self._topology = topology
        self._sites = sites
        self._cost = cost
        self._reuse = reuse
        self._batch_rows = batch_rows
        self._rows: dict[str, pa.RecordBatch] = {}
        self.planned: dict[str, PlannedQuery] = {}

    def add(
        self,
        name: str,
        query: str | Query,
        sink: str | None,
        planner: str | Planner,
        plan: Deployment | None,
        statistics: Statistics | None,
        since: int,
        changes: Sequence[tuple[float, Deployment | str | Move]] = (),
        starts: float = 0.0,
    ) -> None:
        bound = bind(parse(query) if isinstance(query, str) else query, self._streams)
        refuse_views(bound)
        self._read()
        rows = {name: self._rows[name] for name in (source.declared.name for source in bound.inputs)}
        origins = self._origins(bound)
        earlier = [other for other in self.planned.values() if self._reuse and other.starts <= starts]
        offers = [offer for other in earlier for offer in _offered(other) if offer.since <= since]
        running = [RunningPlan(other.deployed, other.deployment) for other in earlier]
        weaker = [one for owner in running for offer, one in owner.weakenable() if offer.since <= since]
        advertised = [offer.advertisement for offer in offers]

        @cache
        def known() -> Statistics:
            return replace(statistics or measured_statistics(bound, rows, self._batch_rows), sites=origins)

        def planned(wanted: Deployment | str | Planner, advertised: Sequence[Advertisement] = advertised) -> Deployment:
            if isinstance(wanted, Deployment):
                return fitted(wanted, name, bound, origins, self._topology)
            return plan_query(
                bound, known(), self._topology, planner=wanted, cost=self._cost, sink=sink, advertised=advertised
            )

        if changes:
            check_movable(bound)
        first = planned(plan or planner)
        later: list[tuple[float, Deployment]] = []
        for moment, wanted in sorted(changes, key=lambda change: change[0]):
            before = later[-1][1] if later else first
            later.append((moment, moved(before, *wanted) if isinstance(wanted, tuple) else planned(wanted)))
        better = "exact" if planner == WITHOUT_STATISTICS else planner

        def deployed(
            plan: Deployment, offers: Sequence[OfferedStream] = (), joins: Sequence[SharedJoin] = ()
        ) -> PlannedQuery:
            streams = [source.declared for source in bound.sources]
            without_plan = Deployed.of(
                name,
                bound.text,
                streams,
                bound,
                origins,
                event_time=EVENT_TIME_COLUMN,
                shards=1,
                since=since,
                shared=self._reuse,
            )
            whole = without_plan.with_generation(without_plan.planned(plan, offers=offers, shared=self._reuse))
            return PlannedQuery(plan, whole, rows, origins, later, better, starts, since, offers, joins)

        # Without `reuse` a plan that needs weaker filters is refused where it is compiled.
        wanted = planned(planner, [*advertised, *weaker]) if weaker and plan is None else first
        joins = (shared_joins(wanted, running, offers) or []) if self._reuse else []
        if joins:
            offers += [offer for join in joins for offer in join.deployed().offers]
            first = reading_offers(wanted, offers)
        alone = deployed(planned(planner, [])) if offers and not plan else None
        self.planned[name] = replace(deployed(first, offers, joins), alone=alone)

    def _read(self) -> None:
        """Read the streams that were asked for, each once: it may be an iterator."""
        for arrival in self._streams.read:
            if arrival.stream.name not in self._rows:
                self._rows[arrival.stream.name] = arrival.all_rows()

    def _origins(self, query: Query) -> dict[str, str]:
        """The site where each source of the query starts, by alias."""
        origins = {}
        for source in query.sources:
            name = source.declared.name
            if name not in self._sites:
                raise StreamError(f"no site is given for stream '{name}'; {did_you_mean(name, self._sites)}")
            self._topology.position(self._sites[name])
            origins[source.alias] = self._sites[name]
        return origins
