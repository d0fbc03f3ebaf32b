"""A query that runs over a network, as `Network.deploy` returns it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from braid.adapt.history import RecordedChange
from braid.channels.channel import lag
from braid.channels.channels import Channels
from braid.hosts.network_status import link_traffic
from braid.hosts.spark.driver.channel_frames import read_results
from braid.hosts.spark.driver.grouping import grouped
from braid.hosts.spark.driver.intake_query import IntakeQuery
from braid.hosts.spark.driver.network_site import NetworkSite
from braid.hosts.spark.driver.site_part import SitePart, SiteSettings
from braid.hosts.spark.driver.site_query import SiteQuery
from braid.model.network.topology import Topology
from braid.model.plan import Plan
from braid.planning.cost.bill import Bill
from braid.runtime.query_spec import QuerySpec
from braid.runtime.routing import Router
from braid.runtime.sites.deployed import Deployed
from braid.runtime.sites.site_spec import SiteSpec
from braid.runtime.sites.traffic import Traffic


class DeployedQuery:
    """What `Network.deploy` returns. `dataframe` has the results; start it like any other streaming DataFrame.

    The sites run from the deployment on, whether or not somebody reads the results; their channel keeps them until
    somebody does. `dataframe` is read once: a second start on another checkpoint finds only what the first one has not
    taken.
    """

    def __init__(
        self,
        deployed: Deployed,
        topology: Topology,
        channels: Channels,
        settings: SiteSettings,
        reader: SparkSession,
    ) -> None:
        self.name = deployed.name
        self.deployed = deployed
        self._topology = topology
        self._channels = channels
        self._settings = settings
        self._intakes: dict[tuple[str, str], IntakeQuery] = {}
        """What runs here of the intakes, by site and stream."""
        self._parts: dict[tuple[int, str], SiteQuery] = {}
        """What runs here of the plans, by generation and site."""
        self.dataframe = self._read(reader)

    def start(self, sites: Mapping[str, NetworkSite]) -> None:
        """Run the parts of some sites."""
        for site, spec in self.deployed.intakes.items():
            if site in sites:
                self._add_intakes(sites[site], spec)
        for generation in self.deployed.generations:
            for site, spec in generation.sites.items():
                if site in sites:
                    part = SiteQuery(sites[site].spark, spec, self._channels, self._settings)
                    self._parts[generation.number, site] = part
        try:
            for runnable in (*self._intakes.values(), *self._parts.values()):
                runnable.start()
        except BaseException:
            self.stop()
            raise

    def _add_intakes(self, site: NetworkSite, spec: SiteSpec) -> None:
        for stream in dict.fromkeys(spec.query.source(alias).declared.name for alias in spec.work.own):
            dataframe = site.dataframes[stream]
            intake = IntakeQuery(site.spark, spec, stream, dataframe, self._channels, self._settings)
            self._intakes[site.name, stream] = intake

    def _read(self, spark: SparkSession) -> DataFrame:
        deployed = self.deployed
        plan = Plan.in_text_order(deployed.query).written
        spec = QuerySpec(deployed.text, deployed.streams, plan, Router(()), deployed.event_time)
        results = read_results(
            spark,
            self._channels,
            deployed.results,
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

    def traffic(self) -> dict[str, Traffic]:
        """What has crossed each link since the query was deployed."""
        return link_traffic(self.deployed, self._topology, self._channels)

    def progress(self) -> dict[str, dict[str, Any]]:
        """The figures of the last micro-batch of each site that runs here, by site and by intake or join."""
        figures: dict[str, dict[str, Any]] = {}
        for (site, _), intake in self._intakes.items():
            figures.setdefault(site, {}).update(intake.progress())
        for (_, site), part in self._parts.items():
            figures.setdefault(site, {}).update(part.reports.progress())
        return figures

    def history(self) -> dict[str, tuple[RecordedChange, ...]]:
        """The plan changes inside the sites that run here, by join."""
        changes: dict[str, tuple[RecordedChange, ...]] = {}
        for (_, site), part in self._parts.items():
            changes |= {f"{name} at {site}": history for name, history in part.reports.history().items()}
        return changes

    def check(self) -> None:
        """Raise the error that a site failed with, if one failed."""
        for part in self._running:
            part.check()

    def process_available(self) -> None:
        """Wait until everything that the streams have brought so far has become results.

        A site that has read all its inputs may get more from another one that has not.
        """
        while True:
            for part in self._running:
                part.process_available()
            if not self.is_behind:
                return

    @property
    def is_behind(self) -> bool:
        """Whether a site has not processed everything that its channels have."""
        return any(self._waiting(part) for part in self._parts.values())

    def _waiting(self, part: SiteQuery) -> bool:
        """Whether a channel has anything that a site has not processed."""
        taken = part.positions()
        return any(lag(self._channels.open(name), taken.get(name, -1)).batches for name in part.spec.work.arriving)

    def stop(self) -> None:
        """Stop the sites that run here; they go on from their checkpoints when the query is deployed again."""
        for part in self._running:
            part.stop()

    @property
    def checkpoints(self) -> dict[str, list[Path]]:
        """The checkpoints of the sites that run here."""
        checkpoints: dict[str, list[Path]] = {}
        for part in self._running:
            checkpoints.setdefault(part.spec.site, []).append(part.checkpoint)
        return checkpoints
