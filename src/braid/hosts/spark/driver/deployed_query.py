"""A query that runs over a network, as `Network.deploy` returns it."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from braid.adapt.controller import policy_of
from braid.adapt.history import RecordedChange
from braid.channels.channel import lag
from braid.channels.channels import Channels
from braid.errors import BraidError, PlanError
from braid.hosts.change_log import PlanMove
from braid.hosts.delays import Delays
from braid.hosts.deployment_request import DeploymentRequest
from braid.hosts.network_status import carried_sizes, link_traffic
from braid.hosts.plan_controllers import PlanControllers
from braid.hosts.registry import Registry
from braid.hosts.site_teller import SiteTeller
from braid.hosts.spark.driver.channel_frames import read_results
from braid.hosts.spark.driver.checkpoint_removal import remove_checkpoint
from braid.hosts.spark.driver.grouping import grouped
from braid.hosts.spark.driver.intake_query import IntakeQuery
from braid.hosts.spark.driver.network_site import NetworkSite
from braid.hosts.spark.driver.notebook import deployed_query_html
from braid.hosts.spark.driver.site_part import SitePart, SiteSettings, checkpoints_of
from braid.hosts.spark.driver.site_query import SiteQuery
from braid.hosts.spark.driver.succession import Succession
from braid.model.plan import Plan
from braid.model.statistics import Sized, Statistics
from braid.planning.cost.bill import Bill
from braid.planning.cost.models import CostModel
from braid.planning.deployment import Deployment
from braid.planning.planners import Planner
from braid.planning.relocation import drained, moved
from braid.runtime.migration.change import Phase
from braid.runtime.query_spec import QuerySpec
from braid.runtime.routing import Router
from braid.runtime.sites.deployed import Deployed
from braid.runtime.sites.site_spec import SiteSpec
from braid.runtime.sites.traffic import Traffic

logger = logging.getLogger(__name__)

LOOK_SECONDS = 0.1
"""Seconds between two looks at a plan change that somebody waits for."""


class DeployedQuery:
    """What `Network.deploy` returns. `dataframe` has the results; start it like any other streaming DataFrame.

    The sites run from the deployment on, whether or not somebody reads the results; their channel keeps them until
    somebody does. `dataframe` is read once: a second start on another checkpoint finds only what the first one has not
    taken.
    """

    def __init__(
        self,
        deployed: Deployed,
        registry: Registry,
        channels: Channels,
        settings: SiteSettings,
        reader: SparkSession,
    ) -> None:
        self.name = deployed.name
        self.deployed = deployed
        self._registry = registry
        self._channels = channels
        self._settings = settings
        self._succession = Succession(deployed.name, registry, channels)
        self._delays = Delays(registry, logger.warning)
        self._policy = policy_of(settings.adapt)
        self._controllers = (
            None
            if self._policy is None
            else PlanControllers(self.name, registry, channels, self._policy, settings.controller)
        )
        self._tellers: dict[tuple[int, str], SiteTeller] = {}
        """What tells the figures of the sites here to others, by the same. Intakes have 0."""
        self._sites: Mapping[str, NetworkSite] = {}
        self._intakes: dict[tuple[str, str], IntakeQuery] = {}
        """What runs here of the intakes, by site and stream."""
        self._parts: dict[tuple[int, str], SiteQuery] = {}
        """What runs here of the plans, by the generation that it was started for, and site.

        Replaced as a whole, never changed: other threads iterate over it while parts start and stop.
        """
        self._lock = threading.RLock()
        """Held while parts start and stop: the program and its watch may do so at the same time."""
        self._is_stopped = False
        self.dataframe = self._read(reader)

    def start(self, sites: Mapping[str, NetworkSite]) -> None:
        """Run the parts of some sites."""
        with self._lock:
            self._sites = sites
            try:
                for site, spec in self.deployed.intakes.items():
                    if site in sites:
                        self._add_intakes(sites[site], spec)
                for intake in self._intakes.values():
                    intake.start()
                self._start_generations()
            except BaseException:
                self.stop()
                raise

    def _start_generations(self) -> None:
        """Start the work of the sites here for generations that they do not run yet."""
        for generation in self.deployed.at_work:
            for site, spec in generation.sites.items():
                if site in self._sites and (spec.generation, site) not in self._parts:
                    spark = self._sites[site].spark
                    teller = self._teller(spec)
                    part = SiteQuery(spark, spec, self._channels, self._registry.changes, self._settings, teller)
                    for state in self._succession.states_of(generation.number):
                        part.publisher.take_part(state)
                    self._parts = {**self._parts, (spec.generation, site): part}
                    part.start()

    def look(self) -> None:
        """See what has been announced of the query since the last look, and do what there is to do here."""
        with self._lock:
            if self._is_stopped:
                return
            deployed = self._registry.deployment(self.name)
            if deployed.identity != self.deployed.identity:
                raise BraidError(
                    f"query '{self.name}' was dropped, and another one is deployed under its name; stop this one"
                )
            self.deployed = deployed
            self._start_generations()
            self._stop_retired()
            self._succession.take_part(self._sites, self._parts)
            self._adapt()
            self._delays.look(self.deployed, time.time())

    def _teller(self, spec: SiteSpec) -> SiteTeller | None:
        """What tells the figures of a site, if plans change by themselves."""
        if self._policy is None:
            return None
        key = spec.generation, spec.site
        if key not in self._tellers:
            self._tellers[key] = SiteTeller(self.name, spec, self._channels, self._registry.figures, self._policy)
        return self._tellers[key]

    def _adapt(self) -> None:
        """Announce the figures of the sites here, and change the plan if that pays and this program coordinates."""
        now = time.time()
        for (started_for, site), teller in self._tellers.items():
            teller.tell(now, self.deployed.served(started_for, site))
        if self._controllers is None or self.deployed.is_dropped:
            return
        proposal = self._controllers.look(self.deployed, self._sites, now)
        if proposal is not None:
            logger.info("query '%s': %s", self.name, proposal.reason)
            self._registry.begin_change(self.name, proposal.plan, proposal.reason, now, proposal.predicted)

    def _stop_retired(self) -> None:
        """Stop the generations that a plan change has ended, and say so."""
        at_work = {
            (spec.generation, spec.site) for generation in self.deployed.at_work for spec in generation.sites.values()
        }
        ended_parts = {key: part for key, part in self._parts.items() if key not in at_work}
        self._parts = {key: part for key, part in self._parts.items() if key in at_work}
        for key, part in ended_parts.items():
            part.stop()
            self._tellers.pop(key, None)
        for ended in self.deployed.generations:
            if ended.is_retired:
                for site, spec in self.deployed.ending(ended.number).items():
                    if site in self._sites:
                        # Also those of an earlier program, which was stopped before it saw this.
                        for checkpoint in checkpoints_of(spec, self._settings):
                            remove_checkpoint(checkpoint)
                        self._succession.stopped(ended.number, site)

    def _add_intakes(self, site: NetworkSite, spec: SiteSpec) -> None:
        for stream in dict.fromkeys(spec.query.source(alias).declared.name for alias in spec.work.own):
            dataframe = site.dataframes[stream]
            teller = self._teller(spec)
            intake = IntakeQuery(site.spark, spec, stream, dataframe, self._channels, self._settings, teller)
            self._intakes[site.name, stream] = intake

    def _read(self, spark: SparkSession) -> DataFrame:
        deployed = self.deployed
        plan = Plan.in_text_order(deployed.query).written
        spec = QuerySpec(deployed.text, deployed.streams, plan, Router(()), deployed.event_time)
        results = read_results(
            spark,
            self._channels,
            deployed.name,
            deployed.reader,
            spec.result_schema,
            self._settings.most_bytes,
        )
        return grouped(results, spec, self.name)

    @property
    def parts(self) -> tuple[SiteQuery, ...]:
        """What the sites here join for the query."""
        return tuple(self._parts.values())

    @property
    def _running(self) -> tuple[SitePart, ...]:
        """Everything that runs here."""
        return (*self._intakes.values(), *self._parts.values())

    @property
    def bill(self) -> Bill:
        """What the plan expected to pay."""
        return self.deployed.bill

    def explain(self) -> str:
        """The plan as text: the site of each operator, and the charges that make up the cost."""
        return self.deployed.explanation

    def __repr__(self) -> str:
        return f"<query {self.name} with results at {' and '.join(self.deployed.current.results)}>"

    def _repr_html_(self) -> str:
        known = self.statistics()
        loads = {} if known is None else known.loads
        return deployed_query_html(self.name, self.deployed.text, self.explain(), self.traffic(), loads)

    def traffic(self) -> dict[str, Traffic]:
        """What has crossed each link since the query was deployed, and what was planned to."""
        return link_traffic(self.deployed, self._registry.topology, self._channels)

    def sizes(self) -> dict[Sized, float]:
        """The bytes per row of each stream and join, as channels have carried them: the `sizes` of `Statistics`."""
        return carried_sizes(self.deployed, self._channels)

    def progress(self) -> dict[str, dict[str, Any]]:
        """The figures of the last micro-batch of each site that runs here, by site and by intake or join."""
        figures: dict[str, dict[str, Any]] = {}
        for (site, _), intake in self._intakes.items():
            figures.setdefault(site, {}).update(intake.progress())
        for (_, site), part in self._parts.items():
            figures.setdefault(site, {}).update(part.reports.progress())
        return figures

    def orders(self) -> dict[str, tuple[RecordedChange, ...]]:
        """The changes of the order inside each join of three or more inputs that runs here."""
        changes: dict[str, tuple[RecordedChange, ...]] = {}
        for (_, site), part in self._parts.items():
            changes |= {f"{name} at {site}": history for name, history in part.reports.history().items()}
        return changes

    def history(self) -> list[PlanMove]:
        """The changes of the plan between sites that are over, oldest first."""
        return self._registry.changes.history(self.name)

    def replan(
        self,
        plan: Deployment | None = None,
        *,
        planner: str | Planner = "exact",
        cost: str | CostModel = "network_usage",
        statistics: Statistics | None = None,
        reason: str = "asked for",
    ) -> None:
        """Change to another plan while the query runs: one that was planned before, or one for these statistics.

        The new plan starts beside the old one, and takes over when it has filled its windows. `await_change` waits for
        that. A change that is under way and not agreed on yet is given up for this one; otherwise this one waits.
        """
        self._check_running()
        if plan is None:
            request = DeploymentRequest(self.deployed.text, self.name, self.deployed.sink, planner, cost, statistics)
            plan = self._registry.plans.plan(request, self.deployed.query, self.deployed.origins)
        plan = self._registry.fitted_plan(self.deployed, plan)
        if not self._registry.make_way(self.name):
            self.await_change()
        with self._lock:
            self.look()  # What came of an earlier change is announced first.
            self._registry.begin_change(self.name, plan, reason, time.time())
            self.look()

    def move(self, operator: str, site: str) -> None:
        """Move a join, named as `explain()` shows it, to another site while the query runs."""
        self.replan(
            moved(self._registry.plans.running(self.deployed), operator, site), reason=f"move {operator} to {site}"
        )

    def drain(self, site: str) -> None:
        """Move all joins away from a site while the query runs, and keep the plan like that until `unpin`."""
        plan = self.plan_without(site)
        if plan is not None:
            self.pin()
            self.replan(plan, reason=f"drain {site}")

    def plan_without(self, site: str) -> Deployment | None:
        """The running plan with no join at a site, for `drain`; None if there is none.

        `PlanError` if the joins there have to stay.
        """
        self._registry.topology.position(site)
        self._check_running()
        if site not in self.deployed.at_work[-1].sites:
            return None
        return self._registry.fitted_plan(self.deployed, drained(self._registry.plans.running(self.deployed), site))

    def _check_running(self) -> None:
        """Refuse to change the plan of a query that this program has stopped: nobody here would take part."""
        if self._is_stopped:
            raise PlanError(
                f"query '{self.name}' is stopped in this program, so that its plan cannot change; deploy it again, "
                "then change its plan"
            )

    def pin(self) -> None:
        """Keep the sites and the order of the joins between them, whatever the figures are."""
        self._registry.figures.pin(self.name)

    def unpin(self) -> None:
        """Let the plan change by itself again."""
        self._registry.figures.unpin(self.name)

    def statistics(self) -> Statistics | None:
        """The statistics of the query by the figures of its sites; None if the rate of a stream is not known yet.

        With `adapt=False` nobody measures anything, so that there are none.
        """
        return self._registry.plans.statistics(self.deployed)

    @property
    def change(self) -> Phase | None:
        """The progress of the plan change that is under way; None if there is none."""
        state = self._registry.changes.under_way(self.name)
        return None if state is None else state.phase

    def await_change(self) -> None:
        """Wait until no plan change is under way.

        The old plan ends when the event time of all streams has passed the moment that was agreed on: streams that
        pause hold it up. So does a site that does not run; after a while a warning names it.
        """
        while self._registry.changes.under_way(self.name) is not None:
            self.check()
            self.look()
            time.sleep(LOOK_SECONDS)

    def check(self) -> None:
        """Raise the error that a site failed with, if one failed."""
        for part in self._running:
            part.check()

    def process_available(self) -> None:
        """Wait until everything that the streams have brought so far has become results.

        A site that has read all its inputs may get more from another one that has not. Nothing happens once the query
        has been stopped.
        """
        while not self._is_stopped:
            self.look()
            for part in self._running:
                part.process_available()
            if not self.is_behind:
                return

    @property
    def is_behind(self) -> bool:
        """Whether a site that runs here has not processed everything that its channels have."""
        with self._lock:  # The channels of a part may be removed once it has been stopped.
            return not self._is_stopped and any(self._waiting(part) for part in self.parts)

    def _waiting(self, part: SiteQuery) -> bool:
        """Whether a channel has anything that a site has not processed."""
        taken = part.positions()
        return any(lag(self._channels.open(name), taken.get(name, -1)).batches for name in part.spec.work.arriving)

    @property
    def is_stopped(self) -> bool:
        """Whether `stop` was called. To go on, deploy the query again."""
        return self._is_stopped

    def stop(self) -> None:
        """Stop the sites that run here; they go on from their checkpoints when the query is deployed again."""
        with self._lock:
            self._is_stopped = True
            for part in self._running:
                part.stop()
            for teller in self._tellers.values():
                teller.clear()
            if self._controllers is not None:
                self._controllers.clear()
