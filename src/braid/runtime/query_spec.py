"""Everything a worker must know of a query, as one JSON text from which each worker builds the same objects."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import pyarrow as pa

from braid.engine.engine import Engine
from braid.language import parse
from braid.model.expressions.expression import columns_of
from braid.model.graph import AttributeClass
from braid.model.plan import Plan, Written
from braid.model.query import Query, Source
from braid.model.stream import Stream
from braid.planning.lowering.one_site import lower
from braid.runtime.declarations import streams_from_json, streams_to_json
from braid.runtime.fingerprint import expression_text, meaning
from braid.runtime.routing import Dimension, Router, routing_classes


@dataclass(frozen=True)
class QuerySpec:
    """A query with its streams, its first plan and its router.

    `event_time` is the name of the event-time column in results. `labels` are the keys by which the host knows the
    shards, which it spreads over `partitions`. The host announces the watermarks of the streams in `watermarked`;
    streams in `derived` are among them and come out of a stateful operator of the host.

    Shards run the query `narrow`: each source has its own segments, named by its alias, without the columns that the
    query does not read.
    """

    text: str
    streams: tuple[Stream, ...]
    plan: Written
    router: Router
    event_time: str
    labels: tuple[int, ...] = ()
    partitions: int = 1
    watermarked: frozenset[str] = frozenset()
    derived: frozenset[str] = frozenset()

    def to_json(self) -> str:
        return json.dumps(
            {
                "text": self.text,
                "streams": streams_to_json(self.streams),
                "plan": self.plan,
                "router": [[side.attribute_class, sorted(side.streams), side.share] for side in self.router.dimensions],
                "event_time": self.event_time,
                "labels": self.labels,
                "partitions": self.partitions,
                "watermarked": sorted(self.watermarked),
                "derived": sorted(self.derived),
            }
        )

    @staticmethod
    @lru_cache(maxsize=16)
    def from_json(text: str) -> QuerySpec:
        """The spec that `to_json` wrote; the same object for the same text, so that a worker builds its parts once."""
        content = json.loads(text)
        dimensions = [
            Dimension(attribute_class, frozenset(names), share) for attribute_class, names, share in content["router"]
        ]
        return QuerySpec(
            text=content["text"],
            streams=streams_from_json(content["streams"]),
            plan=content["plan"],
            router=Router(tuple(dimensions)),
            event_time=content["event_time"],
            labels=tuple(content["labels"]),
            partitions=content["partitions"],
            watermarked=frozenset(content["watermarked"]),
            derived=frozenset(content["derived"]),
        )

    @cached_property
    def query(self) -> Query:
        """The query over the streams as they were declared."""
        return parse(self.text, {stream.name: stream for stream in self.streams})

    @cached_property
    def narrow(self) -> Query:
        """The query over segments: sources are named by their alias and have only the columns that are read."""
        sources = [self._narrow(source) for source in self.query.sources]
        fixed_joins = [replace(join, source=self._narrow(join.source)) for join in self.query.fixed_joins]
        existences = [replace(existence, source=self._narrow(existence.source)) for existence in self.query.existences]
        return replace(self.query, sources=tuple(sources), fixed_joins=tuple(fixed_joins), existences=tuple(existences))

    def _narrow(self, source: Source) -> Source:
        declared = source.declared
        read = {declared.time, source.window.end_column, *self._columns_of(source.alias)}
        # Windows that count rows order rows of the same time by all their columns.
        fields = [field for field in declared.schema if source.window.counts_rows or field.name in read]
        return replace(source, declaration=replace(declared, name=source.alias, schema=pa.schema(fields)))

    def _columns_of(self, alias: str) -> Iterator[str]:
        for expression in self.query.expressions:
            yield from (column.name for column in columns_of(expression) if column.source == alias)

    def columns_read(self, stream: str) -> list[str]:
        """The columns of a stream that any source of the query reads."""
        read: set[str] = set()
        for source, narrow in zip(self.query.inputs, self.narrow.inputs, strict=True):
            if source.declared.name == stream:
                read.update(narrow.declared.schema.names)
        declared = next(declared for declared in self.streams if declared.name == stream)
        return [name for name in declared.schema.names if name in read]

    @cached_property
    def result_schema(self) -> pa.Schema:
        """The columns of the join's results; the event time is last."""
        return Engine(lower(Plan.of(self.narrow, self.plan)), event_time=self.event_time).schema

    def fingerprint(self) -> dict[str, Any]:
        """What must not change between runs on one checkpoint; see `braid.runtime.fingerprint`.

        Each shard compares it with its own store. The first label is the same for any number of shards, so a changed
        number is always noticed, at least by the first shard.
        """
        return {
            "text": self.text,
            "query": meaning(self.query),
            "streams": {stream.name: self._stream_read(stream) for stream in self.streams},
            "shards": {
                "grid": list(map(self._side, self.router.dimensions)),
                "labels": list(self.labels),
                "partitions": self.partitions,
            },
        }

    def _stream_read(self, stream: Stream) -> dict[str, Any]:
        read = map(stream.schema.field, self.columns_read(stream.name))
        columns = [[field.name, f"{field.type}{'' if field.nullable else ' not null'}"] for field in read]
        return {"columns": columns, "time": stream.time}

    def _side(self, side: Dimension) -> dict[str, Any]:
        """A dimension of the grid; its key is named by its columns, because another text may number keys otherwise."""
        key = None
        if side.attribute_class is not None:
            key = key_text(routing_classes(self.query)[side.attribute_class])
        return {"key": key, "streams": sorted(side.streams), "share": side.share}


def key_text(key_class: AttributeClass) -> list[str]:
    """A key as fingerprints have it: its type, and its columns in any order of the conditions."""
    members = sorted(f"{alias}: {expression_text(member)}" for alias, member in key_class.members)
    return [str(key_class.type), *members]
