"""Everything a site must know of its part of a deployment, as one JSON text: for its driver and for its workers."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

from braid.language import parse
from braid.model.expressions.expression import Column
from braid.model.predicate import Predicate
from braid.model.program import ALWAYS
from braid.model.query import Query
from braid.model.stream import Stream
from braid.runtime.declarations import streams_from_json, streams_to_json
from braid.runtime.fingerprint import meaning
from braid.runtime.sites.fragment import Fragment
from braid.runtime.sites.guard_json import guard_from_json, guard_to_json
from braid.runtime.sites.node import Node
from braid.runtime.sites.site import nodes_of
from braid.runtime.sites.wire import Reading, WireStream
from braid.runtime.sites.work import Outlet, SiteWork


@dataclass(frozen=True)
class SiteSpec:
    """The work of one site for one query.

    `deployment` is the unique name of the deployment, with the number of the plan that the site was started for.
    `event_time` is the name of the event-time column in results. Each fragment is split into at most `shards` shards;
    `labels` are the keys by which the host knows the shards of all fragments, one fragment after the other.
    `generation` is the plan that the site was started for; later ones may take it over. Intakes belong to no plan and
    have 0.
    """

    deployment: str
    site: str
    text: str
    streams: tuple[Stream, ...]
    work: SiteWork
    event_time: str
    shards: int = 1
    labels: tuple[int, ...] = ()
    generation: int = 0

    @property
    def query(self) -> Query:
        return self.work.query

    @cached_property
    def nodes(self) -> dict[str, Node]:
        return nodes_of(self.work, self.shards, self.event_time)

    @cached_property
    def shard_keys(self) -> list[tuple[str, int]]:
        """Every shard of the site: the name of its node and its number there, in the order of `labels`."""
        return [(name, shard) for name, node in self.nodes.items() for shard in range(node.router.shards)]

    @cached_property
    def label_of(self) -> dict[tuple[str, int], int]:
        return dict(zip(self.shard_keys, self.labels, strict=True))

    @cached_property
    def shard_of(self) -> dict[int, tuple[str, int]]:
        return {label: key for key, label in self.label_of.items()}

    def stream_of(self, outlet: Outlet) -> Stream:
        """The stream that an outlet of an intake publishes."""
        return self.query.source(self.work.fragments[outlet.fragment].reads[0]).declared

    @property
    def subscriber(self) -> str:
        """The name under which the site subscribes to channels."""
        return f"{self.deployment} at {self.site}"

    @property
    def publisher(self) -> str:
        """The name under which the site subscribes to its own channels, to release what it keeps for newcomers."""
        return f"publisher of {self.subscriber}"

    def publishes(self, channels: Collection[str]) -> bool:
        return any(outlet.channel in channels for outlet in self.work.outlets)

    def publishing(self, channels: Collection[str], readers: Collection[str]) -> SiteSpec:
        """The same work, of which only some channels are published, for these sites."""
        outlets = tuple(
            replace(outlet, readers=tuple(reader for reader in outlet.readers if reader in readers))
            for outlet in self.work.outlets
            if outlet.channel in channels
        )
        return replace(self, work=replace(self.work, outlets=outlets))

    def spread(self, shards: int, labels: tuple[int, ...] = ()) -> SiteSpec:
        return replace(self, shards=shards, labels=labels)

    @property
    def fingerprint(self) -> dict[str, Any]:
        """What must not change between runs on one checkpoint: all that a site runs follows from it and the labels."""
        return {"query": meaning(self.query), "text": self.text}

    def to_json(self) -> str:
        return json.dumps(
            {
                "deployment": self.deployment,
                "site": self.site,
                "text": self.text,
                "streams": streams_to_json(self.streams),
                "work": _work_to_json(self.work),
                "event_time": self.event_time,
                "shards": self.shards,
                "labels": self.labels,
                "generation": self.generation,
            }
        )

    @staticmethod
    @lru_cache(maxsize=16)
    def from_json(text: str) -> SiteSpec:
        """The spec that `to_json` wrote; the same object for the same text, so that a worker builds its parts once."""
        content = json.loads(text)
        streams = streams_from_json(content["streams"])
        query = parse(content["text"], {stream.name: stream for stream in streams})
        return SiteSpec(
            deployment=content["deployment"],
            site=content["site"],
            text=content["text"],
            streams=streams,
            work=_work_from_json(content["work"], query),
            event_time=content["event_time"],
            shards=content["shards"],
            labels=tuple(content["labels"]),
            generation=content["generation"],
        )


def _work_to_json(work: SiteWork) -> dict[str, Any]:
    return {
        "own": work.own,
        "fragments": {name: _fragment_to_json(fragment) for name, fragment in work.fragments.items()},
        "arriving": dict(work.arriving),
        "outlets": [_outlet_to_json(outlet, work.query) for outlet in work.outlets],
        "since": work.since,
    }


def _work_from_json(content: Mapping[str, Any], query: Query) -> SiteWork:
    return SiteWork(
        query,
        tuple(content["own"]),
        {name: _fragment_from_json(fragment, query) for name, fragment in content["fragments"].items()},
        {channel: tuple(streams) for channel, streams in content["arriving"].items()},
        tuple(_outlet_from_json(outlet, query) for outlet in content["outlets"]),
        content["since"],
    )


def _outlet_to_json(outlet: Outlet, query: Query) -> dict[str, Any]:
    return asdict(replace(outlet, guard=ALWAYS)) | {"guard": guard_to_json(outlet.guard, query)}


def _outlet_from_json(content: Mapping[str, Any], query: Query) -> Outlet:
    fields = content["fields"]
    return Outlet(
        content["channel"],
        content["fragment"],
        tuple(content["readers"]),
        guard_from_json(content["guard"], query),
        None if fields is None else tuple(fields),
        content["is_offered"],
        content["keep"],
    )


def _fragment_to_json(fragment: Fragment) -> dict[str, Any]:
    return {
        "inputs": [_stream_to_json(stream) for stream in fragment.inputs],
        "output": None if fragment.output is None else _stream_to_json(fragment.output),
        "head": fragment.head,
        "guards": {name: guard_to_json(guard, fragment.query) for name, guard in fragment.guards.items()},
    }


def _fragment_from_json(content: Mapping[str, Any], query: Query) -> Fragment:
    return Fragment(
        query,
        tuple(_stream_from_json(stream, query) for stream in content["inputs"]),
        None if content["output"] is None else _stream_from_json(content["output"], query),
        content["head"],
        {name: guard_from_json(guard, query) for name, guard in content["guards"].items()},
    )


def _stream_to_json(stream: WireStream) -> dict[str, Any]:
    return {
        "name": stream.name,
        "parts": stream.parts,
        "started": stream.started,
        "at_origin": stream.at_origin,
        "reused": None if stream.reused is None else _reading_to_json(stream.reused, stream),
        "since": stream.since,
        "kept": [[column.source, column.name] for column in stream.kept],
        "alive_at": stream.alive_at,
    }


def _stream_from_json(content: Mapping[str, Any], query: Query) -> WireStream:
    parts, reused = tuple(content["parts"]), content["reused"]
    return WireStream(
        query,
        content["name"],
        parts,
        tuple(content["started"]),
        content["at_origin"],
        None if reused is None else _reading_from_json(reused, query, parts),
        content["since"],
        tuple(Column(source, name) for source, name in content["kept"]),
        content["alive_at"],
    )


def _reading_to_json(reading: Reading, stream: WireStream) -> dict[str, Any]:
    """Conditions are written by their position among those of the query on these streams."""
    conditions = _conditions_on(stream.query, stream.parts)
    return {"names": reading.names, "remaining": [conditions.index(condition) for condition in reading.remaining]}


def _reading_from_json(content: Mapping[str, Any], query: Query, parts: tuple[str, ...]) -> Reading:
    conditions = _conditions_on(query, parts)
    names = tuple((theirs, ours) for theirs, ours in content["names"])
    return Reading(names, tuple(conditions[position] for position in content["remaining"]))


def _conditions_on(query: Query, parts: tuple[str, ...]) -> tuple[Predicate, ...]:
    """The conditions that may be left to check on a stream that another deployment publishes."""
    return query.conditions_within(frozenset(parts)) if len(parts) > 1 else query.graph.selections_of(parts[0])
