"""Everything a worker must know of a query, as one JSON text from which each worker builds the same objects."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property, lru_cache
from math import prod
from typing import Any

import pyarrow as pa

from braid.engine.engine import Engine
from braid.language import parse
from braid.model.expressions.expression import columns_of
from braid.model.plan import Plan, Written
from braid.model.query import Query, Source
from braid.model.stream import Stream
from braid.planning.lowering.one_site import lower
from braid.runtime.declarations import streams_from_json, streams_to_json
from braid.runtime.routing import Dimension, Router


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
        dimensions = [Dimension(number, frozenset(names), share) for number, names, share in content["router"]]
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
        exclusions = [replace(exclusion, source=self._narrow(exclusion.source)) for exclusion in self.query.exclusions]
        return replace(self.query, sources=tuple(sources), exclusions=tuple(exclusions))

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

    def fingerprint(self) -> dict[str, object]:
        """What must not change between runs on one checkpoint.

        Each shard compares it with its own store. The first label is the same for any number of shards, so a changed
        number is always noticed, at least by the first shard.
        """
        return {
            "query": self.text,
            "streams": {stream.name: [str(stream.schema), stream.time] for stream in self.streams},
            "shards": {
                "grid": [asdict(side) | {"streams": sorted(side.streams)} for side in self.router.dimensions],
                "labels": self.labels,
                "partitions": self.partitions,
            },
        }


def fingerprint_change(stored: Mapping[str, Any], wanted: Mapping[str, Any]) -> str | None:
    """The first difference between two fingerprints, as an error text shows it; None if they are the same."""
    for part in wanted:
        if stored.get(part) != wanted[part]:
            text_of = FINGERPRINT_TEXTS[part]
            return f"it was for\n{text_of(stored[part])}\nand this is\n{text_of(wanted[part])}"
    return None


def _streams_text(streams: Mapping[str, tuple[str, str]]) -> str:
    """A line for each stream."""
    lines = (f"{name} ({', '.join(schema.splitlines())}), by {time}" for name, (schema, time) in streams.items())
    return "\n".join(lines)


def _shards_text(shards: Mapping[str, Any]) -> str:
    sides = [f"{side['share']} by {' and '.join(side['streams'])}" for side in shards["grid"]]
    count = prod(side["share"] for side in shards["grid"])
    grid = f"{count} shards: {', '.join(sides)}" if count > 1 else "1 shard"
    return f"{grid} (spark.sql.shuffle.partitions is {shards['partitions']})"


FINGERPRINT_TEXTS: Mapping[str, Callable[[Any], str]] = {
    "query": str,
    "streams": _streams_text,
    "shards": _shards_text,
}
"""How an error text shows each part of a fingerprint."""
