"""A query as its checkpoint describes it, for programs that have nothing but the checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from braid.errors import BraidError
from braid.language import parse
from braid.language.free_names import event_time_name
from braid.language.host_types import StoredTypes
from braid.model.plan import Plan, Written
from braid.model.stream import Stream
from braid.runtime.fingerprint import Fingerprint
from braid.runtime.query_spec import QuerySpec, key_text
from braid.runtime.routing import Dimension, Router
from braid.runtime.routing_classes import routing_classes
from braid.runtime.type_texts import NOT_NULL, type_from_text


def stored_spec(fingerprint: Fingerprint, plan: Written | None = None) -> QuerySpec:
    """The query with its columns and its grid of shards. How late rows may come is not stored, and counts as 0."""
    streams = tuple(_stream(name, content) for name, content in fingerprint["streams"].items())
    computed = {text: type_from_text(kind) for text, kind in fingerprint.get("computed", {}).items()}
    host = StoredTypes(computed) if computed else None
    query = parse(fingerprint["text"], {stream.name: stream for stream in streams}, host)
    shards = fingerprint["shards"]
    class_numbers = {
        tuple(key_text(attribute_class)): class_number
        for class_number, attribute_class in enumerate(routing_classes(query))
    }
    return QuerySpec(
        fingerprint["text"],
        streams,
        Plan.of(query, plan).written,
        Router(tuple(_dimension(content, class_numbers) for content in shards["grid"])),
        event_time_name(query),
        labels=tuple(shards["labels"]),
        partitions=shards["partitions"],
        computed=computed,
        views=tuple(fingerprint["query"].get("views", ())),
    )


def _stream(name: str, content: Mapping[str, Any]) -> Stream:
    fields = [
        pa.field(column, type_from_text(kind.removesuffix(NOT_NULL)), nullable=not kind.endswith(NOT_NULL))
        for column, kind in content["columns"]
    ]
    return Stream(name, pa.schema(fields), content["time"], 0)


def _dimension(content: Mapping[str, Any], class_numbers: Mapping[tuple[str, ...], int]) -> Dimension:
    class_number = None
    if content["key"] is not None:
        class_number = class_numbers.get(tuple(content["key"]))
        if class_number is None:
            raise BraidError(f"the checkpoint is damaged: its shards are by {content['key']}, no key of its query")
    return Dimension(class_number, frozenset(content["streams"]), content["share"])
