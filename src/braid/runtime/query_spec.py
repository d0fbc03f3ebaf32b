"""All that a worker needs to know of a query: one JSON text, from which each worker builds the same parts."""

from __future__ import annotations

import base64
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
from braid.runtime.routing import Dimension, Router


@dataclass(frozen=True)
class QuerySpec:
    """A query with its streams, its first plan and its router.

    Rows travel without the columns that the query does not read, and each source of the query has its own segments,
    named by its alias (`narrow`). `labels` are the keys by which the host knows the shards, which it spreads over
    `partitions`. The host tells the watermarks of streams in `watermarked`; those in `derived` come out of a stateful
    operator of the host.
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
                "streams": [
                    [stream.name, _schema_text(stream.schema), stream.time, stream.lateness] for stream in self.streams
                ],
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
        """The job; the same object for the same text, so that a worker builds its parts once."""
        given = json.loads(text)
        return QuerySpec(
            given["text"],
            tuple(Stream(name, _schema(schema), time, late) for name, schema, time, late in given["streams"]),
            given["plan"],
            Router(tuple(Dimension(number, frozenset(names), share) for number, names, share in given["router"])),
            given["event_time"],
            tuple(given["labels"]),
            given["partitions"],
            frozenset(given["watermarked"]),
            frozenset(given["derived"]),
        )

    @cached_property
    def query(self) -> Query:
        """The query over the streams as they are."""
        return parse(self.text, {stream.name: stream for stream in self.streams})

    @cached_property
    def narrow(self) -> Query:
        """The query over segments: sources named by alias, with the columns that are read and no others."""
        exclusions = (replace(part, source=self._narrow(part.source)) for part in self.query.exclusions)
        return replace(
            self.query,
            sources=tuple(self._narrow(source) for source in self.query.sources),
            exclusions=tuple(exclusions),
        )

    def _narrow(self, source: Source) -> Source:
        declared = source.declared
        read = {declared.time, *self._columns_of(source.alias)}
        # Rows of the same time are counted in the order of all their columns.
        fields = [field for field in declared.schema if source.window.counts_rows or field.name in read]
        return replace(source, declaration=replace(declared, name=source.alias, schema=pa.schema(fields)))

    def _columns_of(self, alias: str) -> Iterator[str]:
        for expression in self.query.expressions:
            yield from (column.name for column in columns_of(expression) if column.source == alias)

    def columns_read(self, stream: str) -> list[str]:
        """The columns of a stream that any source of the query reads."""
        read = {
            name
            for source, narrow in zip(self.query.inputs, self.narrow.inputs, strict=True)
            if source.declared.name == stream
            for name in narrow.declared.schema.names
        }
        declared = next(declared for declared in self.streams if declared.name == stream)
        return [name for name in declared.schema.names if name in read]

    @cached_property
    def result_schema(self) -> pa.Schema:
        """The columns of the join's results, its event time last."""
        return Engine(lower(Plan.of(self.narrow, self.plan)), event_time=self.event_time).schema

    def fingerprint(self) -> dict[str, object]:
        """What must not change between runs on one checkpoint.

        The first label is the same for any number of shards, so that a changed number is always noticed.
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


def difference(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> str | None:
    """In what two fingerprints differ, for people; None if they are the same."""
    changed = [what for what in wanted if found.get(what) != wanted[what]]
    if not changed:
        return None
    was, now = (FINGERPRINTS[changed[0]](fingerprint[changed[0]]) for fingerprint in (found, wanted))
    return f"it was for\n{was}\nand this is\n{now}"


def _streams_text(streams: Mapping[str, tuple[str, str]]) -> str:
    """A line for each stream."""
    lines = (f"{name} ({', '.join(schema.splitlines())}), by {time}" for name, (schema, time) in streams.items())
    return "\n".join(lines)


def _shards_text(shards: Mapping[str, Any]) -> str:
    sides = [f"{side['share']} by {' and '.join(side['streams'])}" for side in shards["grid"]]
    many = prod(side["share"] for side in shards["grid"])
    spread = f"{many} shards: {', '.join(sides)}" if many > 1 else "1 shard"
    return f"{spread} (spark.sql.shuffle.partitions is {shards['partitions']})"


FINGERPRINTS: Mapping[str, Callable[[Any], str]] = {
    "query": str,
    "streams": _streams_text,
    "shards": _shards_text,
}
"""How people read the parts of a fingerprint."""


def _schema_text(schema: pa.Schema) -> str:
    return base64.b64encode(schema.serialize().to_pybytes()).decode()


def _schema(text: str) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text)))
