"""Bands: conditions that keep a number or time of one stream near one of another, `low <= left - right <= high`.

They let an index find the few rows that may match, where a comparison must look at all. An index may find too many,
since the conditions themselves are checked afterwards, but must miss none: so a band is what the conditions imply in
the arithmetic of the engine, in which integers and times wrap and floats and decimals are rounded.

- `x - y` between two constants is a band as it is: in whole numbers it holds modulo 2 to the width of the subtraction.
  Absolute values hold modulo half of that, because the smallest integer is its own absolute value.
- `x + p <= y + q` is a bound on `x - y` where a sum that wraps only makes it stricter: with `p <= 0 <= q`.
- `y + p <= x <= y + q`, with sums of one type, wraps with its sums: where only one of them does, nothing is between.

Other pairs, such as `x + 5 <= y + 7` with anything, may hold for rows far apart, and are no band.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

import pyarrow as pa

from braid.model.expressions.expression import Call, Expression, Literal, sources_of
from braid.model.expressions.types import DURATION, INSTANT, NUMBERS, kind, plain
from braid.model.predicate import MIRRORED, Predicate

TypeOf = Callable[[Expression], pa.DataType]

DIFFERENCE, STRICT = "difference", "strict"
"""The forms of bounds whose two sides may be of any types; of the others, the form is the stream that is shifted."""

SINGLE_ROUNDING = Fraction(1, 2**22)
"""More than the relative error of any difference or constant, even in single precision."""

LARGEST = Fraction(2**1000)


@dataclass(frozen=True, slots=True)
class Band:
    """`low <= left - right <= high`, for expressions of one stream each.

    `type` is what their values are taken in. Whole numbers and times keep the distance modulo 2 to (`bits` - 1);
    for floats and decimals, whose `bits` are None, the limits are wide enough for rounded differences.
    """

    left: Expression
    right: Expression
    low: Fraction
    high: Fraction
    type: pa.DataType
    bits: int | None

    @property
    def sources(self) -> frozenset[str]:
        return sources_of(self.left) | sources_of(self.right)

    def key(self, source: str) -> Expression:
        """What is compared of a stream of the band."""
        return self.left if sources_of(self.left) == {source} else self.right

    def joins(self, some: Collection[str], others: Collection[str]) -> bool:
        """Whether one of its streams is among some, and the other among others."""
        return not (self.sources.isdisjoint(some) or self.sources.isdisjoint(others) or self.sources <= set(some))


class _Shape(NamedTuple):
    """What two bounds must have in common to make a band."""

    left: Expression
    right: Expression
    form: str
    type: pa.DataType | None = None


class _Bound(NamedTuple):
    """`left - right <= limit`, computed in the types of `sums`; if not `upper`, `>= limit`.

    `refuses_nan` says whether a difference that is NaN, the greatest number, breaks it.
    """

    upper: bool
    limit: Fraction
    sums: frozenset[pa.DataType]
    refuses_nan: bool


def bands_of(predicates: Iterable[Predicate], type_of: TypeOf) -> tuple[Band, ...]:
    """At most one band for each pair of streams: the first that the conditions make."""
    bounds: dict[_Shape, list[_Bound]] = {}
    for predicate in predicates:
        if len(predicate.sources) == 2:
            for shape, bound in _bounds(predicate.expression, type_of):
                bounds.setdefault(shape, []).append(bound)
    found: dict[frozenset[str], Band] = {}
    for shape, made in bounds.items():
        band = _band(shape, made, type_of)
        if band is not None:
            found.setdefault(band.sources, band)
    return tuple(found.values())


def _bounds(expression: Expression, type_of: TypeOf) -> Iterator[tuple[_Shape, _Bound]]:
    if not isinstance(expression, Call) or expression.function not in MIRRORED.keys() - {"not_equal", "same"}:
        return
    sides = expression.arguments
    if not expression.function.startswith("greater"):
        yield from _ordered(sides[0], sides[1], type_of)
    if not expression.function.startswith("less"):
        yield from _ordered(sides[1], sides[0], type_of)


def _ordered(lesser: Expression, greater: Expression, type_of: TypeOf) -> Iterator[tuple[_Shape, _Bound]]:
    """What `lesser <= greater` bounds."""
    least, most = _constant(lesser), _constant(greater)
    if most is not None:
        if isinstance(lesser, Call) and lesser.function == "abs":
            yield from _difference(lesser.arguments[0], False, -most, type_of)
            lesser = lesser.arguments[0]
        yield from _difference(lesser, True, most, type_of)
    elif least is not None:
        yield from _difference(greater, False, least, type_of)
    else:
        yield from _shifted(lesser, greater, type_of)


def _difference(
    expression: Expression, upper: bool, limit: Fraction, type_of: TypeOf
) -> Iterator[tuple[_Shape, _Bound]]:
    if isinstance(expression, Call) and expression.function == "subtract" and _are_of_two(*expression.arguments):
        bound = _Bound(upper, limit, frozenset({plain(type_of(expression))}), upper)
        yield _oriented(_Shape(expression.arguments[0], expression.arguments[1], DIFFERENCE), bound)


def _shifted(lesser: Expression, greater: Expression, type_of: TypeOf) -> Iterator[tuple[_Shape, _Bound]]:
    left, added_left = _without_constant(lesser)
    right, added_right = _without_constant(greater)
    if not _are_of_two(left, right):
        return
    sums = {plain(type_of(whole)) for whole, part in ((lesser, left), (greater, right)) if whole is not part}
    bound = _Bound(True, added_right - added_left, frozenset(sums), True)
    if added_left <= 0 <= added_right:
        yield _oriented(_Shape(left, right, STRICT), bound)
    shifted = [part for whole, part in ((lesser, left), (greater, right)) if whole is not part]
    if len(shifted) == 1:
        (alias,) = sources_of(shifted[0])
        yield _oriented(_Shape(left, right, f"shifted {alias}", *sums), bound)


def _oriented(shape: _Shape, bound: _Bound) -> tuple[_Shape, _Bound]:
    """The same bound of a pair, whichever way round it is written."""
    if str(shape.left) <= str(shape.right):
        return shape, bound
    return shape._replace(left=shape.right, right=shape.left), bound._replace(upper=not bound.upper, limit=-bound.limit)


def _are_of_two(left: Expression, right: Expression) -> bool:
    owners = sources_of(left), sources_of(right)
    return len(owners[0]) == len(owners[1]) == 1 and owners[0] != owners[1]


def _without_constant(expression: Expression) -> tuple[Expression, Fraction]:
    """An expression as another and a constant that is added to it."""
    if isinstance(expression, Call) and expression.function in ("add", "subtract"):
        first, second = expression.arguments
        added = _constant(second)
        if added is not None:
            return first, added if expression.function == "add" else -added
        added = _constant(first) if expression.function == "add" else None
        if added is not None:
            return second, added
    return expression, Fraction(0)


def _constant(expression: Expression) -> Fraction | None:
    """A number, or a length of time in microseconds."""
    if isinstance(expression, Call) and expression.function == "negate":
        inner = _constant(expression.arguments[0])
        return None if inner is None else -inner
    value = expression.value if isinstance(expression, Literal) else None
    if isinstance(value, timedelta):
        return Fraction(value // timedelta(microseconds=1))
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal) or not math.isfinite(value):
        return None
    return Fraction(value)


def _band(shape: _Shape, bounds: list[_Bound], type_of: TypeOf) -> Band | None:
    lows = [bound for bound in bounds if not bound.upper]
    highs = [bound for bound in bounds if bound.upper]
    if not lows or not highs:
        return None
    low, high = max(bound.limit for bound in lows), min(bound.limit for bound in highs)
    if low > high:
        return None
    sums = frozenset[pa.DataType]().union(*(bound.sums for bound in bounds))
    kinds = {kind(type_of(shape.left)), kind(type_of(shape.right))}
    if kinds <= {"timestamp", "date"} and (shape.form == DIFFERENCE or "date" not in kinds):
        # Far dates moved by days are another day altogether, which only their differences know nothing of.
        return _whole(shape, low, high, INSTANT, 64)
    if kinds == {"duration"}:
        return _whole(shape, low, high, DURATION, 64)
    if kinds == {"integer"} and not any(kind(type_) == "float" for type_ in sums):
        widths = [type_.bit_width for type_ in sums if kind(type_) == "integer"]
        return _whole(shape, low, high, pa.int64(), min(widths, default=64))
    if kinds <= NUMBERS and any(bound.refuses_nan for bound in bounds):
        return _rounded(shape, low, high, sums)
    return None


def _whole(shape: _Shape, low: Fraction, high: Fraction, type_: pa.DataType, bits: int) -> Band | None:
    """A band of whole numbers, a little wider where a large limit is rounded to a float before it is compared."""
    least, most = math.floor(low), math.ceil(high)
    least, most = least - (abs(least) >> 50), most + (abs(most) >> 50)
    if max(-least, most) >= 1 << (bits - 1) or most - least >= 1 << (bits - 3):
        return None
    return Band(shape.left, shape.right, Fraction(least), Fraction(most), type_, bits)


def _rounded(shape: _Shape, low: Fraction, high: Fraction, sums: frozenset[pa.DataType]) -> Band | None:
    """A band of floats or decimals, as wide as rounding may make it."""
    if shape.form != DIFFERENCE and pa.float32() in sums:
        return None  # a sum may be as far off as its terms are large
    if shape.form not in (DIFFERENCE, STRICT) and any(kind(type_) == "integer" for type_ in sums):
        return None  # wraps, where floats do not
    largest = max(abs(low), abs(high))
    if largest > LARGEST:
        return None
    last_digits = [Fraction(10) ** -type_.scale for type_ in sums if pa.types.is_decimal(type_)]
    margin = largest * SINGLE_ROUNDING + sum(last_digits, Fraction(0))
    return Band(shape.left, shape.right, low - margin, high + margin, pa.float64(), None)
