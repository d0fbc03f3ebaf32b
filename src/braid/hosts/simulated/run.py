"""A simulation that runs: a queue of moments at which something happens, and the sites it happens to."""

from __future__ import annotations

import heapq
import random
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from braid.channels.batch import Batch
from braid.channels.memory import MemoryChannel
from braid.engine.input.lifetime import event_times
from braid.engine.output.groups import group
from braid.hosts.simulated.links import VirtualLinks
from braid.hosts.simulated.measuring import batches_of
from braid.hosts.simulated.simulation import Event, Simulation, Simulations
from braid.hosts.simulated.site import SimulatedSite
from braid.model.network.topology import Topology
from braid.model.query import Query
from braid.model.window import FOREVER
from braid.planning.deployment import Deployment
from braid.runtime.sites.site import EVENT_TIME, StreamBatch
from braid.runtime.sites.work import Outlet, SiteWork

SECOND = 1_000_000

PAUSE = 0.01
"""A site takes up to so many seconds before it looks at what has arrived."""


class Place(NamedTuple):
    """What a site does for one generation of the plans of a query. As on Spark, it runs each on its own.

    Generation 0 has the intakes, where the streams of the query enter it.
    """

    query: str
    generation: int
    site: str


@dataclass(frozen=True)
class SourceBatch:
    """So many batches of a stream have come where it starts."""

    place: Place
    alias: str
    count: int


@dataclass(frozen=True)
class ChannelBatch:
    """A batch has reached a site that subscribes to its channel."""

    place: Place
    channel: str
    number: int


@dataclass(frozen=True)
class Look:
    """A site looks at what has arrived."""

    place: Place


Happening = SourceBatch | ChannelBatch | Look


@dataclass(frozen=True)
class PlannedQuery:
    """A query to be run: its deployment, the rows of its streams, where they start by alias, and its sites' work.

    `intakes` is the work of the sites where streams start, `work` that of the sites that join them.
    """

    deployment: Deployment
    rows: Mapping[str, pa.RecordBatch]
    origins: Mapping[str, str]
    intakes: Mapping[str, SiteWork]
    work: Mapping[str, SiteWork]

    @property
    def query(self) -> Query:
        return self.deployment.query

    def moments(self) -> list[int]:
        """The first and the last event time of each stream that has rows."""
        moments = []
        for source in self.query.sources:
            column = self.rows[source.declared.name].column(source.declared.time).drop_null()
            if len(column):
                times = event_times(column)
                moments += [int(times.min()), int(times.max())]
        return moments


@dataclass
class Outcome:
    """What has come of a query so far."""

    results: list[pa.RecordBatch] = field(default_factory=list)
    latencies: list[NDArray[np.float64]] = field(default_factory=list)
    timeline: list[Event] = field(default_factory=list)


