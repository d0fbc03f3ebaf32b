"""Whether a condition follows from others."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import Any, NamedTuple

import pyarrow as pa

from braid.model.expressions.expression import Call, Expression, Literal
from braid.model.expressions.types import kind
from braid.model.predicate import MIRRORED

EXACT = {"integer", "decimal"}
"""Kinds of constants whose value is exactly the number that is written."""
CONVERTED = {pa.string(), pa.float32()}
"""Types of constants that may be converted to another type before they are compared with a column."""


def implied(condition: Expression, known: Iterable[Expression]) -> bool:
    """Whether a condition follows from one of the known conditions.

    It does if they are equal, with their sides in either order. It also does if both compare the same operand with a
    constant, and the known condition is at least as strict.

    >>> from braid.language import parse
    >>> def where(text): return [p.expression for p in parse(f"SELECT * FROM s [NOW] WHERE {text}").predicates]
    >>> implied(*where("s.x < 10"), where("s.x < 5")), implied(*where("s.x < 5"), where("s.x < 10"))
    (True, False)
    >>> implied(*where("s.x >= 3"), where("s.y = 1 AND 4 = s.x"))
    True
    >>> implied(*where("s.x < s.y"), where("s.y > s.x"))
    True
    """
    wanted = _comparison(condition)
    if wanted is None:
        spellings = {condition, _mirrored(condition)}
        return any(other in spellings for other in known)
    return any(condition == other or _follows(wanted, other) for other in known)


def _mirrored(condition: Expression) -> Expression:
    """The comparison with its sides exchanged; any other condition unchanged."""
    if not isinstance(condition, Call) or condition.function not in MIRRORED:
        return condition
    return Call(MIRRORED[condition.function], condition.arguments[::-1])


def _follows(wanted: _Comparison, condition: Expression) -> bool:
    known = _comparison(condition)
    if known is None or wanted.operand != known.operand or not _comparable(wanted.constant, known.constant):
        return False
    return _implies(known.operator, known.constant.value, wanted.operator, wanted.constant.value)


def _comparable(one: Literal, other: Literal) -> bool:
    """Whether two constants have the same order in Python as in comparisons with a column.

    An engine converts a constant whose type differs from that of the column, which is not known here. A text may become
    a number or a time. A float is not exactly the number that is written. For a column of doubles, large integers that
    differ may become equal.
    """
    if one == other:
        return True
    types = {one.type, other.type}
    if {kind(type_) for type_ in types} <= EXACT:
        return one.value == other.value or _as_double(one) != _as_double(other)
    return len(types) == 1 and types.isdisjoint(CONVERTED)


def _as_double(number: Literal) -> float:
    assert isinstance(number.value, int | Decimal)
    return float(number.value)


class _Comparison(NamedTuple):
    operand: Expression
    operator: str
    constant: Literal


def _comparison(expression: Expression) -> _Comparison | None:
    """A comparison of an operand with a constant, the constant on the right; None for any other expression."""
    if not isinstance(expression, Call) or len(expression.arguments) != 2:
        return None
    left, right = expression.arguments
    operator = expression.function
    if isinstance(left, Literal):
        left, right = right, left
        operator = MIRRORED.get(operator, operator)
    if not isinstance(right, Literal) or isinstance(left, Literal) or right.value is None:
        return None
    return _Comparison(left, operator, right)


def _implies(known: str, value: Any, wanted: str, limit: Any) -> bool:
    """Whether every x with `x known value` also satisfies `x wanted limit`; `known` and `wanted` are comparisons."""
    if known == "equal":
        return bool(
            {
                "equal": value == limit,
                "not_equal": value != limit,
                "less": value < limit,
                "less_equal": value <= limit,
                "greater": value > limit,
                "greater_equal": value >= limit,
            }.get(wanted, False)
        )
    if known in ("less", "less_equal"):
        strict = known == "less"
        return bool(
            (wanted == "less" and (value < limit or (strict and value == limit)))
            or (wanted == "less_equal" and value <= limit)
            or (wanted == "not_equal" and (value < limit or (strict and value == limit)))
        )
    if known in ("greater", "greater_equal"):
        strict = known == "greater"
        return bool(
            (wanted == "greater" and (value > limit or (strict and value == limit)))
            or (wanted == "greater_equal" and value >= limit)
            or (wanted == "not_equal" and (value > limit or (strict and value == limit)))
        )
    return False
