"""Declarations of streams as JSON, for workers and for other sites."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from braid.model.stream import Stream


def streams_to_json(streams: Iterable[Stream]) -> list[Any]:
    return [[stream.name, schema_text(stream.schema), stream.time, stream.lateness] for stream in streams]


def streams_from_json(content: Sequence[Any]) -> tuple[Stream, ...]:
    return tuple(Stream(name, schema_from_text(schema), time, lateness) for name, schema, time, lateness in content)


def schema_text(schema: pa.Schema) -> str:
    return base64.b64encode(schema.serialize().to_pybytes()).decode()


def schema_from_text(text: str) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text)))
