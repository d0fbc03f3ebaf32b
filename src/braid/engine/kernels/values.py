"""The types and helpers that all kernels share. Values are Arrow arrays or, for constants, Arrow scalars."""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal, localcontext
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from braid.model.expressions.expression import Call

Datum = Any
"""A `pa.Array` or a `pa.Scalar`; Arrow's functions take both."""

Kernel = Callable[..., Datum]
"""Computes a value from values, for a whole batch at a time."""

Builder = Callable[[Call, tuple[pa.DataType, ...], pa.DataType], Kernel]
"""Makes the kernel of a call, given the types of its arguments and of its result."""


def constant(value: Any, type_: pa.DataType) -> pa.Scalar:
    return pa.scalar(value, type_)


def null(type_: pa.DataType) -> pa.Scalar:
    return pa.scalar(None, type_)


def one_row(scalar: pa.Scalar) -> pa.Array:
    """A constant as an array, for kernels that only take arrays."""
    return pa.repeat(scalar, 1) if scalar.is_valid else pa.nulls(1, scalar.type)


def null_where(condition: Datum, value: Datum) -> Datum:
    """`value`, but null where the condition holds."""
    return pc.if_else(pc.fill_null(condition, False), null(value.type), value)


def nulls_like(values: tuple[Datum, ...], type_: pa.DataType) -> Datum:
    """As many nulls as the arrays among `values` have rows; a null scalar if all are scalars."""
    length = next((len(value) for value in values if isinstance(value, pa.Array)), None)
    return null(type_) if length is None else pa.nulls(length, type_)


def row_by_row(function: Callable[..., Any], type_: pa.DataType) -> Kernel:
    """A kernel that calls a Python function for each row, for what Arrow cannot do; null if an argument is null."""

    def evaluate(*values: Datum) -> Datum:
        length = next(len(value) for value in values if isinstance(value, pa.Array))
        columns = [value.to_pylist() if isinstance(value, pa.Array) else [value.as_py()] * length for value in values]
        results = [None if None in row else function(*row) for row in zip(*columns, strict=True)]
        return pa.array(results, type_)

    return evaluate


def by_unique(function: Callable[[Any], Any], type_: pa.DataType) -> Kernel:
    """Like `row_by_row` for one argument, but calls the function once for each distinct value."""
    of_distinct = row_by_row(function, type_)

    def evaluate(value: pa.Array) -> Datum:
        encoded = value.dictionary_encode()
        return of_distinct(encoded.dictionary).take(encoded.indices)

    return evaluate


def fit_decimal(value: Decimal, type_: pa.DataType) -> Decimal | None:
    """A decimal rounded half up to the scale of a type; None if it has too many digits for the type."""
    if not value.is_finite() or (value and value.adjusted() > type_.precision):
        return None
    with localcontext(prec=400):
        rounded = value.quantize(Decimal(1).scaleb(-type_.scale), ROUND_HALF_UP)
        return rounded if abs(rounded) < Decimal(10) ** (type_.precision - type_.scale) else None


def wrapped(number: int, type_: pa.DataType) -> int:
    """An integer as a value of a type; one that is too large keeps its low bits, as in Java."""
    half = 1 << int(type_.bit_width - 1)
    return (number + half) % (2 * half) - half
