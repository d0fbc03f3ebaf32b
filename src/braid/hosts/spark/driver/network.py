"""`braid.Network`: sites, the streams that start there, and queries deployed over them."""

from __future__ import annotations

import atexit
import hashlib
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from shutil import rmtree
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from braid.channels.channels import Channels
from braid.channels.directories import DirectoryChannels
from braid.channels.kinds import channels_of
from braid.errors import BraidError, PlanError, StreamError, did_you_mean
from braid.files.network import load_network
from braid.hosts.spark.driver import cluster
from braid.hosts.spark.driver.deployed_query import DeployedQuery
from braid.hosts.spark.driver.network_site import NetworkSite
from braid.hosts.spark.driver.pipeline import free_name
from braid.hosts.spark.driver.session import make_cache_directory
from braid.hosts.spark.driver.site_query import SiteSettings
from braid.language import parse
from braid.language.grouping import EVENT_TIME_COLUMN
from braid.model.checks import check_positive
from braid.model.network.topology import Topology
from braid.model.statistics import Statistics
from braid.model.stream import Stream
from braid.planning.assumed import assumed_statistics
from braid.planning.cost.models import CostModel
from braid.planning.deployment import Deployment
from braid.planning.plan import plan as plan_query
from braid.planning.planners import Planner
from braid.runtime.declarations import streams_from_json, streams_to_json
from braid.runtime.fingerprint import meaning
from braid.runtime.sites.deployed import KIND, Deployed

STREAM = "stream"
"""The kind of document that announces a stream and the site where it starts."""


class Network:
    """The sites of a network, and what runs there.

    `topology` is a `Topology`, or the path of a network file. `directory` is where channels and the checkpoints of the
    sites are kept; give one to go on after a restart. By default it is a directory that is removed when this program
    ends. `channels` says that the channels are elsewhere, as the `channels` of a network file do.
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
        log: str | Path | None = None,
    ) -> None:
        self.topology = topology if isinstance(topology, Topology) else load_network(Path(topology)).topology
        self.directory = _directory(directory)
        self.channels: Channels = _channels(channels, self.directory)
        self._log = log
        self._sites: dict[str, NetworkSite] = {}
        self._queries: dict[str, DeployedQuery] = {}
        self._settings = SiteSettings(
            checkpoints=self.directory / "sites",
            cache=make_cache_directory(cache),
            cache_limit=cache_limit,
            trigger=trigger,
        )

    def site(self, name: str, spark: SparkSession | None = None) -> NetworkSite:
        """A site that this program runs, on a Spark of its own or on one that it shares with others."""
        self.topology.position(name)
        if name not in self._sites:
            self._sites[name] = NetworkSite(name, spark, self._log, self._declare)
        elif spark is not None and spark is not self._sites[name].spark:
            raise BraidError(f"site '{name}' runs on another Spark already; ask for it without one")
        return self._sites[name]

    def _declare(self, site: NetworkSite, stream: Stream, dataframe: DataFrame) -> None:
        """Announce a stream, so that queries of other programs may read it too."""
        announced = self.channels.announced(STREAM).get(stream.name)
        if announced is not None and announced["site"] != site.name:
            raise StreamError(
                f"stream '{stream.name}' starts at site '{announced['site']}' already, and a stream starts at one "
                f"site; declare the one at '{site.name}' under another name"
            )
        document = {"site": site.name, "stream": streams_to_json([stream])}
        if announced != document:
            self.channels.announce(STREAM, stream.name, document)

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
    ) -> DeployedQuery:
        """Plan a query over the network and run it; the parts of sites that other programs run start there.

        `sink` is the site where the results are wanted; by default they stay where they are made. Without `statistics`
        all streams go to the sink and are joined there. `plan` runs a deployment that was planned before. Each join is
        split into `shards` parts, by default as many as its site has cores.

        A query that was deployed before goes on from its checkpoints, with the plan that it had. Queries are known by
        their `name`, by default one that is made from the text.
        """
        name = name or f"query_{hashlib.sha256(text.encode()).hexdigest()[:8]}"
        if name in self._queries:
            raise BraidError(f"query '{name}' runs already; stop it first, or give this one another name")
        if shards is not None:
            check_positive(shards, "the number of shards")
        announced = self.channels.announced(KIND).get(name)
        if announced is not None:
            deployed = Deployed.from_json(announced)
            self._check_same(deployed, text)
        else:
            deployed = self._plan(name, text, sink, planner, cost, statistics, plan, shards)
            for channel, subscriber in deployed.subscriptions():
                self.channels.open(channel).subscribe(subscriber)
            self.channels.announce(KIND, name, deployed.to_json())
        query = DeployedQuery(deployed, self.topology, self.channels, self._settings, self._reader(sink))
        query.start({site: self._sites[site] for site in deployed.sites if site in self._sites})
        self._queries[name] = query
        return query

    def _plan(
        self,
        name: str,
        text: str,
        sink: str | None,
        planner: str | Planner | None,
        cost: str | CostModel,
        statistics: Statistics | None,
        plan: Deployment | None,
        shards: int | None,
    ) -> Deployed:
        sites, declared = self._streams()
        query = parse(text, declared)
        origins = {source.alias: sites[source.declared.name] for source in query.sources}
        if plan is None:
            known = replace(statistics or assumed_statistics(query), sites=origins)
            chosen = planner or ("exact" if statistics is not None else "at_sink")
            plan = plan_query(query, known, self.topology, planner=chosen, cost=cost, sink=sink)
        elif plan.query != query:
            raise PlanError("the plan is for another query, or for other streams; plan this query, or leave plan= out")
        outputs = [*query.outputs, *(query.grouping.outputs if query.grouping is not None else ())]
        return Deployed.of(
            name,
            text,
            [declared[stream] for stream in dict.fromkeys(source.declared.name for source in query.sources)],
            plan,
            origins,
            event_time=free_name(EVENT_TIME_COLUMN, [getattr(output, "name", "") for output in outputs]),
            shards=shards or max([cluster.cores(site.spark) for site in self._sites.values()], default=1),
        )

    def _check_same(self, deployed: Deployed, text: str) -> None:
        if meaning(parse(text, self._streams()[1])) != meaning(deployed.query):
            raise BraidError(
                f"query '{deployed.name}' was deployed as\n{deployed.text}\nand this is\n{text}\n"
                "deploy it under another name, or drop the first one"
            )

    def _streams(self) -> tuple[dict[str, str], dict[str, Stream]]:
        """The site where each announced stream starts, and its declaration."""
        sites, declared = {}, {}
        for name, document in self.channels.announced(STREAM).items():
            sites[name] = document["site"]
            (declared[name],) = streams_from_json(document["stream"])
        return sites, declared

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
        for query in self.queries:
            query.process_available()

    def stop(self) -> None:
        """Stop all queries that run here; they go on from their checkpoints when they are deployed again."""
        for query in self.queries:
            query.stop()
        self._queries.clear()


def _directory(given: str | Path | None) -> Path:
    if given is not None:
        return Path(given).absolute()
    directory = Path(tempfile.mkdtemp(prefix="braid-network-"))
    atexit.register(rmtree, directory, ignore_errors=True)
    return directory


def _channels(given: Channels | Mapping[str, Any] | None, directory: Path) -> Channels:
    if given is None:
        return DirectoryChannels(directory)
    return channels_of(given) if isinstance(given, Mapping) else given
