"""Run a query over a network in virtual time: what would it give, what would cross each link, how late would it be?"""

from __future__ import annotations

import heapq
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from braid.adapt.observation import Observation
from braid.channels.batch import Batch
from braid.channels.memory import MemoryChannel
from braid.engine.input.lifetime import event_times
from braid.engine.output.groups import group
from braid.engine.segment import Segment
from braid.errors import PlanError, StreamError, did_you_mean
from braid.hosts.local.streams import Data, LocalStreams
from braid.hosts.simulated.links import VirtualLinks
from braid.hosts.simulated.simulation import Event, Simulation
from braid.hosts.simulated.site import SimulatedSite
from braid.language import bind, parse
from braid.model.duration import Duration
from braid.model.network.topology import Topology
from braid.model.plan import Plan
from braid.model.query import Query
from braid.model.statistics import Statistics
from braid.model.window import FOREVER
from braid.planning.assumed import assumed_statistics
from braid.planning.cost.models import CostModel
from braid.planning.deployment import Deployment
from braid.planning.plan import plan as plan_query
from braid.planning.planners import Planner
from braid.runtime.routing import Router
from braid.runtime.shard import Shard, ShardSettings
from braid.runtime.sites.compiling import Outlet, compile_programs
from braid.runtime.sites.site import EVENT_TIME, StreamBatch
from braid.runtime.totals import Totals

SECOND = 1_000_000

BATCHES = 50
"""How many batches each stream comes in, unless the caller says how many rows a batch has."""

PAUSE = 0.01
"""A site takes up to so many seconds before it looks at what has arrived."""


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
) -> Simulation:
    """Run a query over streams that start at the sites of a network, in virtual time.

    `sites` maps streams to the sites where they start, `sink` is where the results are wanted (by default where they
    are made). The query is planned with `planner` and `cost`, from `statistics` or, where none are given, from figures
    measured on the streams themselves; `plan` runs a deployment that was planned before. Each stream comes in batches
    of `batch_rows` rows, or in 50 batches. `seed` decides how long sites pause before they look at what has arrived.
    With a `crash_rate`, the process of a site dies with this chance at each of several points of every step, and comes
    back from its last checkpoint. `shards` is how many parts the work of each join is split into.
    """
    local = LocalStreams(streams, time, lateness)
    bound = bind(parse(query) if isinstance(query, str) else query, local)
    arrivals = {arrival.stream.name: arrival for arrival in local.read}
    rows = {name: arrival.all_rows() for name, arrival in arrivals.items()}
    origins = _origins(bound, topology, sites)
    if plan is None:
        known = replace(statistics or _measured(bound, rows), sites=origins)
        plan = plan_query(bound, known, topology, planner=planner, cost=cost, sink=sink)
    elif plan.query != bound:
        raise PlanError("the plan is for another query, or for other streams; plan this query, or leave plan= out")
    return _Run(plan, bound, rows, origins, topology, batch_rows, seed, crash_rate, shards).simulation()


@dataclass(frozen=True)
class SourceBatch:
    """So many batches of a stream have come where it starts."""

    site: str
    alias: str
    count: int


@dataclass(frozen=True)
class ChannelBatch:
    """A batch has reached the site that subscribes to its channel."""

    site: str
    channel: str
    number: int


@dataclass(frozen=True)
class Look:
    """A site looks at what has arrived."""

    site: str


Happening = SourceBatch | ChannelBatch | Look


def _origins(query: Query, topology: Topology, sites: Mapping[str, str]) -> dict[str, str]:
    """The site where each source of the query starts, by alias."""
    origins = {}
    for source in query.sources:
        name = source.declared.name
        if name not in sites:
            raise StreamError(f"no site is given for stream '{name}'; {did_you_mean(name, sites)}")
        topology.position(sites[name])
        origins[source.alias] = sites[name]
    return origins


