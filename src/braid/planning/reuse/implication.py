"""When one condition follows from another."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from braid.model.expression import Call, Expression, Literal
from braid.model.types import kind

MIRRORED = {"less": "greater", "less_equal": "greater_equal", "greater": "less", "greater_equal": "less_equal"}


def implied(condition: Expression, given: Iterable[Expression]) -> bool:
    """Whether a condition holds wherever all the given ones do, as far as comparisons with constants tell.

    >>> from braid.language import parse
    >>> def where(text): return [p.expression for p in parse(f"SELECT * FROM s [NOW] WHERE {text}").predicates]
    >>> implied(*where("s.x < 10"), where("s.x < 5")), implied(*where("s.x < 5"), where("s.x < 10"))
    (True, False)
    >>> implied(*where("s.x >= 3"), where("s.y = 1 AND 4 = s.x"))
    True
    """
    known = list(given)
    return any(_follows(condition, other) for other in known)


def _follows(condition: Expression, given: Expression) -> bool:
    if condition == given:
        return True
    wanted, have = _comparison(condition), _comparison(given)
    if wanted is None or have is None or wanted[0] != have[0] or not _have_order(wanted[2], have[2]):
        return False
    return _bounds(wanted[1], wanted[2].value, have[1], have[2].value)


def _have_order(one: Literal, other: Literal) -> bool:
    """Whether two constants are in the order that the column has which they are compared with.

    One is converted where its type is not that of the column: a text may stand for a number or a time, of which only
    the column knows, and a float is not exactly the decimal that is written in the same way.
    """
    kinds = {kind(one.type), kind(other.type)}
    return (len(kinds) == 1 and "string" not in kinds) or kinds == {"integer", "decimal"} or one == other


def _comparison(expression: Expression) -> tuple[Expression, str, Literal] | None:
    """A comparison with a constant as (what, operator, constant)."""
    if not isinstance(expression, Call) or len(expression.arguments) != 2:
        return None
    left, right = expression.arguments
    operator = expression.function
    if isinstance(left, Literal):
        left, right = right, left
        operator = MIRRORED.get(operator, operator)
    if not isinstance(right, Literal) or isinstance(left, Literal) or right.value is None:
        return None
    return left, operator, right


def _bounds(wanted: str, limit: Any, have: str, value: Any) -> bool:
    """Whether `x have value` makes `x wanted limit` true."""
    if have == "equal":
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
    if have in ("less", "less_equal"):
        strict = have == "less"
        return bool(
            (wanted == "less" and (value < limit or (strict and value == limit)))
            or (wanted == "less_equal" and value <= limit)
            or (wanted == "not_equal" and (value < limit or (strict and value == limit)))
        )
    if have in ("greater", "greater_equal"):
        strict = have == "greater"
        return bool(
            (wanted == "greater" and (value > limit or (strict and value == limit)))
            or (wanted == "greater_equal" and value >= limit)
            or (wanted == "not_equal" and (value > limit or (strict and value == limit)))
        )
    return False
