"""A simulation that runs: a queue of moments at which something happens, and the sites it happens to."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from braid.channels.batch import NONE, Batch
from braid.errors import InvariantError
from braid.hosts.simulated.agenda import Agenda
from braid.hosts.simulated.change_messages import ChangeMessages
from braid.hosts.simulated.changes import Changes
from braid.hosts.simulated.deciding import Deciding
from braid.hosts.simulated.delivery import Delivery
from braid.hosts.simulated.disruptions import Died, Disruptions
from braid.hosts.simulated.feeding import batches_of, moments
from braid.hosts.simulated.invariants import Invariants
from braid.hosts.simulated.links import VirtualLinks
from braid.hosts.simulated.place import Place
from braid.hosts.simulated.reading import SECOND, Reader
from braid.hosts.simulated.reusable_joins import as_it_starts
from braid.hosts.simulated.settings import PlannedQuery, Settings
from braid.hosts.simulated.simulation import Simulation, Simulations
from braid.hosts.simulated.site import SimulatedSite
from braid.hosts.simulated.trace import Trace, told
from braid.model.network.topology import Topology
from braid.model.output import EVENT_TIME_COLUMN
from braid.model.window import FOREVER
from braid.planning.deployment import Deployment
from braid.runtime.migration.change import Change, ChangeState
from braid.runtime.migration.gate import Gate
from braid.runtime.migration.succession import is_movable
from braid.runtime.silent_streams import SilentSources, silence_text
from braid.runtime.sites.deployed import Deployed
from braid.runtime.sites.site import SiteRuntime, StreamBatch, nodes_of
from braid.runtime.sites.site_watch import SiteWatch
from braid.runtime.sites.weaker_join import SharedJoin
from braid.runtime.sites.work import Outlet, SiteWork

PAUSE = 0.01
"""A site takes up to this many seconds before it looks at what has arrived."""

SETTLES = 5.0
CROSSINGS = 60.0
"""If all is well, a phase of a plan change takes at most this many seconds, and this many times as long as the longest
way through the network.
"""


class Run:
    """One simulation of some queries over one network."""

    def __init__(self, queries: Mapping[str, PlannedQuery], topology: Topology, settings: Settings) -> None:
        self._queries = dict(queries)
        self._settings = settings
        self._random = random.Random(settings.seed)
        self._faults = faults = settings.faults
        self._agenda = Agenda()
        self._trace = Trace()
        times = [time for query in queries.values() for time in moments(query.query, query.rows)]
        self._first, last = min(times, default=0), max(times, default=0)
        self._seconds = (last - self._first) / SECOND
        """How many seconds of event time there are."""
        aliases = list(dict.fromkeys(alias for query in queries.values() for alias in query.origins))
        self._schedule = faults.schedule(topology, aliases, self._seconds, settings.seed)
        plans = {name: [query.deployment, *(plan for _, plan in query.changes)] for name, query in queries.items()}
        plans |= {join.name: [join.join.plan] for query in queries.values() for join in query.joins}
        self._links = VirtualLinks(topology, plans, self._schedule.slowdowns)
        self._disruptions = Disruptions(
            faults, self._schedule, faults.until * self._seconds, self._agenda, self._random, self._trace, self
        )
        self._awake: set[Place] = set()
        self._delivery = Delivery(self._links, self._agenda, self._trace, self._arrive, self._delays)
        self._readers: dict[str, Reader] = {}
        self._sources = {name: SilentSources(query.origins, query.starts) for name, query in queries.items()}
        self._sites: dict[Place, SimulatedSite] = {}
        may_change = settings.adapt is not None or any(query.changes or query.joins for query in queries.values())
        self._invariants = Invariants(
            self._runtime_at,
            lambda query, generation: self._readers[query].answered(generation),
            keeps_rows=may_change,
            bound=_bound(topology) if may_change else None,
        )
        is_central = settings.controller == "central"
        self._change_messages = ChangeMessages(
            topology.names, topology.names[0], is_central, self.send_message, self._learned
        )
        self._changes: dict[str, Changes] = {}
        adapting = {name: query for name, query in queries.items() if settings.adapt and is_movable(query.query)}
        self._deciding = {name: self._decider(name, query) for name, query in adapting.items()}
        for moment, rewired in settings.rewirings:
            self._agenda.at(moment, lambda rewired=rewired: self._rewire(rewired))  # type: ignore[misc]
        for moment in sorted({query.starts for query in queries.values()}):
            names = [name for name, query in queries.items() if query.starts == moment]
            if moment:
                self._agenda.at(moment, lambda names=names: self._start(names))  # type: ignore[misc]
            else:
                self._start(names)

    def _decider(self, name: str, query: PlannedQuery) -> Deciding:
        return Deciding(
            self._settings.controller,
            query.deployment.solution.problem.topology.names,
            self._change_messages.home,
            query.deployment,
            query.planner,
            self._settings.adapt,
            self,
            lambda proposal: self._changes[name].propose(proposal),
        )

    def _rewire(self, topology: Topology) -> None:
        """The links have other latencies, bandwidths and prices from now on."""
        self._links.rewire(topology)
        bound = _bound(topology)
        if self._invariants.bound is not None and bound is not None:
            self._invariants.bound = max(self._invariants.bound, bound)
        for deciding in self._deciding.values():
            for site in topology.names:
                self._when_able(site, lambda site=site, deciding=deciding: deciding.rewired(site, topology))  # type: ignore[misc]

    def _start(self, names: Sequence[str]) -> None:
        """Deploy some queries, and the joins with weaker filters that they share with others."""
        shared: dict[str, tuple[SharedJoin, Deployed]] = {}
        for name in names:
            query, joins = as_it_starts(self._queries[name], self._delivery.channels, self._stays)
            self._queries[name] = query
            shared |= {join.name: (join, deployed) for join, deployed in joins if join.name not in self._readers}
            self._links.choose(name, query.deployment)
            self._deploy(name, query.deployed)
            feeds = self._schedule_sources(name, query, self._settings.batch_rows)
            for site, spec in query.deployed.intakes.items():
                self._add(Place(name, 0, site), spec.work, feeds)
        for name, (_, deployed) in shared.items():
            self._deploy(name, deployed)
        started = [self._queries[name].deployed for name in names]
        for deployed in (*started, *(deployed for _, deployed in shared.values())):
            for site, spec in deployed.current.sites.items():
                place = Place(deployed.name, spec.generation, site)
                self._add(place, spec.work)
                self._delivery.fill(place, spec.work)
        for name in names:
            for moment, plan in self._queries[name].changes:
                self._agenda.at(moment, lambda name=name, plan=plan: self._changes[name].ask(plan))  # type: ignore[misc]
        for join, deployed in shared.values():
            self._agenda.at(self.now, lambda join=join, deployed=deployed: self._share(join, deployed))  # type: ignore[misc]

    def _deploy(self, name: str, deployed: Deployed) -> None:
        self._readers[name] = Reader(deployed, self._delivery.channels, self._first, partial(self.note, name))
        self._changes[name] = Changes(name, self, self._change_messages)
        self._invariants.redeployed(name, deployed)

    def _stays(self, channel: str) -> bool:
        """Whether a channel is published by the plan of a query that is not being changed."""
        published = {name for reader in self._readers.values() for name in reader.deployed.current.published}
        changing = {name for name, changes in self._changes.items() if changes.is_under_way}
        ending = {name for query in changing for name in self.deployed(query).published}
        return channel in published - ending

    def _share(self, join: SharedJoin, deployed: Deployed) -> None:
        """Have the query that a join was taken from read the join, unless others read joins of its plan."""
        owner = join.running.deployed.name
        plan = join.running.reading(deployed.offers)
        joins = {name for generation in self.deployed(owner).generations for name in generation.published}
        others = [site.work for place, site in self._sites.items() if place.query != owner]
        read = (channel for work in others for channel in work.arriving)
        if plan is not None and joins.isdisjoint(read):
            self._links.choose(owner, plan)
            self._changes[owner].ask(plan, "another query needs weaker filters", offers=deployed.offers)

    def _add(self, place: Place, work: SiteWork, feeds: Mapping[str, list[StreamBatch]] | None = None) -> None:
        self._delivery.open(place, work)
        self._sites[place] = SimulatedSite(
            str(place),
            work,
            feeds or {},
            self._delivery.channels,
            lambda outlet, batch: self._send(place, outlet, batch),
            lambda point: self._dies(place, point),
            self._settings.shards,
            self._watch(place, work) if place.query in self._deciding else None,
            broker=self._disruptions.broker,
            recall=lambda: self._recall(place),
            committed=lambda taken: self._invariants.took(place, taken),
            repeated=self._invariants.repeated,
        )

    def _watch(self, place: Place, work: SiteWork) -> SiteWatch:
        assert self._settings.adapt is not None
        nodes = nodes_of(work, self._settings.shards, EVENT_TIME_COLUMN)
        return SiteWatch(place.site, place.generation, work, nodes, 2 * self._settings.adapt.half_life)

    def _recall(self, place: Place) -> Gate:
        """The gate of a place whose site knows no more of plan changes than it has in its log."""
        gate = Gate()
        for state in self._change_messages.states(place.site):
            if (state.change.query, state.change.old) == (place.query, place.generation):
                gate.learn(state, place.site)
        return gate

    def _runtime_at(self, place: Place) -> SiteRuntime | None:
        return self._sites[place].runtime if place in self._sites else None

    def _schedule_sources(self, name: str, query: PlannedQuery, batch_rows: int | None) -> dict[str, list[StreamBatch]]:
        """The batches of each source, by alias. Each comes when its newest row does; the last one ends the stream."""
        feeds: dict[str, list[StreamBatch]] = {alias: [] for alias in query.origins}
        reached = dict.fromkeys(query.origins, 0.0)

        def feed(alias: str, batch: StreamBatch) -> None:
            feeds[alias].append(batch)
            number = len(feeds[alias])
            place = Place(name, 0, query.origins[alias])
            moment = max(self._schedule.brings(alias, reached[alias]), query.starts)
            self._agenda.at(moment, lambda: self._source(place, alias, number))

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

    def simulations(self) -> Simulations:
        """Let everything happen. An error tells the last events before it."""
        try:
            for happening in self._agenda:
                self._trace.time = self._agenda.now
                self._happen(happening)
            self._check_end()
        except Exception as error:
            error.add_note(
                f"in step {self._agenda.step:,} of the simulation with seed {self._settings.seed}, at "
                f"{self._agenda.now:.4f} seconds; before it:\n{told(self._trace.events)}"
            )
            raise
        return Simulations({name: self._simulation(name) for name in self._queries}, self._links.used())

    def _happen(self, happening: Callable[[], None]) -> None:
        try:
            happening()
        except Died:
            return
        for changes in self._changes.values():
            waiting = changes.waits(self._disruptions.calm_since)
            if waiting is not None:
                self._invariants.waits(*waiting)

    def _check_end(self) -> None:
        for name, changes in self._changes.items():
            for record in changes.records:
                if not record.phase.is_over:
                    raise InvariantError(f"a plan change of {name} never ends: it is {record.phase}")

    def _source(self, place: Place, alias: str, number: int) -> None:
        """So many batches of a stream have come where it starts."""
        self._sites[place].available.sources[alias] = number
        self._wake(place)

    def _arrive(self, place: Place, channel: str, number: int) -> None:
        """A batch has reached a site that subscribes to its channel."""
        back = self._disruptions.broker.back
        if back is not None:
            self._agenda.at(back, lambda: self._arrive(place, channel, number))
        elif place in self._sites:
            available = self._sites[place].available.channels
            available[channel] = max(available.get(channel, NONE), number)
            self._wake(place)

    def _wake(self, place: Place) -> None:
        """Have a site look at what has arrived, soon, or when it is back."""
        if place not in self._awake:
            self._awake.add(place)
            moment = self._agenda.now + self._random.uniform(0, PAUSE)
            self._agenda.at(max(moment, self._disruptions.away_until(place.site) or moment), lambda: self._look(place))

    def _look(self, place: Place) -> None:
        self._awake.discard(place)
        if place not in self._sites:
            return
        if self._disruptions.away_until(place.site) is not None:
            self._wake(place)
        elif self._sites[place].step():
            if self._sites[place].is_behind:
                self._wake(place)
            self._changes[place.query].stepped(place.generation, place.site)
            self._tell(place)

    def _tell(self, place: Place) -> None:
        """Have the controller of a site look at what it has done."""
        deciding = self._deciding.get(place.query)
        generation = self.deployed(place.query).served(place.generation, place.site)
        if deciding is not None and deciding.wants_figures(generation, place.site):
            figures = self._sites[place].figures()
            if figures is not None:
                deciding.observe(replace(figures, generation=generation))

    def forget(self, site: str) -> None:
        """A site has lost what was in its memory."""
        self._change_messages.forget(site)
        for deciding in self._deciding.values():
            deciding.forget(site)
        for place, simulated in self._sites.items():
            if place.site == site:
                simulated.come_back()

    def come_back(self, site: str) -> None:
        """A site is there again. Before it does anything, it reads what it has promised."""
        places = [place for place in self._sites if place.site == site]
        for place in places:
            self._wake(place)
        try:
            self._change_messages.come_back(site)
        finally:
            for place in places:
                self._sites[place].gate = self._recall(place)

    def resume(self) -> None:
        """The channels can be reached again."""
        for place in self._sites:
            self._wake(place)

    def send_message(self, source: str, target: str, told: str, then: Callable[[], None]) -> None:
        """Carry a control message. It is lost if its target is away, unless that is the coordinator."""
        # Control messages have links of their own: what they cost is counted as messages, not as bytes of a query.
        arrives = self._links.arrival(source, target, self._agenda.now)
        self._disruptions.send(source, target, told, arrives, then, waits=target == self._change_messages.home)

    def _learned(self, site: str, state: ChangeState) -> None:
        """A site has learned something: it acts on it next, and not in the middle of what it is doing."""
        self._invariants.said(state)
        self._agenda.at(self._agenda.now, lambda: self._when_able(site, lambda: self._act(site, state.change)))

    def _act(self, site: str, change: Change) -> None:
        """A site acts on all that it knows of a change by now; it may have died since, and know nothing."""
        state = self._change_messages.state(site, change)
        if state is not None:
            self._changes[change.query].learned(site, state)

    def _when_able(self, site: str, happening: Callable[[], None]) -> None:
        """Have a site do something when the channels can be reached, unless it is away then."""
        back = self._disruptions.broker.back
        if back is not None:
            self._agenda.at(back, lambda: self._when_able(site, happening))
        elif self._disruptions.away_until(site) is None:
            happening()

    # What plan changes do

    @property
    def now(self) -> float:
        return self._agenda.now

    def clock(self, site: str) -> float:
        """What the clock of a site shows."""
        return self._disruptions.clock(site)

    def deployed(self, query: str) -> Deployed:
        return self._readers[query].deployed

    def watermarks(self, channels: Sequence[str]) -> list[int]:
        """How far channels have come."""
        return self._delivery.watermarks(channels)

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

    def unable_until(self, site: str) -> float | None:
        """Until when a site is away, or the channels cannot be reached; None if it can do something."""
        return self._disruptions.away_until(site) or self._disruptions.broker.back

    def later(self, moment: float, happening: Callable[[], None]) -> None:
        self._agenda.at(moment, happening)

    def redeploy(self, query: str, deployed: Deployed) -> None:
        """Go on with other generations of a query, or other reigns: what is new starts, what is gone ends."""
        reader = self._readers[query]
        reader.read(self.now)
        self._invariants.redeployed(query, deployed)
        reader.deployed = deployed
        going_on = {Place(query, spec.generation, spec.site): spec.work for spec in deployed.specs}
        for place in [place for place in self._sites if place.query == query and place not in going_on]:
            ended = self._sites.pop(place)
            self._delivery.close(place, ended.work, ended.name)
        for place, work in going_on.items():
            if place not in self._sites:
                self._add(place, work)
                self._delivery.fill(place, work)
        reader.read(self.now)

    def note(self, query: str, site: str, what: str) -> None:
        self._trace.note(site, what, query)

    # What comes of it

    def _simulation(self, name: str) -> Simulation:
        query, reader = self._queries[name], self._readers[name]
        sites = [site for place, site in self._sites.items() if place.query == name]
        schema = next(site.result_schema for site in sites if site.result_schema is not None)
        return Simulation(
            query.deployment,
            reader.results(query.query, schema),
            self._links.used_by(name),
            reader.latencies,
            self._trace.of(name),
            self._seconds,
            tuple(self._changes[name].records),
            self._messages(name),
            self._links.crossings(name),
        )

    def _messages(self, query: str) -> dict[str, int]:
        messages = Counter(self._change_messages.messages)
        if query in self._deciding:
            messages += self._deciding[query].messages
        return dict(messages)

    def _send(self, place: Place, outlet: Outlet, batch: Batch) -> None:
        """A place publishes a batch."""
        work = self._sites[place].work
        if outlet.fragment in work.own:
            self._hear(place.query, outlet.fragment)
        self._invariants.published(place, work, outlet, batch)
        if outlet.fragment in work.finals:
            self._readers[place.query].read(self.now)
        self._delivery.send(place, outlet, batch)

    def _delays(self) -> list[float]:
        """How late each copy of a batch arrives. A channel may deliver a batch twice."""
        copies = 2 if self._disruptions.strikes(self._faults.repeats) else 1
        return [copy * self._random.uniform(0, 10 * PAUSE) for copy in range(copies)]

    def _hear(self, query: str, alias: str) -> None:
        """A stream has brought something: tell of those that do not."""
        sources, deployed = self._sources[query], self._queries[query].deployed
        sources.moved(alias, self.now)
        sites = {deployed.query.source(silent).declared.name: deployed.origins[silent] for silent in sources.news()}
        for stream, site in sites.items():
            self.note(query, site, silence_text(query, stream, site))

    def _dies(self, place: Place, point: str) -> bool:
        dies = self._disruptions.strikes(self._faults.crash_rate)
        if dies:
            self.note(place.query, place.site, f"dies {point}")
        return dies


def _bound(topology: Topology) -> float | None:
    """How long a phase of a plan change may take; None if links may be too slow for what they have to carry."""
    if any(link.bandwidth is not None for link in topology.links):
        return None
    from scipy.sparse.csgraph import dijkstra

    latencies = np.array([link.latency or 0.0 for link in topology.links])
    ways = dijkstra(topology.graph(latencies))
    return SETTLES + CROSSINGS * float(ways[np.isfinite(ways)].max(initial=0.0))