def _measured(query: Query, rows: Mapping[str, pa.RecordBatch]) -> Statistics:
    """Rates, sizes, populations and selectivities, by joining all of it at one place first.

    A stream too short to have a rate gets one row a second, and conditions that nothing was compared by are taken to
    hold always: a plan may be bad for that, never wrong.
    """
    shard = Shard(query, Plan.in_text_order(query), ShardSettings())
    totals = Totals(query, Router(()))
    seen = Observation({})
    for batch in _cut(query, rows, None):
        segments = [Segment(name, part, newest=newest) for name, (part, newest) in batch.items()]
        _, report = shard.step(segments)
        totals.add([report])
        seen = Observation.merged([seen, report.observation])
    measured, assumed = totals.statistics(), assumed_statistics(query)
    selectivities = dict(assumed.selectivities)
    for alias in query.aliases:
        selections, stream = query.graph.selections_of(alias), seen.streams.get(alias)
        if selections and stream is not None and stream.timed:
            # Only all conditions on a stream together are measured: the first one stands for them.
            selectivities[str(selections[0])] = stream.entered / stream.timed
    return replace(
        measured,
        rates={**assumed.rates, **measured.rates},
        populations={**assumed.populations, **measured.populations},
        selectivities={**selectivities, **measured.selectivities},
    )


