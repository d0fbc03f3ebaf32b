"""`braid.Network`: sites, the streams that start there, and queries deployed over them."""

from __future__ import annotations

import atexit
import tempfile
import time
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from shutil import rmtree
from typing import Any

from pyspark.sql import SparkSession

from braid.adapt.controller import Policy
from braid.channels.channels import Channels
from braid.channels.kinds import open_channels
from braid.errors import BraidError, did_you_mean
from braid.files.network import NetworkFile, load_network
from braid.hosts.deployment_request import DeploymentRequest
from braid.hosts.drops import Drops
from braid.hosts.edited_file import EditedFile
from braid.hosts.network_channels import channels_of_file
from braid.hosts.registry import Registry
from braid.hosts.spark.driver import cluster
from braid.hosts.spark.driver.checkpoint_removal import left_in, mark_left, remove_left
from braid.hosts.spark.driver.deployed_query import DeployedQuery
from braid.hosts.spark.driver.network_site import NetworkSite
from braid.hosts.spark.driver.notebook import network_html
from braid.hosts.spark.driver.query_watch import QueryWatch
from braid.hosts.spark.driver.session import make_cache_directory
from braid.hosts.spark.driver.site_part import SiteSettings, checkpoints_of
from braid.model.checks import check_positive
from braid.model.moment import moment_of
from braid.model.network.controllers import check_controller
from braid.model.network.topology import Topology
from braid.model.statistics import Statistics
from braid.planning.cost.models import CostModel
from braid.planning.deployment import Deployment
from braid.planning.planners import Planner
from braid.runtime.sites.deployed import Deployed


