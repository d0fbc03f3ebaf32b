"""Sorts rows by event time and column values, and numbers distinct values; for columns of every Arrow type."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from braid.engine.arrays.jit import Words
from braid.engine.keys.hashing import order_words
from braid.engine.keys.nested import canonical


def in_event_order(rows: pa.RecordBatch, times: Words) -> Words:
    """The order of rows by event time; rows of equal time by column values (nulls first, NaN last)."""
    order = np.argsort(times, kind="stable")
    if not (np.diff(times[order]) == 0).any():
        return order
    columns = {"": pa.array(times)}
    columns |= {str(position): sortable(column) for position, column in enumerate(rows.columns)}
    keys = [(name, "ascending", "at_start") for name in columns]
    ranked: Words = pc.sort_indices(pa.table(columns), keys).to_numpy().astype(np.int64)
    return ranked


def number_values(column: pa.Array, known: dict[object, int]) -> Words:
    """A number for each value, the same for equal values and for all nulls; `known` remembers the numbers given."""
    simple = _simple(column)
    if pa.types.is_nested(simple.type):
        simple = canonical(simple)
    if pa.types.is_decimal(simple.type):
        simple = simple.cast(pa.string())
    encoded = simple.dictionary_encode("encode")
    codes = [known.setdefault(value, len(known)) for value in encoded.dictionary.to_pylist()]
    numbered: Words = np.array(codes, np.int64)[encoded.indices.to_numpy(zero_copy_only=False)]
    return numbered


def sortable(column: pa.Array) -> pa.Array:
    """A column that Arrow can sort, in the order that this one is meant to have."""
    simple = _simple(column)
    if pa.types.is_nested(simple.type) or pa.types.is_interval(simple.type):
        return _ranks(simple)
    return simple


def _simple(column: pa.Array) -> pa.Array:
    """The same values, ordered alike, in a type that Arrow sorts and compares; nested types are left as they are."""
    kind = column.type
    if isinstance(column, pa.ExtensionArray):
        return _simple(column.storage)
    if pa.types.is_dictionary(kind):
        return _simple(column.dictionary_decode())
    if pa.types.is_floating(kind):
        return pc.if_else(column.is_valid(), pa.array(order_words(column)), pa.scalar(None, pa.int64()))
    if pa.types.is_temporal(kind) and not pa.types.is_interval(kind):
        return column.view(pa.int32() if kind.bit_width == 32 else pa.int64())
    if pa.types.is_null(kind):
        return pa.nulls(len(column), pa.int64())
    if pa.types.is_string(kind):
        return column.cast(pa.large_string())
    return column


def _ranks(column: pa.Array) -> pa.Array:
    """The rank of each value, for types that Arrow does not order; lists are ordered lexicographically."""
    values = [(0,) if value is None else _orderable(value) for value in column.to_pylist()]
    rank = {value: position for position, value in enumerate(sorted(set(values)))}
    return pa.array([rank[value] for value in values], pa.int64())


def _orderable(value: Any) -> tuple[Any, ...]:
    """A tuple that Python orders as meant: NaN after all other numbers, a null within a value after NaN."""
    if value is None:
        return (3,)
    if isinstance(value, dict):
        return (1, tuple(_orderable(field) for field in value.values()))
    if isinstance(value, list | tuple):
        return (1, tuple(_orderable(element) for element in value))
    return (2,) if value != value else (1, value)