class Run:
    """One simulation of some queries over one network."""

    def __init__(
        self,
        queries: Mapping[str, PlannedQuery],
        topology: Topology,
        batch_rows: int | None,
        seed: int,
        crash_rate: float,
        shards: int,
    ) -> None:
        self._queries = queries
        self._links = VirtualLinks(topology)
        self._random = random.Random(seed)
        self._crash_rate = crash_rate
        self._now = 0.0
        self._numbers = count()
        self._moments: list[tuple[float, int, Happening]] = []
        self._awake: set[Place] = set()
        self._outcomes = {name: Outcome() for name in queries}
        moments = [moment for query in queries.values() for moment in query.moments()]
        self._first, self._last = min(moments, default=0), max(moments, default=0)
        self._readers: dict[str, list[Place]] = defaultdict(list)
        """Who reads each channel."""
        self._sites = self._start(batch_rows, shards)

    def _start(self, batch_rows: int | None, shards: int) -> dict[Place, SimulatedSite]:
        works: dict[Place, SiteWork] = {}
        for name, query in self._queries.items():
            for generation, sites in enumerate((query.intakes, query.work)):
                works |= {Place(name, generation, site): work for site, work in sites.items()}
        channels: dict[str, MemoryChannel] = {}
        for place, work in works.items():
            channels |= {outlet.channel: MemoryChannel(outlet.channel, outlet.keep) for outlet in work.outlets}
            for channel in work.arriving:
                self._readers[channel].append(place)
        feeds = {name: self._schedule_sources(name, query, batch_rows) for name, query in self._queries.items()}
        return {
            place: SimulatedSite(
                f"{place.query} #{place.generation} at {place.site}",
                work,
                {alias: feeds[place.query][alias] for alias in work.own},
                channels,
                lambda outlet, batch, place=place: self._send(place, outlet, batch),  # type: ignore[misc]
                lambda point, place=place: self._dies(place, point),  # type: ignore[misc]
                shards,
            )
            for place, work in works.items()
        }

    def _schedule_sources(self, name: str, query: PlannedQuery, batch_rows: int | None) -> dict[str, list[StreamBatch]]:
        """The batches of each source, by alias. Each comes when its newest row does; the last one ends the stream."""
        feeds: dict[str, list[StreamBatch]] = {alias: [] for alias in query.origins}
        reached = dict.fromkeys(query.origins, 0.0)

        def feed(alias: str, batch: StreamBatch) -> None:
            feeds[alias].append(batch)
            self._at(reached[alias], SourceBatch(Place(name, 0, query.origins[alias]), alias, len(feeds[alias])))

        for batch in batches_of(query.query, query.rows, batch_rows):
            for alias in query.origins:
                part, newest = batch[query.query.source(alias).declared.name]
                if newest > -FOREVER:
                    reached[alias] = max(reached[alias], (newest - self._first) / SECOND)
                feed(alias, StreamBatch([part]))
        for alias in query.origins:
            feed(alias, StreamBatch([], FOREVER))
        return feeds

    def _at(self, moment: float, happening: Happening) -> None:
        heapq.heappush(self._moments, (moment, next(self._numbers), happening))

    def simulations(self) -> Simulations:
        while self._moments:
            self._now, _, happening = heapq.heappop(self._moments)
            match happening:
                case SourceBatch():
                    self._sites[happening.place].available.sources[happening.alias] = happening.count
                    self._wake(happening.place)
                case ChannelBatch():
                    self._sites[happening.place].available.channels[happening.channel] = happening.number
                    self._wake(happening.place)
                case Look():
                    self._awake.remove(happening.place)
                    self._step(happening.place)
        return Simulations({name: self._simulation(name) for name in self._queries}, self._links.used())

    def _simulation(self, name: str) -> Simulation:
        query, outcome = self._queries[name], self._outcomes[name]
        sites = [self._sites[Place(name, 1, site)] for site in query.work]
        schema = next(site.result_schema for site in sites if site.result_schema is not None)
        results = pa.Table.from_batches(outcome.results, schema)
        if query.query.grouping is not None:
            results = group(query.query.grouping, results, EVENT_TIME)
        else:
            results = results.drop_columns([EVENT_TIME])
        latencies = np.concatenate(outcome.latencies) if outcome.latencies else np.empty(0)
        seconds = (self._last - self._first) / SECOND
        timeline = tuple(outcome.timeline)
        return Simulation(query.deployment, results, self._links.used_by(name), latencies, timeline, seconds)

    def _wake(self, place: Place) -> None:
        """Have a site look at what has arrived, soon."""
        if place not in self._awake:
            self._awake.add(place)
            self._at(self._now + self._random.uniform(0, PAUSE), Look(place))

    def _step(self, place: Place) -> None:
        outcome = self._outcomes[place.query]
        results = self._sites[place].step()
        for rows in results:
            outcome.results.append(rows)
            moments = event_times(rows.column(rows.num_columns - 1))
            # Rows of a sliding window start at the next slide, so that a result may be there before its event time.
            outcome.latencies.append(np.maximum(self._now - (moments - self._first) / SECOND, 0.0))
        found = sum(rows.num_rows for rows in results)
        if found:
            outcome.timeline.append(Event(self._now, place.site, f"{found:,} results"))

    def _send(self, place: Place, outlet: Outlet, batch: Batch) -> None:
        size = len(batch.data)
        # Two that read a channel at one site have it brought there once.
        arrivals: dict[str, float] = {}
        for reader in self._readers[outlet.channel]:
            target = reader.site
            if target not in arrivals:
                arrivals[target] = self._links.send(place.query, place.site, target, size, batch.rows, self._now)
                if batch.rows and target != place.site:
                    what = f"ships {batch.rows:,} rows of {outlet.fragment} to {target}, {size:,} bytes"
                    self._outcomes[place.query].timeline.append(Event(self._now, place.site, what))
            self._at(arrivals[target], ChannelBatch(reader, outlet.channel, batch.number))

    def _dies(self, place: Place, point: str) -> bool:
        dies = self._random.random() < self._crash_rate
        if dies:
            self._outcomes[place.query].timeline.append(Event(self._now, place.site, f"dies {point}"))
        return dies
