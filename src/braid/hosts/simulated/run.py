"""A simulation that runs: a queue of moments at which something happens, and the sites it happens to."""

from __future__ import annotations

import heapq
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from braid.adapt.controller import Policy
from braid.channels.batch import NONE, Batch
from braid.channels.memory import MemoryChannel
from braid.engine.input.lifetime import event_times
from braid.engine.output.groups import group
from braid.hosts.simulated.changes import Changes
from braid.hosts.simulated.control import Control
from braid.hosts.simulated.deciding import Deciding
from braid.hosts.simulated.faults import Faults
from braid.hosts.simulated.feeding import batches_of, moments
from braid.hosts.simulated.links import VirtualLinks
from braid.hosts.simulated.simulation import Event, Simulation, Simulations
from braid.hosts.simulated.site import SimulatedSite
from braid.model.network.topology import Topology
from braid.model.query import Query
from braid.model.window import FOREVER
from braid.planning.deployment import Deployment
from braid.planning.planners import Planner
from braid.runtime.migration.change import ChangeState
from braid.runtime.sites.deployed import Deployed
from braid.runtime.sites.site import EVENT_TIME, StreamBatch, nodes_of, results_from
from braid.runtime.sites.site_watch import SiteWatch
from braid.runtime.sites.work import Outlet, SiteWork

SECOND = 1_000_000

PAUSE = 0.01
"""A site takes up to this many seconds before it looks at what has arrived."""


class Place(NamedTuple):
    """What a site does for one generation of the plans of a query. As on Spark, it runs each on its own.

    Generation 0 has the intakes, where the streams of the query enter it.
    """

    query: str
    generation: int
    site: str


@dataclass(frozen=True)
class Settings:
    """How a simulation runs.

    `controller` says how sites agree on plan changes: "central" or "distributed". With a policy to `adapt`, it also
    says who decides on them. `rewirings` are networks with other links, each with the second from which on they hold.
    """

    batch_rows: int | None = None
    seed: int = 0
    faults: Faults = field(default_factory=Faults)
    shards: int = 1
    controller: str = "central"
    adapt: Policy | None = None
    rewirings: Sequence[tuple[float, Topology]] = ()


@dataclass(frozen=True)
class PlannedQuery:
    """A query to be run: its first plan, its plan changes, the rows of its streams, and where these start by alias.

    `changes` has pairs of a moment, in seconds since the first row, and the plan to change to. `planner` makes the
    plans that controllers compare the running one with.
    """

    deployment: Deployment
    deployed: Deployed
    rows: Mapping[str, pa.RecordBatch]
    origins: Mapping[str, str]
    changes: Sequence[tuple[float, Deployment]] = ()
    planner: str | Planner = "exact"

    @property
    def query(self) -> Query:
        return self.deployment.query


@dataclass
class Outcome:
    """What has come of a query so far."""

    deployed: Deployed
    read: dict[str, int] = field(default_factory=dict)
    """The last batch that was read of each channel with results."""
    reached: int = -FOREVER
    """Up to which event time readers were told that all results are there."""
    results: list[pa.RecordBatch] = field(default_factory=list)
    latencies: list[NDArray[np.float64]] = field(default_factory=list)
    timeline: list[Event] = field(default_factory=list)


