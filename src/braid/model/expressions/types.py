"""Arrow types in the query language: the kind of each type, and the type in which values of two types are compared.

The rules are Spark's (ANSI mode off) except where this file says otherwise. A timestamp with a zone is an instant; one
without a zone counts as UTC when it is compared with an instant.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import pyarrow as pa
from pyarrow import types

if TYPE_CHECKING:
    from braid.model.expressions.expression import Expression

MICROSECONDS = pa.timestamp("us")
INSTANT = pa.timestamp("us", "UTC")
DURATION = pa.duration("us")
WIDEST_DECIMAL = 38
"""The most digits of a decimal result."""

_WIDEST_256_BIT_DECIMAL = 76
"""The most digits of a decimal that two types have in common."""

LEAST_SCALE = 6
"""A decimal result that would be too wide keeps at least this many of its fractional digits."""

_INTEGER_DIGITS = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 20}
_WIDENED = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
}


class TypeMismatch(ValueError):  # noqa: N818
    """Types that cannot be combined; `expression` is the part of the query that causes it, if known."""

    def __init__(self, message: str, expression: Expression | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.expression = expression
        self.hint = hint


def plain(type_: pa.DataType) -> pa.DataType:
    """The type in which values of a type are computed: one per kind and width, microseconds for all times.

    >>> plain(pa.uint8()), plain(pa.dictionary(pa.int8(), pa.string()))
    (DataType(int16), DataType(string))
    >>> plain(pa.timestamp("ns", "Asia/Tokyo"))
    TimestampType(timestamp[us, tz=UTC])
    >>> plain(pa.uuid())
    DataType(binary)
    """
    if isinstance(type_, pa.BaseExtensionType):
        return plain(type_.storage_type)
    if types.is_dictionary(type_) or types.is_run_end_encoded(type_):
        return plain(type_.value_type)
    if type_ in _WIDENED:
        return _WIDENED[type_]
    if types.is_float16(type_):
        return pa.float32()
    if types.is_timestamp(type_):
        return MICROSECONDS if type_.tz is None else INSTANT
    if types.is_date(type_):
        return pa.date32()
    if types.is_duration(type_):
        return DURATION
    if types.is_time(type_):
        return pa.time64("ns")
    if type_ == pa.string_view():
        return pa.string()
    if type_ == pa.binary_view() or types.is_fixed_size_binary(type_):
        return pa.binary()
    if types.is_decimal(type_) and type_.bit_width < 128:
        return pa.decimal128(type_.precision, type_.scale)
    return type_


def kind(type_: pa.DataType) -> str:
    """The kind of values of a type, such as "integer"; "nested" if no function computes with them."""
    type_ = plain(type_)
    for name, is_kind in _KINDS.items():
        if is_kind(type_):
            return name
    return "nested"


_KINDS = {
    "null": types.is_null,
    "boolean": types.is_boolean,
    "integer": types.is_integer,
    "decimal": types.is_decimal,
    "float": types.is_floating,
    "string": lambda type_: types.is_string(type_) or types.is_large_string(type_),
    "binary": lambda type_: types.is_binary(type_) or types.is_large_binary(type_),
    "date": types.is_date,
    "timestamp": types.is_timestamp,
    "duration": types.is_duration,
    "time": types.is_time,
}

NUMBERS = frozenset({"integer", "decimal", "float"})


def is_number(type_: pa.DataType) -> bool:
    return kind(type_) in NUMBERS


def comparison_type(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """The type in which values of two types are compared; `TypeMismatch` if they cannot be compared.

    - two integers: the wider type;
    - integers and decimals: a decimal that holds both;
    - a float and another number: double (Spark compares an integer and a float as floats, which is less exact);
    - a date and a timestamp: the date counts as its midnight;
    - timestamps: microseconds; finer ones are rounded down.
    """
    kinds = {kind(left), kind(right)}
    first, second = plain(left), plain(right)
    if "nested" in kinds:
        nested = left if kind(left) == "nested" else right
        raise TypeMismatch(f"values of type {nested} cannot be compared")
    if "null" in kinds:
        return second if kind(left) == "null" else first
    if first == second:
        return first
    if kinds <= NUMBERS:
        return _common_number(first, second, kinds)
    if kinds == {"string"}:
        return pa.large_string()
    if kinds == {"binary"}:
        return pa.large_binary()
    if kinds == {"timestamp"}:
        return INSTANT
    if kinds == {"date", "timestamp"}:
        return first if kind(left) == "timestamp" else second
    raise TypeMismatch(f"{left} and {right} cannot be compared")


def equality_type(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """As `comparison_type`, but lists and structs are compared too: they have no order, but equality.

    As in Spark, null elements of lists and null fields of structs equal each other, and maps have no equality.
    """
    first, second = plain(left), plain(right)
    if first == second and kind(first) == "nested" and has_equality(first):
        return first
    return comparison_type(left, right)


def has_equality(type_: pa.DataType) -> bool:
    """Whether values of a type can be compared for equality: values with an order, and lists and structs of them.

    >>> has_equality(pa.list_(pa.string())), has_equality(pa.map_(pa.string(), pa.int8()))
    (True, False)
    """
    type_ = plain(type_)
    if types.is_struct(type_):
        return all(has_equality(field.type) for field in type_)
    return has_equality(type_.value_type) if is_list(type_) else kind(type_) != "nested"


def is_list(type_: pa.DataType) -> bool:
    """Whether a type is a list, in any of Arrow's layouts."""
    return bool(
        types.is_list(type_)
        or types.is_large_list(type_)
        or types.is_fixed_size_list(type_)
        or types.is_list_view(type_)
        or types.is_large_list_view(type_)
    )


