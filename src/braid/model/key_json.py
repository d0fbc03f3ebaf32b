"""Join keys as texts that JSON can hold. They are written as Arrow arrays, which keep their types."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa


def keys_to_json(keys: Sequence[Any]) -> str:
    batch = pa.record_batch({"keys": _array(keys)})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return base64.b64encode(sink.getvalue().to_pybytes()).decode()


def keys_from_json(text: str) -> list[Any]:
    with pa.ipc.open_stream(pa.py_buffer(base64.b64decode(text))) as reader:
        keys: list[Any] = reader.read_next_batch().column("keys").to_pylist()
        return keys


def _array(keys: Sequence[Any]) -> pa.Array:
    try:
        return pa.array(keys)
    except OverflowError:
        # Keys of decimals may be whole numbers of more than 64 bits.
        return pa.array([None if key is None else Decimal(key) for key in keys])
