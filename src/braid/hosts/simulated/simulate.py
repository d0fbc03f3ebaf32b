"""Run queries over a network in virtual time: what would they give, what crosses each link, how late would it be?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import TypeVar, overload

import pyarrow as pa

from braid.errors import PlanError, StreamError, did_you_mean
from braid.hosts.local.streams import Data, LocalStreams
from braid.hosts.simulated.measuring import measured_statistics
from braid.hosts.simulated.run import PlannedQuery, Run
from braid.hosts.simulated.simulation import Simulation, Simulations
from braid.language import bind, parse
from braid.model.duration import Duration
from braid.model.moment import moment_of
from braid.model.network.topology import Topology
from braid.model.query import Query
from braid.model.statistics import Statistics
from braid.planning.cost.models import CostModel
from braid.planning.deployment import Deployment
from braid.planning.plan import plan as plan_query
from braid.planning.planners import Planner
from braid.runtime.sites.compiling import compile_deployment
from braid.runtime.sites.intake import compile_intakes, intake_channels
from braid.runtime.sites.offer import OfferedStream, offered_streams

Option = TypeVar("Option")

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
    crash_rate: float = 0.0,
    shards: int = 1,
    reuse: bool = False,
    since: int | datetime | None = None,
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
    crash_rate: float = 0.0,
    shards: int = 1,
    reuse: bool = False,
    since: int | datetime | Mapping[str, int | datetime | None] | None = None,
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
    crash_rate: float = 0.0,
    shards: int = 1,
    reuse: bool = False,
    since: int | datetime | Mapping[str, int | datetime | None] | None = None,
) -> Simulation | Simulations:
    """Run queries over streams that start at the sites of a network, in virtual time.

    `sites` maps streams to the sites where they start, `sink` is where the results are wanted (by default where they
    are made). The query is planned with `planner` and `cost`, from `statistics` or, where none are given, from figures
    measured on the streams themselves; `plan` runs a deployment that was planned before. Each stream comes in batches
    of `batch_rows` rows, or in 50 batches. `seed` decides how long sites pause before they look at what has arrived.
    With a `crash_rate`, the process of a site dies with this chance at each of several points of every step, and comes
    back from its last checkpoint. `shards` is how many parts the work of each join is split into.

    `query` may be several queries by name, which run at the same time; then `sink`, `statistics` and `since` may go by
    name too. With `reuse`, later queries use the joins of earlier ones where that is cheaper. With `since`, a time or
    microseconds of event time, a query has the combinations all of whose rows start then or later.
    """
    planning = _Planning(LocalStreams(streams, time, lateness), topology, sites, cost, reuse)
    queries = query if isinstance(query, Mapping) else {ONLY: query}
    for name, wanted in queries.items():
        moment = moment_of(_option(since, name))
        planning.add(name, wanted, _option(sink, name), planner, plan, _option(statistics, name), moment)
    simulations = Run(planning.planned, topology, batch_rows, seed, crash_rate, shards).simulations()
    return simulations if isinstance(query, Mapping) else simulations[ONLY]


def _option(given: Option | Mapping[str, Option], name: str) -> Option:
    if not isinstance(given, Mapping):
        return given
    if name not in given:
        raise PlanError(f"query '{name}' is not among those that an option is given for: {', '.join(given)}; add it")
    return given[name]


class _Planning:
    """Plans queries one after the other, later ones with what earlier ones offer."""

    def __init__(
        self,
        streams: LocalStreams,
        topology: Topology,
        sites: Mapping[str, str],
        cost: str | CostModel,
        reuse: bool,
    ) -> None:
        self._streams = streams
        self._topology = topology
        self._sites = sites
        self._cost = cost
        self._reuse = reuse
        self._rows: dict[str, pa.RecordBatch] = {}
        self._offers: list[OfferedStream] = []
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
    ) -> None:
        bound = bind(parse(query) if isinstance(query, str) else query, self._streams)
        self._read()
        rows = {name: self._rows[name] for name in (source.declared.name for source in bound.inputs)}
        origins = self._origins(bound)
        offers = [offer for offer in self._offers if offer.since <= since] if self._reuse else []
        if plan is None:
            known = replace(statistics or measured_statistics(bound, rows), sites=origins)
            advertised = [offer.advertisement for offer in offers]
            plan = plan_query(
                bound, known, self._topology, planner=planner, cost=self._cost, sink=sink, advertised=advertised
            )
        elif plan.query != bound:
            raise PlanError("the plan is for another query, or for other streams; plan this query, or leave plan= out")
        intakes = compile_intakes(name, bound, origins, since)
        channels = intake_channels(name, origins)
        work = compile_deployment(f"{name} #1", plan, channels, since=since, offers=offers, shared=self._reuse)
        self._offers += offered_streams(work)
        self.planned[name] = PlannedQuery(plan, rows, origins, intakes, work)

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
