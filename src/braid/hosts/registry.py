"""What is announced in a network: the streams of its sites, and the queries deployed over them.

Programs that share the channels of a network know each other by this alone. None of it needs Spark.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from uuid import uuid4

from braid.channels.batch import NONE
from braid.channels.channel import complete_from, holds
from braid.channels.channels import Channels
from braid.channels.plain_names import plain_name
from braid.errors import BraidError, PlanError, PlanningError, StreamError, did_you_mean
from braid.hosts.announced import Deployments, announced_deployment, announced_deployments
from braid.hosts.change_log import ChangeLog
from braid.hosts.copied_bytes import carried_before, copied_by_new_joins, copied_to_new_sites
from braid.hosts.deployed_plans import DeployedPlans
from braid.hosts.deployment_request import DeploymentRequest
from braid.hosts.drafts import Drafts
from braid.hosts.figures_log import FiguresLog
from braid.hosts.mailbox import Mailbox
from braid.hosts.network_status import added, shipped_for
from braid.hosts.rejections import Rejections
from braid.hosts.roll_call import RollCall
from braid.hosts.sharing import begun, share
from braid.language import parse
from braid.language.free_names import event_time_name
from braid.model.checks import check_name
from braid.model.network.topology import Topology
from braid.model.stream import Stream
from braid.model.window import FOREVER
from braid.planning.deployment import Deployment
from braid.planning.plan import refuse_views
from braid.runtime.declarations import streams_from_json, streams_to_json
from braid.runtime.fingerprint import meaning
from braid.runtime.migration.change import Change, ChangeState, Phase, Verdict
from braid.runtime.migration.succession import begin_change, check_movable, retired
from braid.runtime.sites.deployed import KIND, Deployed
from braid.runtime.sites.fitting import fitted
from braid.runtime.sites.offer import OfferedStream
from braid.runtime.sites.weaker_join import RunningPlan, SharedJoin, reading_offers, shared_joins

STREAM = "stream"
"""The kind of document that announces a stream and the site where it starts."""

RESULTS = "results"
"""The kind of document that tells readers which channels have the results of a query."""

DROP = "drop"
"""The kind of document that asks all sites to stop a query; see `drops.py`."""

UNKNOWN = "a query whose document cannot be read"
"""What reads a channel, if that is all that is known."""

IDENTITY_LENGTH = 8
"""Hexadecimal digits of the identity of a deployment: only those under one name must differ."""


class Registry:
    """The announcements of one network."""

    def __init__(self, topology: Topology, channels: Channels) -> None:
        self._channels = channels
        self.rejections = Rejections()
        self.changes = ChangeLog(channels, self.rejections)
        self.figures = FiguresLog(channels, self.rejections)
        self.plans = DeployedPlans(topology, self.figures)
        self.roll_call = RollCall(channels)
        self._drafts = Drafts(channels, self.rejections)

    def declare(self, site: str, stream: Stream) -> None:
        """Announce a stream that starts at a site."""
        self.plans.topology.position(site)
        announced = self.origins().get(stream.name)
        if announced is not None and announced != site:
            raise StreamError(
                f"stream '{stream.name}' starts at site '{announced}' already, and a stream starts at one "
                f"site; declare the one at '{site}' under another name"
            )
        document = {"site": site, "stream": streams_to_json([stream])}
        if self._channels.announced(STREAM).get(stream.name) != document:
            self._channels.announce(STREAM, stream.name, document)

    def streams(self) -> dict[str, Stream]:
        """The announced streams by name."""
        return {name: stream for name, (_, stream) in self._declared().items()}

    def origins(self) -> dict[str, str]:
        """The site where each announced stream starts."""
        return {name: site for name, (site, _) in self._declared().items()}

    def _declared(self) -> dict[str, tuple[str, Stream]]:
        """The announced streams by name, each with its site. Documents that declare none are rejected."""
        declared = {}
        for name, document in self._channels.announced(STREAM).items():
            try:
                (stream,) = streams_from_json(document["stream"])
                check_name(document["site"], "the site of a stream", StreamError)
                if stream.name != name:
                    raise StreamError(f"it declares '{stream.name}'")
                declared[name] = document["site"], stream
            except (BraidError, LookupError, TypeError, ValueError, AttributeError) as error:
                why = f"the announced stream '{name}' is rejected: {error!r}; start its site again"
                self.rejections.add(STREAM, name, document, why)
        return declared

    def batches_of_streams(self, deployed: Deployed) -> dict[str, int]:
        """The number of the last batch that each stream of a query has brought, by alias."""
        lasts = {
            outlet.fragment: self._channels.open(outlet.channel).last()
            for spec in deployed.intakes.values()
            for outlet in spec.work.outlets
            if outlet.fragment in spec.work.own
        }
        return {alias: NONE if last is None else last.number for alias, last in lasts.items()}

    def deployments(self) -> Deployments:
        return announced_deployments(self._channels, self.changes)

    def deploy(self, request: DeploymentRequest) -> Deployed:
        """Plan a query and announce what each site runs. A query that was deployed before keeps its plan."""
        name = request.deployment_name
        if name in self._channels.announced(DROP):
            raise BraidError(
                f"query '{name}' is being dropped; wait until it is, drop it again if nobody waits for that any more, "
                "or give this one another name"
            )
        while True:
            announced = announced_deployment(self._channels, self.changes, name)
            if announced is not None:
                self._check_same(announced, request.text)
                # The program that announced it may have died before it did the rest.
                self._channels.announce_new(RESULTS, name, {"channels": announced.result_reigns})
                self._drafts.end_others(announced)
                return announced
            offers = self.offers(request.since) if request.reuse or request.plan is not None else []
            running = self._running() if request.reuse else []
            deployed, joins = self._planned(request, offers, running, uuid4().hex[:IDENTITY_LENGTH])
            drafts = [join.deployed() for join in joins]
            for one in (*drafts, deployed):
                self._drafts.subscribe(one)
            read = {channel for channel, _ in deployed.subscriptions()}
            begun_joins = begun(joins, self._channels, request.since)
            lost = {offer.channel for offer in offers} - {offer.channel for offer in self.offers(request.since)}
            # Announced before others change their plans, so that what it reads of these stays.
            if begun_joins is not None and read.isdisjoint(lost) and self._announce_all([*begun_joins, deployed]):
                break
            # Others have been faster: what was there when the query was planned is not there any more, or the query or
            # a join is there that was not. Joins that were announced are among the offers from now on.
            for one in (deployed, *drafts):
                self._end_draft(one)
        share(read, self.deployments(), running, self._begin_change_for_others)
        return deployed

    def _end_draft(self, draft: Deployed) -> None:
        """End a draft that is not announced. If nobody can tell what is, it stays."""
        deployments = self.deployments()
        if not deployments.is_unreadable(draft.name):
            self._drafts.end(draft, deployments.get(draft.name))

    def _announce_all(self, begun: Sequence[Deployed]) -> bool:
        """Announce deployments that begin; False if another program has announced one of the same name before."""
        for deployed in begun:
            if not self._channels.announce_new(KIND, deployed.name, deployed.to_json()):
                return False
            self._channels.announce(RESULTS, deployed.name, {"channels": deployed.result_reigns})
            self._drafts.end_others(deployed)
        return True

    def _running(self) -> list[RunningPlan]:
        """The queries whose filters may be weakened: with a plan of their own that is not being changed."""
        running = []
        for deployed in self._staying():
            if not deployed.is_dropped and self.changes.under_way(deployed.name) is None:
                try:
                    running.append(RunningPlan(deployed, self.plans.running(deployed)))
                except (PlanError, PlanningError):
                    continue  # It reuses joins of others, or another program knows what its plans cost.
        return running

    def _staying(self) -> list[Deployed]:
        """The deployments that nobody is dropping."""
        dropping = self._channels.announced(DROP)
        return [deployed for deployed in self.deployments().values() if deployed.name not in dropping]

    def _begin_change_for_others(
        self, name: str, plan: Deployment, reason: str, asked: float, offers: Sequence[OfferedStream]
    ) -> Change:
        return self.begin_change(name, plan, reason, asked, offers=offers)

    def deployment(self, name: str) -> Deployed:
        """A query that is deployed, as it is announced now."""
        deployed = announced_deployment(self._channels, self.changes, name)
        if deployed is None:
            raise BraidError(f"no query '{name}' is deployed; {did_you_mean(name, self._channels.announced(KIND))}")
        return deployed

    def begin_change(
        self,
        name: str,
        plan: Deployment,
        reason: str,
        asked: float,
        predicted: float | None = None,
        offers: Sequence[OfferedStream] = (),
    ) -> Change:
        """Begin to change the plan of a query that runs. Its sites see it and carry it out.

        The plan may reuse the `offers`.
        """
        deployed = self.deployment(name)
        plan = self.fitted_plan(deployed, plan)
        under_way = self.changes.under_way(name)
        if under_way is not None:
            raise PlanError(
                f"a plan change of query '{name}' is under way, and is {under_way.phase}; wait until it is over"
            )
        if any(self._is_done(state, deployed) for state in self.changes.states(name)):
            raise PlanError(
                f"the plan of query '{name}' has just changed, and its coordinator has not announced that yet; "
                "ask again"
            )
        deployed = replace(deployed, newest=self.changes.first_free(name, deployed.newest + 1) - 1)
        # Subscribed first: from then on nothing is removed that the new generation needs.
        draft = deployed.with_generation(replace(deployed.planned(plan, offers=offers), reign=None))
        self._drafts.subscribe(draft)
        try:
            change, prepared = begin_change(deployed, plan, self._watermarks, reason, asked, offers)
            new = prepared.generation(change.new)
            new = replace(new, began={**new.began, **carried_before(deployed, new, self._channels)})
            prepared = prepared.with_generation(new)
            if predicted is None:
                predicted = self.plans.predicted(deployed, plan)
            change = replace(change, predicted=predicted, copied=copied_to_new_sites(deployed, new, self._channels))
            if not self.changes.begin(change, prepared):
                raise PlanError(
                    f"another program has just begun a plan change of query '{name}'; wait until it is over"
                )
            begun_on = self.deployments().get(name)
            if begun_on is None or new not in begun_on.generations:
                self.changes.end(self.changes.state(change))
                raise PlanError(f"query '{name}' was dropped, or has changed its plan, meanwhile; look, and ask again")
            try:  # What was planned at the same moment has seen the change, or is seen here.
                self._check_unread(begun_on)
            except PlanError as refusal:
                self.changes.say(change, Verdict(go=False, reason=str(refusal)))
                raise
        except BraidError:
            self._end_draft(draft)
            raise
        self._drafts.end_others(begun_on)
        return change

    def fitted_plan(self, deployed: Deployed, plan: Deployment) -> Deployment:
        """A plan that a query can change to; `PlanError` if it cannot change to this one."""
        plan = fitted(plan, deployed.name, deployed.query, deployed.origins, self.plans.topology)
        self._check_unread(deployed)
        check_movable(deployed.query)
        return plan

    def _is_done(self, state: ChangeState, deployed: Deployed) -> bool:
        """Whether a change is done, and the old plan is still announced as one that is at work."""
        at_work = [generation.number for generation in deployed.at_work]
        return state.phase is Phase.DONE and state.change.old in at_work and state.change.new in at_work

    def make_way(self, name: str) -> bool:
        """Give up the plan change of a query for another one, unless its sites have agreed on it.

        False if they have: the other change has to wait until this one is over.
        """
        under_way = self.changes.under_way(name)
        if under_way is not None and under_way.verdict is None:
            self.changes.say(under_way.change, Verdict(go=False, reason="another change takes its place"))
            under_way = self.changes.under_way(name)  # The sites may have agreed at this moment.
        return under_way is None

    def _check_unread(self, deployed: Deployed) -> None:
        """Refuse to change the plan of a query if others read its joins."""
        users = self._readers(deployed, deployed.joined)
        if users:
            raise PlanError(f"{', '.join(users)} read joins of query '{deployed.name}', so that its plan has to stay")

    def arrived(self, name: str) -> int:
        """How far all streams of a query have come where they enter it."""
        intakes = self.deployment(name).intakes.values()
        return min(self._watermarks([outlet.channel for spec in intakes for outlet in spec.work.outlets]))

    def _watermarks(self, channels: Sequence[str]) -> list[int]:
        lasts = [self._channels.open(channel).last() for channel in channels]
        return [-FOREVER if last is None else last.watermark for last in lasts]

    def copied(self, deployed: Deployed, change: Change) -> int:
        """The bytes that were shipped to fill the windows of the new generation of a change that is over."""
        return change.copied + copied_by_new_joins(deployed, change, self._channels)

    def announce(self, deployed: Deployed) -> None:
        """Announce a query, and tell the readers of its results where these are. It replaces earlier announcements."""
        self._channels.announce(KIND, deployed.name, deployed.to_json())
        self._channels.announce(RESULTS, deployed.name, {"channels": deployed.result_reigns})

    def retire(self, deployed: Deployed, state: ChangeState) -> None:
        """Announce that a plan change is over: the sites stop the generation that it has ended."""
        loser, ending = deployed.generation(state.loser), deployed.ending(state.loser)
        past = added(deployed.past, shipped_for(deployed, loser, ending, self._channels))
        self.announce(replace(retired(deployed, state), past=past))

    def forget_generation(self, deployed: Deployed, number: int) -> Deployed:
        """Remove the channels of a generation that has stopped, and end what it subscribed to."""
        remaining = deployed.without_generation(number)
        self.figures.forget(deployed.name, number)
        # Readers first, so that they do not look for channels that are gone. The deployment last: as long as it has the
        # generation, a program that died here begins again, and no subscription is left that would keep all batches.
        self._channels.announce(RESULTS, remaining.name, {"channels": remaining.result_reigns})
        self._drafts.release(deployed, remaining)
        self._channels.announce(KIND, remaining.name, remaining.to_json())
        return remaining

    def offers(self, since: int) -> list[OfferedStream]:
        """The joins of all deployments whose channels still hold all rows that a query since this moment needs."""
        stays = [one for one in self._staying() if self.changes.under_way(one.name) is None]
        offers = [offer for deployed in stays for offer in deployed.offers]
        return [offer for offer in offers if offer.since <= since and self._holds(offer, since)]

    def _holds(self, offer: OfferedStream, since: int) -> bool:
        """Whether the channel of a join still has every batch with rows that start at or after a moment."""
        return holds(self._channels.open(offer.channel), offer.keep, since)

    def users(self, deployed: Deployed) -> list[str]:
        """The deployments that read channels of this one."""
        return self._readers(deployed, deployed.published)

    def _readers(self, deployed: Deployed, channels: Collection[str]) -> list[str]:
        """The other deployments that read some channels, or will as soon as they are announced."""
        others = [one for one in self._subscribed() if one.name != deployed.name]
        reading = [one.name for one in others if any(channel in channels for channel, _ in one.subscriptions())]
        if self._read_by_unknown(deployed, channels):
            reading.append(UNKNOWN)
        return list(dict.fromkeys(reading))

    def _subscribed(self) -> list[Deployed]:
        """All that subscribes to channels: what is deployed, and drafts of what may be."""
        return [*self.deployments().values(), *self._drafts.all()]

    def _read_by_unknown(self, deployed: Deployed, channels: Collection[str]) -> set[str]:
        """Those of some channels of a deployment that others read whose documents cannot be read.

        What they read is known from the channels alone. Otherwise it would be removed.
        """
        if not self.deployments().unreadable:
            return set()
        known = {name for one in (deployed, *self._subscribed()) for _, name in one.subscriptions()}
        known |= set(map(plain_name, known))
        return {channel for channel in channels if self._channels.open(channel).released().keys() - known}

    def withdraw(self, deployed: Deployed) -> Deployed | None:
        """Forget a deployment, and remove its channels. Its sites must have stopped.

        If others read joins of it, returns what must go on for them.
        """
        announced = self.deployments().get(deployed.name)
        if announced is not None:
            deployed = announced  # A plan change may have begun since it was read, and is forgotten below.
            self._channels.announce(KIND, deployed.name, deployed.to_json())
        others = [other for other in self._subscribed() if other.name != deployed.name]
        used = {channel for other in others for channel, _ in other.subscriptions()}
        used |= self._read_by_unknown(deployed, deployed.published)
        remaining = deployed.dropped(used)
        self.changes.forget(deployed.name)
        # In the order of `forget_generation`: as long as the deployment is there, it can be dropped again.
        if remaining is None:
            self._channels.withdraw(RESULTS, deployed.name)
            self.figures.forget(deployed.name)
            for site in self.plans.topology.names:
                Mailbox(deployed.name, self._channels).take(site)
            self._drafts.release(deployed)
            self._channels.withdraw(KIND, deployed.name)
        else:
            self._channels.announce(RESULTS, remaining.name, {"channels": remaining.result_reigns})
            self._drafts.release(deployed, remaining)
            self._channels.announce(KIND, remaining.name, remaining.to_json())
        self._drafts.forget(deployed, remaining)
        return remaining

    def _check_same(self, deployed: Deployed, text: str) -> None:
        if deployed.is_dropped:
            raise BraidError(
                f"query '{deployed.name}' was dropped, and {', '.join(self.users(deployed))} still use its joins; "
                "deploy this one under another name"
            )
        if meaning(parse(text, self.streams())) != meaning(deployed.query):
            raise BraidError(
                f"query '{deployed.name}' was deployed as\n{deployed.text}\nand this is\n{text}\n"
                "deploy it under another name, or drop the first one"
            )

    def _planned(
        self,
        request: DeploymentRequest,
        offers: Sequence[OfferedStream],
        running: Sequence[RunningPlan],
        identity: str,
    ) -> tuple[Deployed, list[SharedJoin]]:
        """A new query with its first plan, and the joins with weaker filters that this plan needs."""
        declared, sites = self.streams(), self.origins()
        query = parse(request.text, declared)
        refuse_views(query)
        origins = {source.alias: sites[source.declared.name] for source in query.sources}
        deployed = Deployed.of(
            request.deployment_name,
            request.text,
            [declared[stream] for stream in dict.fromkeys(source.declared.name for source in query.sources)],
            query,
            origins,
            event_time=event_time_name(query),
            shards=request.shards,
            since=request.since,
            shared=request.reuse,
            sink=request.sink,
            planner=request.adapting_planner,
            cost=request.cost if isinstance(request.cost, str) else "",
            identity=identity,
        )
        self.plans.price_by(deployed.name, request.cost)
        weaker = [
            advertised
            for one in running
            for offer, advertised in one.weakenable()
            if max(offer.since, complete_from(map(self._channels.open, one.intakes))) <= request.since
        ]
        advertised = [offer.advertisement for offer in offers]
        plan = self.plans.plan(request, query, origins, [*advertised, *weaker])
        joins = shared_joins(plan, running, offers, identity)
        if weaker and (joins is None or any(self._is_known(join.name) for join in joins)):
            plan, joins = self.plans.plan(request, query, origins, advertised), []
        if joins:
            offers = [*offers, *(offer for join in joins for offer in join.deployed().offers)]
            plan = reading_offers(plan, offers)
        generation = deployed.planned(plan, offers=offers, shared=request.reuse)
        return deployed.with_generation(generation), joins or []

    def _is_known(self, name: str) -> bool:
        """Whether a query of this name is deployed, or is being dropped."""
        documents = self._channels.announced(KIND)
        return name in documents or documents.is_damaged(name) or name in self._channels.announced(DROP)

    @property
    def topology(self) -> Topology:
        return self.plans.topology
