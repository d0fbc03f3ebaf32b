"""Everything a worker must know of a query, as one JSON text from which each worker builds the same objects."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any

import pyarrow as pa

from braid.engine.engine import Engine
from braid.language import parse
from braid.language.host_types import StoredTypes
from braid.model.expressions.expression import Column, HostExpression, columns_of
from braid.model.expressions.typing import type_of
from braid.model.graph import AttributeClass
from braid.model.plan import Plan, Written
from braid.model.query import Query, Source
from braid.model.stream import Stream
from braid.planning.lowering.one_site import lower
from braid.runtime.declarations import schema_from_text, schema_text, streams_from_json, streams_to_json
from braid.runtime.fingerprint import expression_text, meaning
from braid.runtime.routing import Dimension, Router
from braid.runtime.routing_classes import routing_classes


@dataclass(frozen=True)
class QuerySpec:
    """A query with its streams, its first plan and its router.

    `event_time` is the name of the event-time column in results. `labels` are the keys by which the host knows the
    shards, which it spreads over `partitions`. The host announces the watermarks of the streams in `watermarked`;
    streams in `derived` are among them and come out of a stateful operator of the host. `computed` are the types of
    all expressions that the host computes, by their text. `views` say how the host makes streams of others; shards only
    compare them with those of their checkpoint.

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
    computed: Mapping[str, pa.DataType] = field(default_factory=dict)
    views: tuple[str, ...] = ()

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
                "computed": schema_text(pa.schema(self.computed)),
                "views": self.views,
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
            computed={column.name: column.type for column in schema_from_text(content["computed"])},
            views=tuple(content["views"]),
        )

    @cached_property
    def query(self) -> Query:
        """The query over the streams as they were declared."""
        # What a host computes may be there without a type: sessions.
        return parse(self.text, {stream.name: stream for stream in self.streams}, StoredTypes(self.computed))

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
        columns = [column for column in declared.schema if source.window.counts_rows or column.name in read]
        return replace(source, declaration=replace(declared, name=source.alias, schema=pa.schema(columns)))

    def _columns_of(self, alias: str) -> Iterator[str]:
        for expression in self.query.expressions:
            yield from (column.name for column in columns_of(expression) if column.source == alias)

    def columns_read(self, stream: str) -> list[str]:
        """The columns of a stream that any source of the query reads, declared ones before computed ones."""
        read: dict[str, None] = {}
        for source, narrow in zip(self.query.inputs, self.narrow.inputs, strict=True):
            if source.declared.name == stream:
                read.update(dict.fromkeys(narrow.declared.schema.names))
        declared = next(declared for declared in self.streams if declared.name == stream)
        return [*(name for name in declared.schema.names if name in read), *self.computed_columns(stream)]

    def computed_columns(self, stream: str) -> dict[str, HostExpression]:
        """The columns that the host computes from the others before it packs the rows of a stream, by name."""
        sources = [source for source in self.query.inputs if source.declared.name == stream]
        outputs = [output for source in sources for output in source.computed]
        return {output.name: output.expression for output in outputs if isinstance(output.expression, HostExpression)}

    @cached_property
    def result_schema(self) -> pa.Schema:
        """The columns of the join's results; the event time is last."""
        return Engine(lower(Plan.of(self.narrow, self.plan)), event_time=self.event_time).schema

    @cached_property
    def projected_schema(self) -> pa.Schema:
        """The columns of the join's results, with those that the host computes from them; the event time is last."""
        projection = self.query.projection
        if projection is None:
            return self.result_schema
        types = {Column(None, column.name): column.type for column in self.result_schema}
        columns = [
            pa.field(output.name, type_of(projection.over_inputs(output.expression), types.__getitem__))
            for output in projection.outputs
        ]
        return pa.schema([*columns, self.result_schema.field(len(self.result_schema) - 1)])

    @cached_property
    def fingerprint(self) -> dict[str, Any]:
        """What must not change between runs on one checkpoint; see `braid.runtime.fingerprint`.

        Each shard compares it with its own store. The first label is the same for any number of shards, so a changed
        number is always noticed, at least by the first shard.
        """
        fingerprint = {
            "text": self.text,
            "query": meaning(self.query) | ({"views": list(self.views)} if self.views else {}),
            "streams": {stream.name: self._stream_read(stream) for stream in self.streams},
            "shards": {
                "grid": list(map(self._side, self.router.dimensions)),
                "labels": list(self.labels),
                "partitions": self.partitions,
            },
        }
        if self.computed:
            fingerprint["computed"] = {text: str(type_) for text, type_ in sorted(self.computed.items())}
        return fingerprint

    def _stream_read(self, stream: Stream) -> dict[str, Any]:
        computed = self.computed_columns(stream.name)
        operands = {column.name for expression in computed.values() for column in columns_of(expression)}
        names = {*self.columns_read(stream.name), *operands}
        read = [column for column in stream.schema if column.name in names]
        columns = [[column.name, f"{column.type}{'' if column.nullable else ' not null'}"] for column in read]
        read_of_stream = {"columns": columns, "time": stream.time}
        return read_of_stream | ({"computed": sorted(computed)} if computed else {})

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
