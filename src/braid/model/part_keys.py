"""Keys in the parts of a plan: from the values that users and JSON write to values of the key's type, and back."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from math import isnan, nan
from numbers import Integral, Real
from typing import Any

import pyarrow as pa

from braid.errors import PlanError
from braid.model.graph import AttributeClass

LONGEST_SHOWN = 60
"""A longer value is cut in texts."""


def read_key(written: Any, attribute_class: AttributeClass) -> Any:
    """A key of an attribute class. Dates, timestamps, decimals and bytes may be texts, because JSON has none of them.

    While the type of the class is unknown, a value stays as it is.
    """
    kind = attribute_class.type
    if written is None:
        raise PlanError("null is not a key: it joins nothing and belongs to no part; leave it out")
    if kind is None:
        return written
    convert = _reader(kind)
    if convert is None:
        raise PlanError(f"keys of type {kind} are divided by hash only: give hash classes, not {_shown(written)}")
    try:
        key = pa.scalar(convert(written), kind).as_py()
    except (TypeError, ValueError, OverflowError, InvalidOperation, pa.ArrowException):
        raise PlanError(f"{_shown(written)} is no key of '{attribute_class}', which is {kind}") from None
    # All NaN are one key, but only the same object equals itself.
    return nan if isinstance(key, float) and isnan(key) else key


def write_key(key: Any) -> Any:
    """A key as a value of JSON that `read_key` reads; numbers and texts as they are."""
    if isinstance(key, bytes):
        return key.hex()
    if isinstance(key, date):
        return key.isoformat()
    return str(key) if isinstance(key, Decimal) else key


def show_keys(keys: list[Any], most: int = 10) -> str:
    """Keys in order, the first ones only if they are many."""
    in_order = sorted(keys, key=lambda key: (not isinstance(key, Real), key if isinstance(key, Real) else str(key)))
    more = f" and {len(keys) - most:,} more" if len(keys) > most else ""
    return ", ".join(_shown(write_key(key)) for key in in_order[:most]) + more


def _reader(kind: pa.DataType) -> Callable[[Any], Any] | None:
    """Checks and converts what may stand for a key of a type; None if keys of this type cannot be written."""
    readers: list[tuple[Callable[[pa.DataType], bool], Callable[[Any], Any]]] = [
        (pa.types.is_boolean, _instance_of(bool)),
        (pa.types.is_integer, _whole),
        (pa.types.is_floating, _real),
        (pa.types.is_decimal, _decimal),
        (pa.types.is_string, _instance_of(str)),
        (pa.types.is_large_string, _instance_of(str)),
        (pa.types.is_string_view, _instance_of(str)),
        (pa.types.is_date, _date),
        (pa.types.is_timestamp, _timestamp),
        (pa.types.is_binary, _bytes),
        (pa.types.is_large_binary, _bytes),
    ]
    return next((reader for is_kind, reader in readers if is_kind(kind)), None)


def _instance_of(expected: type) -> Callable[[Any], Any]:
    def check(written: Any) -> Any:
        if not isinstance(written, expected):
            raise TypeError
        return written

    return check


def _whole(written: Any) -> int:
    if isinstance(written, bool) or not isinstance(written, Integral):
        raise TypeError
    return int(written)


def _real(written: Any) -> float:
    if isinstance(written, bool) or not isinstance(written, Real):
        raise TypeError
    return float(written)


def _decimal(written: Any) -> Decimal:
    if isinstance(written, bool) or not isinstance(written, int | str | Decimal):
        raise TypeError
    return Decimal(written)


def _date(written: Any) -> date:
    if isinstance(written, datetime) or not isinstance(written, date | str):
        raise TypeError
    return date.fromisoformat(written) if isinstance(written, str) else written


def _timestamp(written: Any) -> datetime:
    if not isinstance(written, datetime | str):
        raise TypeError
    return datetime.fromisoformat(written) if isinstance(written, str) else written


def _bytes(written: Any) -> bytes:
    if not isinstance(written, bytes | str):
        raise TypeError
    return bytes.fromhex(written) if isinstance(written, str) else written


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}.."