class Run:
    """One simulation of some queries over one network."""

    def __init__(self, queries: Mapping[str, PlannedQuery], topology: Topology, settings: Settings) -> None:
        self._queries = queries
        self._settings = settings
        self._random = random.Random(settings.seed)
        self._faults = faults = settings.faults
        self._now = 0.0
        self._numbers = count()
        self._moments: list[tuple[float, int, Callable[[], None]]] = []
        times = [time for query in queries.values() for time in moments(query.query, query.rows)]
        self._first, self._last = min(times, default=0), max(times, default=0)
        plans = {name: [query.deployment, *(plan for _, plan in query.changes)] for name, query in queries.items()}
        outages = faults.outages_of([str(link) for link in topology.links], self._seconds, self._random)
        self._links = VirtualLinks(topology, plans, outages)
        self._away: dict[str, float] = {}
        """The sites that are away, and until when."""
        for begin, end, site in faults.absences_of(topology.names, self._seconds, self._random):
            self._at(begin, lambda site=site, end=end: self._leave(site, end))  # type: ignore[misc]
        self._awake: set[Place] = set()
        self._outcomes = {name: Outcome(query.deployed) for name, query in queries.items()}
        self._channels: dict[str, MemoryChannel] = {}
        self._publishers: dict[str, str] = {}
        """The site that publishes each channel."""
        self._readers: dict[str, list[Place]] = defaultdict(list)
        """Who reads each channel."""
        self._sites: dict[Place, SimulatedSite] = {}
        is_central = settings.controller == "central"
        self._control = Control(topology.names, topology.names[0], is_central, self.send_message, self._learned)
        self._changes = {name: Changes(name, self, self._control) for name in queries}
        self._deciding = {name: self._decider(name, query) for name, query in queries.items() if settings.adapt}
        for moment, rewired in settings.rewirings:
            self._at(moment, lambda rewired=rewired: self._rewire(rewired))  # type: ignore[misc]
        self._start(settings.batch_rows)

    def _decider(self, name: str, query: PlannedQuery) -> Deciding:
        return Deciding(
            self._settings.controller,
            query.deployment.solution.problem.topology.names,
            self._control.home,
            query.deployment,
            query.planner,
            self._settings.adapt,
            self,
            self._changes[name].propose,
        )

    def _rewire(self, topology: Topology) -> None:
        """The links have other latencies, bandwidths and prices from now on."""
        self._links.rewire(topology)
        for deciding in self._deciding.values():
            deciding.rewired(topology)

    @property
    def _seconds(self) -> float:
        """How many seconds of event time there are."""
        return (self._last - self._first) / SECOND

    def _start(self, batch_rows: int | None) -> None:
        for name, query in self._queries.items():
            feeds = self._schedule_sources(name, query, batch_rows)
            for site, spec in query.deployed.intakes.items():
                self._add(Place(name, 0, site), spec.work, feeds)
        for name, query in self._queries.items():
            for generation in query.deployed.generations:
                for site, spec in generation.sites.items():
                    self._add(Place(name, generation.number, site), spec.work)
            for moment, plan in query.changes:
                self._at(moment, lambda name=name, plan=plan: self._changes[name].ask(plan))  # type: ignore[misc]

    def _add(self, place: Place, work: SiteWork, feeds: Mapping[str, list[StreamBatch]] | None = None) -> None:
        for outlet in work.outlets:
            self._channels.setdefault(outlet.channel, MemoryChannel(outlet.channel, outlet.keep))
            self._publishers[outlet.channel] = place.site
        for channel in work.arriving:
            self._channels.setdefault(channel, MemoryChannel(channel))
            self._readers[channel].append(place)
        self._sites[place] = SimulatedSite(
            f"{place.query} #{place.generation} at {place.site}",
            work,
            feeds or {},
            self._channels,
            lambda outlet, batch: self._send(place, outlet, batch),
            lambda point: self._dies(place, point),
            self._settings.shards,
            self._watch(place, work) if place.query in self._deciding else None,
        )

    def _watch(self, place: Place, work: SiteWork) -> SiteWatch:
        assert self._settings.adapt is not None
        nodes = nodes_of(work, self._settings.shards, EVENT_TIME)
        return SiteWatch(place.site, place.generation, work, nodes, 2 * self._settings.adapt.half_life)

    def _schedule_sources(self, name: str, query: PlannedQuery, batch_rows: int | None) -> dict[str, list[StreamBatch]]:
        """The batches of each source, by alias. Each comes when its newest row does; the last one ends the stream."""
        feeds: dict[str, list[StreamBatch]] = {alias: [] for alias in query.origins}
        reached = dict.fromkeys(query.origins, 0.0)

        def feed(alias: str, batch: StreamBatch) -> None:
            feeds[alias].append(batch)
            number = len(feeds[alias])
            self._at(reached[alias], lambda: self._source(Place(name, 0, query.origins[alias]), alias, number))

        for batch in batches_of(query.query, query.rows, batch_rows):
            for alias in query.origins:
                part, newest = batch[query.query.source(alias).declared.name]
                if newest > -FOREVER:
                    reached[alias] = max(reached[alias], (newest - self._first) / SECOND)
                feed(alias, StreamBatch([part]))
        for alias in query.origins:
            feed(alias, StreamBatch([], FOREVER))
        return feeds

    # What happens

    def _at(self, moment: float, happening: Callable[[], None]) -> None:
        heapq.heappush(self._moments, (moment, next(self._numbers), happening))

    def simulations(self) -> Simulations:
        while self._moments:
            self._now, _, happening = heapq.heappop(self._moments)
            happening()
        return Simulations({name: self._simulation(name) for name in self._queries}, self._links.used())

    def _source(self, place: Place, alias: str, number: int) -> None:
        """So many batches of a stream have come where it starts."""
        self._sites[place].available.sources[alias] = number
        self._wake(place)

    def _arrive(self, place: Place, channel: str, number: int) -> None:
        """A batch has reached a site that subscribes to its channel."""
        if place in self._sites:
            available = self._sites[place].available.channels
            available[channel] = max(available.get(channel, NONE), number)
            self._wake(place)

    def _wake(self, place: Place) -> None:
        """Have a site look at what has arrived, soon, or when it is back."""
        if place not in self._awake:
            self._awake.add(place)
            moment = self._now + self._random.uniform(0, PAUSE)
            self._at(max(moment, self._away.get(place.site, moment)), lambda: self._look(place))

    def _look(self, place: Place) -> None:
        self._awake.discard(place)
        if place not in self._sites:
            return
        if place.site in self._away:
            self._wake(place)
        elif self._sites[place].step():
            self._changes[place.query].stepped(place.generation, place.site)
            self._tell(place)

    def _tell(self, place: Place) -> None:
        """Have the controller of a site look at what it has done."""
        deciding = self._deciding.get(place.query)
        if deciding is not None and deciding.wants_figures(place.generation, place.site):
            figures = self._sites[place].figures()
            if figures is not None:
                deciding.observe(figures)

    def _leave(self, site: str, end: float) -> None:
        """A site dies. What it had in memory is gone, and it is away until it comes back."""
        self._away[site] = max(end, self._away.get(site, end))
        self._control.forget(site)
        for deciding in self._deciding.values():
            deciding.forget(site)
        for place, simulated in self._sites.items():
            if place.site == site:
                simulated.come_back()
                self._note(place.query, site, "is away")
        self._at(end, lambda: self._return(site))

    def _return(self, site: str) -> None:
        if self._away.get(site, self._now) <= self._now:
            self._away.pop(site, None)
            self._control.come_back(site)
            for place in list(self._sites):
                if place.site == site:
                    self._wake(place)

    def send_message(self, source: str, target: str, size: int, then: Callable[[], None]) -> None:
        """Carry a control message. It is lost if its target is away, unless that is the coordinator."""
        # Control messages have links of their own: what they cost is counted as messages, not as bytes of a query.
        arrives = self._links.arrival(source, target, self._now)

        def deliver() -> None:
            if target not in self._away:
                then()
            elif target == self._control.home:
                self._at(self._away[target], deliver)

        self._at(arrives, deliver)

    def _learned(self, site: str, state: ChangeState) -> None:
        """A site has learned something: it acts on it next, and not in the middle of what it is doing."""
        self._at(self._now, lambda: self._changes[state.change.query].learned(site, state))

    # What plan changes do

    @property
    def now(self) -> float:
        return self._now

    def deployed(self, query: str) -> Deployed:
        return self._outcomes[query].deployed

    def watermarks(self, channels: Sequence[str]) -> list[int]:
        """How far channels have come."""
        lasts = [self._channels[channel].last() for channel in channels]
        return [-FOREVER if last is None else last.watermark for last in lasts]

    def site(self, query: str, generation: int, site: str) -> SimulatedSite | None:
        """What a site does for a generation, if it does anything."""
        return self._sites.get(Place(query, generation, site))

    def chosen(self, query: str, plan: Deployment) -> None:
        """A plan that a controller has chosen: its batches take the paths that it has planned."""
        self._links.choose(query, plan)

    def succeeded(self, query: str, site: str, plan: Deployment, generation: int) -> None:
        """A site has learned that another plan of a query answers from now on."""
        if query in self._deciding:
            self._deciding[query].changed(site, plan, generation)

    def wake(self, query: str, generation: int, site: str) -> None:
        if Place(query, generation, site) in self._sites:
            self._wake(Place(query, generation, site))

    def is_away(self, site: str) -> float | None:
        """Until when a site is away; None if it is there."""
        return self._away.get(site)

    def later(self, moment: float, happening: Callable[[], None]) -> None:
        self._at(moment, happening)

    def redeploy(self, query: str, deployed: Deployed) -> None:
        """Go on with other generations of a query, or other reigns: what is new starts, what is gone ends."""
        outcome = self._outcomes[query]
        outcome.deployed = deployed
        kept = {generation.number for generation in deployed.generations}
        for place in [place for place in self._sites if place.query == query and place.generation]:
            if place.generation not in kept:
                self.end(query, place.generation, place.site)
        for generation in deployed.generations:
            for site, spec in generation.sites.items():
                place = Place(query, generation.number, site)
                if generation.reign is None and place not in self._sites:
                    self._add(place, spec.work)
                    self._fill(place, spec.work)
        self.read_results(query)

    def end(self, query: str, generation: int, site: str) -> None:
        """A site ends what it does for a generation."""
        simulated = self._sites.pop(Place(query, generation, site), None)
        if simulated is not None:
            for channel in simulated.work.arriving:
                self._readers[channel].remove(Place(query, generation, site))
                self._channels[channel].unsubscribe(simulated.name)

    def _fill(self, place: Place, work: SiteWork) -> None:
        """Bring what channels hold to a new reader. Another one at its site may have it already."""
        for channel in work.arriving:
            here = [reader for reader in self._readers[channel] if reader.site == place.site and reader != place]
            for entry in self._channels[channel].entries(NONE):
                arrives = self._now
                if not here:
                    source = self._publishers[channel]
                    arrives = self._links.send(place.query, source, place.site, entry.bytes, entry.rows, self._now)
                self._at(arrives, lambda channel=channel, entry=entry: self._arrive(place, channel, entry.number))  # type: ignore[misc]

    def note(self, query: str, site: str, what: str) -> None:
        self._note(query, site, what)

    # What comes of it

    def read_results(self, query: str) -> None:
        """Take the results that are there of each generation, as far as it answers for them."""
        outcome = self._outcomes[query]
        reached = []
        for generation in outcome.deployed.generations:
            reign = generation.reign
            for site, channels in generation.results.items() if reign is not None else ():
                assert reign is not None
                for channel in channels:
                    self._read_channel(outcome, site, channel, reign.since, reign.until)
                reached += [reign.reached(watermark) for watermark in self.watermarks(channels)]
        outcome.reached = max(outcome.reached, min(reached))

    def _read_channel(self, outcome: Outcome, site: str, channel: str, since: int, until: int) -> None:
        found = 0
        for entry in self._channels[channel].entries(outcome.read.get(channel, NONE)):
            outcome.read[channel] = entry.number
            for segment in self._channels[channel].read(entry.number).segments:
                rows = results_from(since, segment.rows, EVENT_TIME)
                moments = event_times(rows.column(EVENT_TIME))
                if (moments >= until).any():
                    raise AssertionError(f"{channel} gave a result from {until} on, which belongs to another plan")
                if (moments < outcome.reached).any():
                    raise AssertionError(f"{channel} gave a result before {outcome.reached}, where all were there")
                found += rows.num_rows
                outcome.results.append(rows)
                # Rows of a sliding window start at the next slide: a result may be there before its event time.
                outcome.latencies.append(np.maximum(self._now - (moments - self._first) / SECOND, 0.0))
        if found:
            outcome.timeline.append(Event(self._now, site, f"{found:,} results"))

    def _simulation(self, name: str) -> Simulation:
        query, outcome = self._queries[name], self._outcomes[name]
        sites = [site for place, site in self._sites.items() if place.query == name]
        schema = next(site.result_schema for site in sites if site.result_schema is not None)
        results = pa.Table.from_batches(outcome.results, schema)
        if query.query.grouping is not None:
            results = group(query.query.grouping, results, EVENT_TIME)
        else:
            results = results.drop_columns([EVENT_TIME])
        latencies = np.concatenate(outcome.latencies) if outcome.latencies else np.empty(0)
        return Simulation(
            query.deployment,
            results,
            self._links.used_by(name),
            latencies,
            tuple(outcome.timeline),
            self._seconds,
            tuple(self._changes[name].records),
            self._messages(name),
            self._links.crossings(name),
        )

    def _messages(self, query: str) -> dict[str, int]:
        messages = Counter(self._control.messages)
        if query in self._deciding:
            messages += self._deciding[query].messages
        return dict(messages)

    def _send(self, place: Place, outlet: Outlet, batch: Batch) -> None:
        """Bring a batch that was published to all who read its channel."""
        work = self._sites[place].work
        if outlet.fragment in work.finals:
            self.read_results(place.query)
        size = len(batch.data)
        # Two that read a channel at one site have it brought there once.
        arrivals: dict[str, float] = {}
        for reader in self._readers[outlet.channel]:
            target = reader.site
            if target not in arrivals:
                arrivals[target] = self._links.send(place.query, place.site, target, size, batch.rows, self._now)
                if batch.rows and target != place.site:
                    what = f"ships {batch.rows:,} rows of {outlet.fragment} to {target}, {size:,} bytes"
                    self._note(place.query, place.site, what)
            times = 2 if self._random.random() < self._faults.repeats else 1
            for repeat in range(times):
                moment = arrivals[target] + repeat * self._random.uniform(0, 10 * PAUSE)
                self._at(moment, lambda reader=reader: self._arrive(reader, outlet.channel, batch.number))  # type: ignore[misc]

    def _dies(self, place: Place, point: str) -> bool:
        dies = self._random.random() < self._faults.crash_rate
        if dies:
            self._note(place.query, place.site, f"dies {point}")
        return dies

    def _note(self, query: str, site: str, what: str) -> None:
        self._outcomes[query].timeline.append(Event(self._now, site, what))