def has_union(type_: pa.DataType) -> bool:
    """Whether a type is a union or contains one."""
    if isinstance(type_, pa.BaseExtensionType):
        return has_union(type_.storage_type)
    if types.is_dictionary(type_) or types.is_run_end_encoded(type_):
        return has_union(type_.value_type)
    fields = (type_.field(position) for position in range(type_.num_fields))
    return types.is_union(type_) or any(has_union(field.type) for field in fields)


def common_type(members: Iterable[pa.DataType]) -> pa.DataType:
    """The type of a value that comes from one of several expressions, as in CASE or COALESCE."""
    common: pa.DataType = pa.null()
    for member in members:
        if types.is_null(member) or common == member:
            continue
        if types.is_null(common):
            common = member
        elif "nested" in (kind(common), kind(member)):
            raise _nothing_in_common(common, member)
        else:
            try:
                common = comparison_type(common, member)
            except TypeMismatch:
                raise _nothing_in_common(common, member) from None
    return common if kind(common) == "nested" else plain(common)


def _nothing_in_common(left: pa.DataType, right: pa.DataType) -> TypeMismatch:
    problem = f"{left} and {right} have no type in common"
    return TypeMismatch(problem, hint="cast all of them to one type, for example CAST(x AS STRING)")


def as_decimal(type_: pa.DataType) -> pa.DataType:
    """The decimal type that holds every value of an integer or decimal type."""
    type_ = plain(type_)
    return type_ if types.is_decimal(type_) else pa.decimal128(_INTEGER_DIGITS[type_], 0)


def bounded_decimal(precision: int, scale: int) -> pa.DataType:
    """The decimal type of an exact result; as in Spark, one of more than 38 digits loses fractional digits."""
    if precision > WIDEST_DECIMAL:
        scale = max(WIDEST_DECIMAL - (precision - scale), min(scale, LEAST_SCALE))
        precision = WIDEST_DECIMAL
    return pa.decimal128(max(precision, 1), scale)


def _common_number(left: pa.DataType, right: pa.DataType, kinds: set[str]) -> pa.DataType:
    if "float" in kinds:
        return pa.float64()
    if kinds == {"integer"}:
        return left if left.bit_width > right.bit_width else right
    return _common_decimal(as_decimal(left), as_decimal(right))


def _common_decimal(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """The decimal type that holds the values of both; double if none is wide enough."""
    scale = max(left.scale, right.scale)
    precision = max(left.precision - left.scale, right.precision - right.scale) + scale
    if precision <= WIDEST_DECIMAL and max(left.bit_width, right.bit_width) == 128:
        return pa.decimal128(precision, scale)
    return pa.decimal256(precision, scale) if precision <= _WIDEST_256_BIT_DECIMAL else pa.float64()