def _cut(
    query: Query, rows: Mapping[str, pa.RecordBatch], batch_rows: int | None
) -> Iterator[dict[str, tuple[pa.RecordBatch, int]]]:
    """The streams batch by batch, each with its newest event time."""
    times = {source.declared.name: source.declared.time for source in query.inputs}
    sizes = {name: batch_rows or max(1, -(-whole.num_rows // BATCHES)) for name, whole in rows.items()}
    steps = max((-(-whole.num_rows // sizes[name]) for name, whole in rows.items()), default=0)
    for step in range(steps):
        batch = {}
        for name, whole in rows.items():
            part = whole.slice(step * sizes[name], sizes[name])
            newest = pc.max(part.column(times[name]))
            moment = int(event_times(pa.array([newest]))[0]) if newest.is_valid else -FOREVER
            batch[name] = (part, moment)
        yield batch


class _Run:
    """One simulation: a queue of moments at which something happens, and the sites it happens to."""

    def __init__(
        self,
        deployment: Deployment,
        query: Query,
        rows: Mapping[str, pa.RecordBatch],
        origins: Mapping[str, str],
        topology: Topology,
        batch_rows: int | None,
        seed: int,
        crash_rate: float,
        shards: int,
    ) -> None:
        self._deployment = deployment
        self._query = query
        self._origins = origins
        self._links = VirtualLinks(topology)
        self._random = random.Random(seed)
        self._crash_rate = crash_rate
        self._now = 0.0
        self._numbers = count()
        self._moments: list[tuple[float, int, Happening]] = []
        self._awake: set[str] = set()
        self._results: list[pa.RecordBatch] = []
        self._latencies: list[NDArray[np.float64]] = []
        self._timeline: list[Event] = []
        self._first, self._last = self._span(rows)
        feeds = self._schedule_sources(rows, batch_rows)
        work = compile_programs(deployment.programs, origins)
        channels = {outlet.channel: MemoryChannel(outlet.channel) for part in work.values() for outlet in part.outlets}
        self._sites = {
            site: SimulatedSite(
                site,
                part,
                {alias: feeds[alias] for alias in part.own},
                channels,
                lambda outlet, batch, site=site: self._send(site, outlet, batch),  # type: ignore[misc]
                lambda point, site=site: self._dies(site, point),  # type: ignore[misc]
                shards,
            )
            for site, part in work.items()
        }

    def _span(self, rows: Mapping[str, pa.RecordBatch]) -> tuple[int, int]:
        """The first and the last event time of all."""
        moments = []
        for source in self._query.sources:
            column = rows[source.declared.name].column(source.declared.time).drop_null()
            if len(column):
                times = event_times(column)
                moments += [int(times.min()), int(times.max())]
        return min(moments, default=0), max(moments, default=0)

    def _schedule_sources(
        self, rows: Mapping[str, pa.RecordBatch], batch_rows: int | None
    ) -> dict[str, list[StreamBatch]]:
        """The batches of each source, by alias. Each comes when its newest row does; the last one ends the stream."""
        feeds: dict[str, list[StreamBatch]] = {alias: [] for alias in self._origins}
        reached = dict.fromkeys(self._origins, 0.0)
        for batch in _cut(self._query, rows, batch_rows):
            for alias in self._origins:
                part, newest = batch[self._query.source(alias).declared.name]
                if newest > -FOREVER:
                    reached[alias] = max(reached[alias], (newest - self._first) / SECOND)
                self._feed(feeds, alias, StreamBatch([part]), reached[alias])
        for alias in self._origins:
            self._feed(feeds, alias, StreamBatch([], FOREVER), reached[alias])
        return feeds

    def _feed(self, feeds: dict[str, list[StreamBatch]], alias: str, batch: StreamBatch, moment: float) -> None:
        feeds[alias].append(batch)
        self._at(moment, SourceBatch(self._origins[alias], alias, len(feeds[alias])))

    def _at(self, moment: float, happening: Happening) -> None:
        heapq.heappush(self._moments, (moment, next(self._numbers), happening))

    def simulation(self) -> Simulation:
        while self._moments:
            self._now, _, happening = heapq.heappop(self._moments)
            match happening:
                case SourceBatch():
                    self._sites[happening.site].available.sources[happening.alias] = happening.count
                    self._wake(happening.site)
                case ChannelBatch():
                    self._sites[happening.site].available.channels[happening.channel] = happening.number
                    self._wake(happening.site)
                case Look():
                    self._awake.remove(happening.site)
                    self._step(happening.site)
        schema = next(site.result_schema for site in self._sites.values() if site.result_schema is not None)
        results = pa.Table.from_batches(self._results, schema)
        if self._query.grouping is not None:
            results = group(self._query.grouping, results, EVENT_TIME)
        else:
            results = results.drop_columns([EVENT_TIME])
        latencies = np.concatenate(self._latencies) if self._latencies else np.empty(0)
        seconds = (self._last - self._first) / SECOND
        return Simulation(self._deployment, results, self._links.used(), latencies, tuple(self._timeline), seconds)

    def _wake(self, site: str) -> None:
        """Have a site look at what has arrived, soon."""
        if site not in self._awake:
            self._awake.add(site)
            self._at(self._now + self._random.uniform(0, PAUSE), Look(site))

    def _step(self, site: str) -> None:
        results = self._sites[site].step()
        for rows in results:
            self._results.append(rows)
            moments = event_times(rows.column(rows.num_columns - 1))
            # Rows of a sliding window start at the next slide, so that a result may be there before its event time.
            self._latencies.append(np.maximum(self._now - (moments - self._first) / SECOND, 0.0))
        found = sum(rows.num_rows for rows in results)
        if found:
            self._timeline.append(Event(self._now, site, f"{found:,} results"))

    def _send(self, site: str, outlet: Outlet, batch: Batch) -> None:
        size = len(batch.data)
        for reader in outlet.readers:
            arrival = self._links.send(site, reader, size, batch.rows, self._now)
            self._at(arrival, ChannelBatch(reader, outlet.channel, batch.number))
            if batch.rows and reader != site:
                what = f"ships {batch.rows:,} rows of {outlet.fragment} to {reader}, {size:,} bytes"
                self._timeline.append(Event(self._now, site, what))

    def _dies(self, site: str, point: str) -> bool:
        dies = self._random.random() < self._crash_rate
        if dies:
            self._timeline.append(Event(self._now, site, f"dies {point}"))
        return dies
