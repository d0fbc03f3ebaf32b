"""Declarations of streams as JSON, for workers and for other sites."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from braid.model.stream import Branch, Stream


def streams_to_json(streams: Iterable[Stream]) -> list[Any]:
    return [_to_json(stream) for stream in streams]


def _to_json(stream: Stream) -> list[Any]:
    plain = [stream.name, schema_text(stream.schema), stream.time, stream.lateness]
    return [*plain, [[branch.name, branch.lateness] for branch in stream.branches]] if stream.branches else plain


def streams_from_json(content: Sequence[Any]) -> tuple[Stream, ...]:
    return tuple(_from_json(*stream) for stream in content)


def _from_json(name: str, schema: str, time: str, lateness: int, branches: Sequence[Any] = ()) -> Stream:
    return Stream(name, schema_from_text(schema), time, lateness, tuple(Branch(*branch) for branch in branches))


def schema_text(schema: pa.Schema) -> str:
    return base64.b64encode(schema.serialize().to_pybytes()).decode()


def schema_from_text(text: str) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text)))