class Network:
    """The sites of a network, and what runs there.

    `topology` is a `Topology`, or the path of a network file. `directory` is where channels and the checkpoints of the
    sites are kept; give one to go on after a restart. By default it is that of the network file; without a file it is a
    directory that is removed when this program ends. `channels` says that the channels are elsewhere, in the form of a
    network file. `trigger` is the time between micro-batches, by default none. With `adapt`, the plans of queries
    change by themselves: the order inside a site, and order and placement between sites. With the `controller`
    "central", the program with the results of a query compares its plans; with "distributed", the sites of a query put
    its probe sequences in order among themselves. All programs of a network need the same one.
    """

    def __init__(
        self,
        topology: Topology | str | Path,
        *,
        directory: str | Path | None = None,
        channels: Channels | Mapping[str, Any] | None = None,
        cache: str | None = None,
        cache_limit: int | None = None,
        trigger: str | None = None,
        adapt: bool | Policy = True,
        controller: str | None = None,
        log: str | Path | None = None,
    ) -> None:
        self._file: EditedFile | None = None
        if not isinstance(topology, Topology):
            file = load_network(Path(topology))
            if channels is None and file.channels is not None:
                channels = channels_of_file(file)
            topology, directory = file.topology, directory or file.directory
            trigger, controller = trigger or file.trigger_text, controller or file.controller
            self.follow(file)
        controller = controller or "central"
        check_controller(controller)
        self.topology = topology
        self.directory = _directory(directory)
        if channels is None or isinstance(channels, Mapping | str):
            channels = open_channels(channels, self.directory)
        self.channels = channels
        self.registry = Registry(self.topology, self.channels)
        self.drops = Drops(self.registry, self.channels)
        self._log = log
        self._sites: dict[str, NetworkSite] = {}
        self._queries: dict[str, DeployedQuery] = {}
        self._watch = QueryWatch(self._looked_after)
        self._settings = SiteSettings(
            checkpoints=self.directory / "sites",
            cache=make_cache_directory(cache),
            cache_limit=cache_limit,
            trigger=trigger,
            adapt=adapt,
            controller=controller,
        )

    def follow(self, file: NetworkFile) -> None:
        """Watch a network file: when the figures of its links are edited, use the new ones."""
        self._file = EditedFile(file)

    def _looked_after(self) -> tuple[DeployedQuery, ...]:
        """The queries to look after. First says that the sites here run, and takes over links of an edited file."""
        self.answer()
        topology = None if self._file is None else self._file.edited_topology()
        if topology is not None:
            self.registry.plans.rewire(topology)
            self.topology = topology
        return self.queries

    def answer(self) -> None:
        """Say that the sites of this program run: other programs warn of those that do not."""
        self.registry.roll_call.answer(self.sites, time.time())

    def site(self, name: str, spark: SparkSession | None = None) -> NetworkSite:
        """A site that this program runs, on a Spark of its own or on one that it shares with others."""
        self.topology.position(name)
        if name not in self._sites:
            self._sites[name] = NetworkSite(name, spark, self._log, self.registry)
            self.remove_left()
        elif spark is not None and spark is not self._sites[name].spark:
            raise BraidError(f"site '{name}' runs on another Spark already; ask for it without one")
        return self._sites[name]

    def __repr__(self) -> str:
        return f"<network with {len(self._sites)} sites and {len(self._queries)} queries here>"

    def _repr_html_(self) -> str:
        sites = {name: site.dataframes for name, site in self._sites.items()}
        results = {name: " and ".join(query.deployed.current.results) for name, query in self._queries.items()}
        return network_html(sites, results)

    def deploy(
        self,
        text: str,
        *,
        name: str | None = None,
        sink: str | None = None,
        planner: str | Planner | None = None,
        cost: str | CostModel = "network_usage",
        statistics: Statistics | None = None,
        plan: Deployment | None = None,
        shards: int | None = None,
        reuse: bool = False,
        since: int | datetime | None = None,
    ) -> DeployedQuery:
        """Plan a query over the network and run it; the parts of sites that other programs run start there.

        `sink` is the site where the results are wanted; by default they stay where they are made. Without `statistics`
        all streams go to the sink and are joined there. `plan` runs a deployment that was planned before. Each join is
        split into `shards` parts, by default as many as its site has cores.

        With `reuse` the query reads joins of other queries where that is cheaper and they still hold what it needs, and
        publishes its own joins for later ones. With `since`, a time or microseconds of event time, it has the
        combinations all of whose rows start then or later.

        A query that was deployed before goes on from its checkpoints, with the plan that it had. Queries are known by
        their `name`, by default one that is made from the text.
        """
        if shards is not None:
            check_positive(shards, "the number of shards")
        cores = [cluster.cores(site.spark) for site in self._sites.values()]
        shards = shards or max(cores, default=1)
        request = DeploymentRequest(text, name, sink, planner, cost, statistics, plan, shards, reuse, moment_of(since))
        running = self._queries.get(request.deployment_name)
        if running is not None and not running.is_stopped and not running.deployed.is_dropped:
            raise BraidError(
                f"query '{request.deployment_name}' runs already; stop it first, or give this one another name"
            )
        query = self.run(self.registry.deploy(request), sink)
        for name, other in self.registry.deployments().items():
            if other.is_dropped and name not in self._queries:
                self.run(other)  # This query may read what is left of it.
        return query

    def run(self, deployed: Deployed, sink: str | None = None) -> DeployedQuery:
        """Run the parts that the sites here have in a deployment."""
        query = DeployedQuery(deployed, self.registry, self.channels, self._settings, self._reader(sink))
        query.start(self._sites)
        self._queries[deployed.name] = query
        self._watch.start()
        return query

    def _reader(self, sink: str | None) -> SparkSession:
        """The Spark that reads results: that of the sink if it is here, or else that of any site here."""
        if sink is not None:
            self.topology.position(sink)
            if sink in self._sites:
                return self._sites[sink].spark
        if not self._sites:
            raise BraidError("this program runs no site of the network; call site(..) first")
        return next(iter(self._sites.values())).spark

    @property
    def sites(self) -> tuple[str, ...]:
        """The sites that this program runs."""
        return tuple(self._sites)

    @property
    def queries(self) -> tuple[DeployedQuery, ...]:
        """The queries that this program has deployed."""
        return tuple(self._queries.values())

    def query(self, name: str) -> DeployedQuery:
        if name not in self._queries:
            raise BraidError(f"there is no query '{name}' here; {did_you_mean(name, self._queries)}")
        return self._queries[name]

    def process_available(self) -> None:
        """Wait until every query has processed everything that its streams have brought so far."""
        while True:
            for query in self.queries:
                query.process_available()
            if not any(query.is_behind for query in self.queries):
                return  # Otherwise a query has got more from another one.

    def stop(self) -> None:
        """Stop all queries that run here; they go on from their checkpoints when they are deployed again."""
        self._watch.stop()
        for query in self.queries:
            query.stop()
        self._queries.clear()

    def drain(self, site: str) -> None:
        """Move the joins of all queries away from a site while they run. Streams that start there stay.

        If one of them cannot move, none does.
        """
        self.topology.position(site)
        for query in self.queries:
            query.plan_without(site)
        for query in self.queries:
            query.drain(site)
        for query in self.queries:
            query.await_change()

    def leave(self, deployed: Deployed) -> None:
        """Stop what runs here of a query that another program drops, and say so."""
        if deployed.name in self._queries:
            self._queries.pop(deployed.name).stop()
        self._say_stopped(deployed)

    def _say_stopped(self, deployed: Deployed) -> None:
        """Mark the checkpoints of a query that is dropped, and say that the sites here have stopped it.

        In this order: once all sites have said so, only the marks tell where something of the query is left. The
        checkpoints are there also if a site has been started again and does not run the query yet.
        """
        for checkpoint in self._checkpoints(deployed):
            mark_left(checkpoint)
        for site in deployed.sites & self._sites.keys():
            self.drops.stopped(deployed.name, site)

    def remove_left(self) -> None:
        """Remove what the sites here have left of queries that are dropped by now, also if they were killed since.

        Nothing is removed as long as nobody can tell which checkpoints a deployment has.
        """
        directories = [self._settings.checkpoints / site for site in self._sites]
        if any(map(left_in, directories)):
            deployments = self.registry.deployments()
            if deployments.unreadable:
                return
            kept = {checkpoint for deployed in deployments.values() for checkpoint in self._checkpoints(deployed)}
            for directory in directories:
                remove_left(directory, kept)

    def _checkpoints(self, deployed: Deployed) -> list[Path]:
        """The checkpoints of what the sites here run of a query."""
        specs = [spec for spec in deployed.specs if spec.site in self._sites]
        return [checkpoint for spec in specs for checkpoint in checkpoints_of(spec, self._settings)]

    def drop(self, name: str, *, wait: float = 60.0) -> None:
        """Stop a query for good, and remove its channels and what this program has in its checkpoints.

        Sites in other programs stop it, too, within `wait` seconds. Joins that other queries read go on for them, and
        end with the last of these. Any program may drop a query, also one that another program has deployed.
        """
        if name in self._queries and name not in self.registry.deployments():
            self.leave(self._queries[name].deployed)  # Another program has dropped it.
            self.remove_left()
            return
        deployed = self.drops.droppable(name)
        if deployed is None:
            return
        self._end(deployed, wait)
        while unused := self.drops.unused():
            for other in unused:
                self._end(other, wait)

    def _end(self, deployed: Deployed, wait: float) -> None:
        name = deployed.name
        self.drops.ask(name)
        if name in self._queries:
            self._queries[name].stop()
        # Also sites that have never started their part have to say so: nobody else does it for them.
        self._say_stopped(deployed)
        remaining = self.drops.end(deployed, wait)
        self.remove_left()
        if self._queries.pop(name, None) is not None and remaining is not None:
            self.run(remaining)


def _directory(path: str | Path | None) -> Path:
    """The directory of a network; a temporary one if there is no path."""
    if path is not None:
        return Path(path).absolute()
    directory = Path(tempfile.mkdtemp(prefix="braid-network-"))
    atexit.register(rmtree, directory, ignore_errors=True)
    return directory
