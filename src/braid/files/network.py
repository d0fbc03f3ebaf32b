"""Network files: a network, the streams that start at its sites, and queries over them, as YAML.

A file looks like this; paths are relative to it:

    topology: {links: [{source: paris, target: lyon, latency: 0.004}]}    # or the path of a topology file
    streams:
      flights: {site: paris, path: flights.parquet, lateness: 5 seconds}
      bags: {site: lyon, path: bags.csv, time: scanned}
    queries:
      gates: {sql: "SELECT ..", sink: lyon, planner: exact, cost: network_usage}

To run it on Spark, streams may have any source of Spark's, as in a job file, and queries say where their results go:

    directory: state                              # channels and checkpoints; by default beside the file
    channels: {kind: nats, url: "nats://host:4222"}  # or kafka; if they are not in the directory
    streams:
      flights: {site: paris, format: json, path: flights, schema: {ts: TIMESTAMP, num: INT}}
    queries:
      gates: {sql: "SELECT ..", sink: lyon, statistics: known.yaml, output: {format: parquet, path: gates}}
    trigger: 1 second
    adapt: false                                  # keep plans as they are; by default they change by themselves
    controller: distributed                       # who decides on changes; by default the program with the results
    spark: {spark.driver.memory: 2g}
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, time
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from braid.errors import BraidError
from braid.files.job import AVAILABLE_NOW, SinkEntry, SourceEntry, read_sink, read_source, read_trigger
from braid.files.located_yaml import Located, read_yaml
from braid.files.statistics import statistics_of
from braid.model.moment import moment_of
from braid.model.network.controllers import check_controller
from braid.model.network.sites import Link, Site
from braid.model.network.topology import Topology, take_directions
from braid.model.statistics import Statistics
from braid.model.window import FOREVER

Made = TypeVar("Made")


@dataclass(frozen=True)
class StreamEntry:
    """A stream and the site where it starts."""

    site: str
    source: SourceEntry

    @property
    def name(self) -> str:
        return self.source.name


@dataclass(frozen=True)
class NetworkQueryEntry:
    """A query, the site that needs its results (None for any), and how to plan it. `output` is where results go.

    See `Network.deploy` for `reuse` and `since`, which is in microseconds of event time.
    """

    name: str
    text: str
    sink: str | None
    planner: str | None
    cost: str
    statistics: Statistics | None
    shards: int | None
    reuse: bool
    since: int
    output: SinkEntry | None
    location: Located = field(repr=False)


@dataclass(frozen=True)
class NetworkFile:
    """The content of a network file. `channels` says where they are if not in the directory.

    `paths` are the files that the topology was read from. `channels_location` is where errors about channels point to.
    """

    topology: Topology
    streams: tuple[StreamEntry, ...]
    queries: tuple[NetworkQueryEntry, ...]
    directory: Path
    channels: Mapping[str, Any] | None
    trigger: int | None
    spark: Mapping[str, str]
    adapt: bool = True
    controller: str = "central"
    paths: tuple[Path, ...] = ()
    channels_location: Located | None = field(default=None, repr=False, compare=False)

    @property
    def trigger_text(self) -> str | None:
        """The trigger as Spark reads it."""
        return None if self.trigger is None else f"{self.trigger} milliseconds"

    def streams_at(self, site: str) -> list[SourceEntry]:
        return [entry.source for entry in self.streams if entry.site == site]


def load_network(file: Path) -> NetworkFile:
    """Read and check a network file; `FileError` with file and line for the first mistake in it."""
    required = ("topology", "streams", "queries")
    optional = ("directory", "channels", "trigger", "adapt", "controller", "spark")
    fields = read_yaml(file).fields(*required, *optional, required=required)
    topology = _topology(fields["topology"])
    streams = fields["streams"].mapping("a mapping of streams").items()
    queries = fields["queries"].mapping("a mapping of queries").items()
    if not queries:
        raise fields["queries"].error("there is no query to run; add one")
    directory = fields["directory"].text() if "directory" in fields else f"{file.stem}-state"
    return NetworkFile(
        topology,
        tuple(_stream(name, entry, topology) for name, entry in streams),
        tuple(_query(name, entry, topology) for name, entry in queries),
        file.resolve().parent / directory,
        _channels(fields["channels"]) if "channels" in fields else None,
        _trigger(fields["trigger"]) if "trigger" in fields else None,
        fields["spark"].options() if "spark" in fields else {},
        fields["adapt"].boolean() if "adapt" in fields else True,
        _controller(fields["controller"]) if "controller" in fields else "central",
        _paths(file, fields["topology"]),
        fields.get("channels"),
    )


def _paths(file: Path, topology: Located) -> tuple[Path, ...]:
    path = file.resolve()
    return (path, path.parent / topology.content) if isinstance(topology.content, str) else (path,)


def _trigger(entry: Located) -> int:
    trigger = read_trigger(entry)
    if trigger == AVAILABLE_NOW:
        raise entry.error(
            "no site knows when the last row of another one has come, so that a network does not stop at the end of "
            "the input; give a duration such as '1 second', or leave the trigger out"
        )
    return int(trigger)


def _topology(entry: Located) -> Topology:
    if isinstance(entry.content, str):
        path = entry.file.resolve().parent / entry.content
        return _at(entry, lambda: Topology.load(path))
    fields = entry.fields("sites", "links", required=("links",))
    given = fields["links"].elements("a list of links")
    links = [_at(each, partial(Link.of, _plain(each))) for each in given]
    if "sites" in fields:
        listed = fields["sites"].elements("a list of names or mappings")
        sites = [_at(each, partial(Site.of, _plain(each))) for each in listed]
    else:
        sites = [Site(end) for end in dict.fromkeys(end for link in links for end in (link.source, link.target))]
    names, taken = [site.name for site in sites], set[tuple[str, str]]()
    for each, link in zip(given, links, strict=True):
        _at(each, partial(take_directions, link, names, taken))
    return _at(entry, lambda: Topology(tuple(sites), tuple(links)))


def _stream(name: str, entry: Located, topology: Topology) -> StreamEntry:
    source = read_source(name, entry, more_keys=("site",), required=("site",))
    return StreamEntry(_site(entry.mapping()["site"], topology), source)


def _query(name: str, entry: Located, topology: Topology) -> NetworkQueryEntry:
    keys = ("sql", "sink", "planner", "cost", "statistics", "shards", "reuse", "since", "output")
    fields = entry.fields(*keys, required=("sql",))
    statistics = None
    if "statistics" in fields:
        path = entry.file.resolve().parent / fields["statistics"].text()
        statistics = _at(fields["statistics"], lambda: statistics_of(path))
    return NetworkQueryEntry(
        name=name,
        text=fields["sql"].text(),
        sink=_site(fields["sink"], topology) if "sink" in fields else None,
        planner=fields["planner"].text() if "planner" in fields else None,
        cost=fields["cost"].text() if "cost" in fields else "network_usage",
        statistics=statistics,
        shards=fields["shards"].positive_integer() if "shards" in fields else None,
        reuse=fields["reuse"].boolean() if "reuse" in fields else False,
        since=_since(fields["since"]) if "since" in fields else -FOREVER,
        output=read_sink(fields["output"]) if "output" in fields else None,
        location=fields["sql"],
    )


def _since(entry: Located) -> int:
    """A time as YAML writes it, or microseconds since 1970."""
    if isinstance(entry.content, date) and not isinstance(entry.content, datetime):
        return moment_of(datetime.combine(entry.content, time.min))
    if isinstance(entry.content, bool) or not isinstance(entry.content, int | datetime):
        raise entry.expected("a time such as 2024-07-01 06:00:00, or microseconds since 1970")
    return _at(entry, lambda: moment_of(entry.content))


def _site(entry: Located, topology: Topology) -> str:
    site = entry.text()
    _at(entry, lambda: topology.position(site))
    return site


def _channels(entry: Located) -> dict[str, Any]:
    """Where the channels are. Who opens them checks the rest, see `channels_of_file` in `hosts/network_channels.py`."""
    fields = entry.mapping("a mapping with a kind, such as {kind: nats, url: ..}")
    if "kind" not in fields:
        raise entry.error("channels need the key 'kind', such as nats or kafka")
    fields["kind"].text()
    return {key: _plain(value) for key, value in fields.items()}


def _controller(entry: Located) -> str:
    kind = entry.text()
    _at(entry, lambda: check_controller(kind))
    return kind


def _at(entry: Located, make: Callable[[], Made]) -> Made:
    """What a call gives; its errors get the file and the line of an entry."""
    try:
        return make()
    except BraidError as error:
        raise entry.error(str(error)) from error


def _plain(entry: Located) -> Any:
    """A YAML value without positions."""
    if isinstance(entry.content, dict):
        return {key: _plain(value) for key, value in entry.content.items()}
    if isinstance(entry.content, list):
        return [_plain(value) for value in entry.content]
    return entry.content
