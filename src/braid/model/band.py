"""Bands: conditions that bound the difference of two numbers or times of two streams, `low <= left - right <= high`.

A band index finds the few rows that may match; without it, a probe compares every row. The index may return too many
rows, since the conditions themselves are checked afterwards, but it must not miss a match. So a band is what the
conditions imply in the arithmetic of the engine, where integers and times wrap and floats and decimals are rounded:

- `x - y` between two constants is a band. For integers of n bits it holds modulo 2**n. A bound on ABS(x - y) holds
  modulo 2**(n - 1) only, because the smallest integer is its own absolute value.
- `x + p <= y + q` bounds `x - y` if `p <= 0 <= q`: then a sum that wraps only makes the condition stricter.
- `y + p <= x <= y + q`, with both sums of one type, is a band: if both sums wrap, so does the difference; if only one
  wraps, no `x` lies between them.

Other bounds, such as `x + 5 <= y + 7`, may hold for rows that are far apart, and make no band.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

import pyarrow as pa

from braid.model.expressions.expression import Call, Expression, Literal, sources_of
from braid.model.expressions.types import DURATION, INSTANT, NUMBERS, kind, plain
from braid.model.predicate import MIRRORED, Predicate

TypeOf = Callable[[Expression], pa.DataType]
"""Returns the type of an expression."""

DIFFERENCE = "difference"
"""The form of bounds on `x - y`."""

STRICT = "strict"
"""The form of bounds `x + p <= y + q` with `p <= 0 <= q`. Any other form names the stream whose sum is compared."""

SINGLE_ROUNDING = Fraction(1, 2**22)
"""More than the relative error of any difference or constant, even in single precision."""

LARGEST = Fraction(2**1000)
"""The largest limit of a band of floats, far enough from the overflow of a double."""


@dataclass(frozen=True)
class Band:
    """`low <= left - right <= high`, where each side is an expression over one stream.

    `type` is the type in which the index stores the values. For integers and times the bound holds modulo
    2**(`bits` - 1). For floats and decimals `bits` is None, and the limits are wide enough for rounded differences.
    """

    left: Expression
    right: Expression
    low: Fraction
    high: Fraction
    type: pa.DataType
    bits: int | None

    @cached_property
    def sources(self) -> frozenset[str]:
        return sources_of(self.left) | sources_of(self.right)

    def key(self, source: str) -> Expression:
        """The side of the band that reads this stream."""
        return self.left if sources_of(self.left) == {source} else self.right

    def joins(self, left: Collection[str], right: Collection[str]) -> bool:
        """Whether one of its two streams is in `left`, and the other in `right`."""
        if self.sources.isdisjoint(left) or self.sources.isdisjoint(right):
            return False
        return not self.sources <= set(left)


class _Shape(NamedTuple):
    """What a lower and an upper bound must have in common to make a band."""

    left: Expression
    right: Expression
    form: str
    type: pa.DataType | None = None


class _Bound(NamedTuple):
    """`left - right <= limit` or, if not `upper`, `left - right >= limit`.

    `sums` are the types of the sums or differences in the condition. `refuses_nan` says whether the condition is false
    for a difference that is NaN, which counts as the greatest number.
    """

    upper: bool
    limit: Fraction
    sums: frozenset[pa.DataType]
    refuses_nan: bool


def bands_of(predicates: Iterable[Predicate], type_of: TypeOf) -> tuple[Band, ...]:
    """The bands that follow from the conditions: for each pair of streams the first one."""
    bounds: dict[_Shape, list[_Bound]] = {}
    for predicate in predicates:
        if len(predicate.sources) == 2:
            for shape, bound in _bounds(predicate.expression, type_of):
                bounds.setdefault(shape, []).append(bound)
    bands: dict[frozenset[str], Band] = {}
    for shape, bounds_of_shape in bounds.items():
        band = _band(shape, bounds_of_shape, type_of)
        if band is not None:
            bands.setdefault(band.sources, band)
    return tuple(bands.values())


def _bounds(expression: Expression, type_of: TypeOf) -> Iterator[tuple[_Shape, _Bound]]:
    """The bounds that follow from a comparison; an equality gives an upper and a lower one."""
    if not isinstance(expression, Call) or expression.function not in MIRRORED.keys() - {"not_equal", "same"}:
        return
    left, right = expression.arguments
    if not expression.function.startswith("greater"):
        yield from _bounds_of_order(left, right, type_of)
    if not expression.function.startswith("less"):
        yield from _bounds_of_order(right, left, type_of)


def _bounds_of_order(lesser: Expression, greater: Expression, type_of: TypeOf) -> Iterator[tuple[_Shape, _Bound]]:
    """The bounds that follow from `lesser <= greater`."""
    low, high = _constant(lesser), _constant(greater)
    if high is not None:
        if isinstance(lesser, Call) and lesser.function == "abs":
            yield from _bound_on_difference(lesser.arguments[0], False, -high, type_of)
            lesser = lesser.arguments[0]
        yield from _bound_on_difference(lesser, True, high, type_of)
    elif low is not None:
        yield from _bound_on_difference(greater, False, low, type_of)
    else:
        yield from _bounds_on_sums(lesser, greater, type_of)


def _bound_on_difference(
    expression: Expression, upper: bool, limit: Fraction, type_of: TypeOf
) -> Iterator[tuple[_Shape, _Bound]]:
    """The bound on `x - y` if the expression is such a difference."""
    if isinstance(expression, Call) and expression.function == "subtract" and _read_two_streams(*expression.arguments):
        left, right = expression.arguments
        sums = frozenset({plain(type_of(expression))})
        yield _oriented(_Shape(left, right, DIFFERENCE), _Bound(upper, limit, sums, refuses_nan=upper))


def _bounds_on_sums(lesser: Expression, greater: Expression, type_of: TypeOf) -> Iterator[tuple[_Shape, _Bound]]:
    """The bounds that follow from `x + p <= y + q`, where a constant may be missing."""
    left, left_constant = _without_constant(lesser)
    right, right_constant = _without_constant(greater)
    if not _read_two_streams(left, right):
        return
    sides = ((lesser, left), (greater, right))
    # A side without a constant is the same expression as before, and no sum.
    sums = {plain(type_of(side)) for side, stripped in sides if side is not stripped}
    summands = [stripped for side, stripped in sides if side is not stripped]
    bound = _Bound(True, right_constant - left_constant, frozenset(sums), refuses_nan=True)
    if left_constant <= 0 <= right_constant:
        yield _oriented(_Shape(left, right, STRICT), bound)
    if len(summands) == 1:
        (alias,) = sources_of(summands[0])
        yield _oriented(_Shape(left, right, f"shifted {alias}", *sums), bound)


def _oriented(shape: _Shape, bound: _Bound) -> tuple[_Shape, _Bound]:
    """The same bound with its sides in the order of their texts, so that `a - b` and `b - a` have the same shape."""
    if str(shape.left) <= str(shape.right):
        return shape, bound
    swapped = shape._replace(left=shape.right, right=shape.left)
    return swapped, bound._replace(upper=not bound.upper, limit=-bound.limit)


def _read_two_streams(left: Expression, right: Expression) -> bool:
    """Whether each expression reads one stream, and not the same one."""
    left_sources, right_sources = sources_of(left), sources_of(right)
    return len(left_sources) == len(right_sources) == 1 and left_sources != right_sources


def _without_constant(expression: Expression) -> tuple[Expression, Fraction]:
    """An expression without the constant that is added to it, and this constant."""
    if isinstance(expression, Call) and expression.function in ("add", "subtract"):
        first, second = expression.arguments
        constant = _constant(second)
        if constant is not None:
            return first, constant if expression.function == "add" else -constant
        constant = _constant(first) if expression.function == "add" else None
        if constant is not None:
            return second, constant
    return expression, Fraction(0)


def _constant(expression: Expression) -> Fraction | None:
    """The value of a number, or of a duration in microseconds; None if the expression is not such a constant."""
    if isinstance(expression, Call) and expression.function == "negate":
        negated = _constant(expression.arguments[0])
        return None if negated is None else -negated
    value = expression.value if isinstance(expression, Literal) else None
    if isinstance(value, timedelta):
        return Fraction(value // timedelta(microseconds=1))
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal) or not math.isfinite(value):
        return None
    return Fraction(value)


def _band(shape: _Shape, bounds: list[_Bound], type_of: TypeOf) -> Band | None:
    """The band of the tightest lower and upper bound; None if one is missing or the types allow no band."""
    lows = [bound.limit for bound in bounds if not bound.upper]
    highs = [bound.limit for bound in bounds if bound.upper]
    if not lows or not highs:
        return None
    low, high = max(lows), min(highs)
    if low > high:
        return None
    sums = frozenset[pa.DataType]().union(*(bound.sums for bound in bounds))
    kinds = {kind(type_of(shape.left)), kind(type_of(shape.right))}
    if kinds <= {"timestamp", "date"} and (shape.form == DIFFERENCE or "date" not in kinds):
        # A date shifted by days may wrap to another date, so sums with dates make no band; differences do.
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
    """A band of integers or times; None if it covers so much of their range that an index would not help."""
    least, most = math.floor(low), math.ceil(high)
    # The comparison may round a large limit to a float first: widen the band by more than that.
    least -= abs(least) >> 50
    most += abs(most) >> 50
    if max(-least, most) >= 1 << (bits - 1) or most - least >= 1 << (bits - 3):
        return None
    return Band(shape.left, shape.right, Fraction(least), Fraction(most), type_, bits)


def _rounded(shape: _Shape, low: Fraction, high: Fraction, sums: frozenset[pa.DataType]) -> Band | None:
    """A band of floats or decimals, widened by the largest rounding error; None if that is unbounded."""
    if shape.form != DIFFERENCE and pa.float32() in sums:
        return None  # the rounding error of a sum grows with its terms
    if shape.form not in (DIFFERENCE, STRICT) and any(kind(type_) == "integer" for type_ in sums):
        return None  # a sum of integers wraps, the float it is compared with does not
    largest = max(abs(low), abs(high))
    if largest > LARGEST:
        return None
    last_digits = [Fraction(10) ** -type_.scale for type_ in sums if pa.types.is_decimal(type_)]
    margin = largest * SINGLE_ROUNDING + sum(last_digits, Fraction(0))
    return Band(shape.left, shape.right, low - margin, high + margin, pa.float64(), None)
