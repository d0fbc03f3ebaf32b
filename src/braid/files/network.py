"""Network files: a network, the streams that start at its sites, and queries over them, as YAML.

A file looks like this; paths are relative to it:

    topology: {links: [{source: paris, target: lyon, latency: 0.004}]}    # or the path of a topology file
    streams:
      flights: {site: paris, path: flights.parquet, lateness: 5 seconds}
      bags: {site: lyon, path: bags.csv, time: scanned}
    queries:
      gates: {sql: "SELECT ..", sink: lyon, planner: exact, cost: network_usage}
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from braid.errors import BraidError
from braid.files.located_yaml import Located, read_yaml
from braid.model.duration import parse_duration
from braid.model.network.topology import Topology


@dataclass(frozen=True)
class StreamEntry:
    """A stream and the site where it starts. `format` is that of its file or files."""

    name: str
    site: str
    path: Path
    format: str
    time: str
    lateness: str
    place: Located = field(repr=False)


@dataclass(frozen=True)
class NetworkQueryEntry:
    """A query, the site that needs its results (None for any), and how to plan it."""

    name: str
    text: str
    sink: str | None
    planner: str
    cost: str
    place: Located = field(repr=False)


@dataclass(frozen=True)
class NetworkFile:
    """The content of a network file."""

    topology: Topology
    streams: tuple[StreamEntry, ...]
    queries: tuple[NetworkQueryEntry, ...]


def load_network(file: Path) -> NetworkFile:
    """Read and check a network file; `FileError` with file and line for the first mistake in it."""
    keys = ("topology", "streams", "queries")
    fields = read_yaml(file).fields(*keys, required=keys)
    topology = _at(fields["topology"], lambda: _topology(fields["topology"]))
    streams = fields["streams"].mapping("a mapping of streams").items()
    queries = fields["queries"].mapping("a mapping of queries").items()
    if not queries:
        raise fields["queries"].error("there is no query to run; add one")
    return NetworkFile(
        topology,
        tuple(_stream(name, entry, topology) for name, entry in streams),
        tuple(_query(name, entry, topology) for name, entry in queries),
    )


def _topology(entry: Located) -> Topology:
    if isinstance(entry.content, str):
        return Topology.load(entry.file.resolve().parent / entry.content)
    fields = entry.fields("sites", "links", required=("links",))
    sites = _plain(fields["sites"]) if "sites" in fields else None
    return Topology.from_links(_plain(fields["links"]), sites=sites)


def _stream(name: str, entry: Located, topology: Topology) -> StreamEntry:
    fields = entry.fields("site", "path", "format", "time", "lateness", required=("site", "path"))
    path = entry.file.resolve().parent / fields["path"].text()
    return StreamEntry(
        name=name,
        site=_site(fields["site"], topology),
        path=path,
        format=fields["format"].text() if "format" in fields else path.suffix.removeprefix(".") or "parquet",
        time=fields["time"].text() if "time" in fields else "ts",
        lateness=_duration(fields["lateness"]) if "lateness" in fields else "0 seconds",
        place=entry,
    )


def _query(name: str, entry: Located, topology: Topology) -> NetworkQueryEntry:
    fields = entry.fields("sql", "sink", "planner", "cost", required=("sql",))
    return NetworkQueryEntry(
        name=name,
        text=fields["sql"].text(),
        sink=_site(fields["sink"], topology) if "sink" in fields else None,
        planner=fields["planner"].text() if "planner" in fields else "exact",
        cost=fields["cost"].text() if "cost" in fields else "network_usage",
        place=fields["sql"],
    )


def _site(entry: Located, topology: Topology) -> str:
    site = entry.text()
    _at(entry, lambda: topology.position(site))
    return site


def _duration(entry: Located) -> str:
    if not isinstance(entry.content, str) or parse_duration(entry.content) is None:
        raise entry.expected("a duration such as '5 seconds'")
    return entry.content


def _at(entry: Located, make: Callable[[], Any]) -> Any:
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
