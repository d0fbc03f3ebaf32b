"""Comparisons, logic, IN, GREATEST and LEAST.

NaN equals NaN and is the greatest number; a comparison with null is null.
"""

from __future__ import annotations

from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from braid.engine.kernels.casts import in_type
from braid.engine.kernels.values import Builder, Datum, Kernel, nulls_like, one_row
from braid.engine.keys.nested import canonical
from braid.model.expressions.expression import Call, Literal
from braid.model.expressions.rules import EQUALITIES
from braid.model.expressions.types import common_type, comparison_type, equality_type, kind

Types = tuple[pa.DataType, ...]


def comparison(function: str) -> Builder:
    def build(call: Call, types: Types, result: pa.DataType) -> Kernel:
        common = (equality_type if function in EQUALITIES else comparison_type)(*types)
        return compare_in(function, types, common)

    return build


def compare_in(function: str, types: Types, common: pa.DataType) -> Kernel:
    """The kernel of a comparison in the type `common`, to which the arguments are cast first."""
    if pa.types.is_null(common):
        if function == "same":
            return lambda left, right: pc.and_(pc.is_null(left), pc.is_null(right))
        return lambda *values: nulls_like(values, pa.bool_())
    if kind(common) == "nested":
        return in_type(_on_canonical(_ORDINARY[function]), types, common)
    kernels = _FLOATING if pa.types.is_floating(common) else _ORDINARY
    return in_type(kernels[function], types, common)


def _on_canonical(compare: Kernel) -> Kernel:
    """A comparison of nested values by their canonical encodings, which are equal for equal values."""
    return lambda *values: compare(*(canonical(value) for value in values))


def _same(equal: Kernel) -> Kernel:
    """`<=>`: like equality, but null equals null and the result is never null."""

    def evaluate(left: Datum, right: Datum) -> Datum:
        return pc.or_(pc.fill_null(equal(left, right), False), pc.and_(pc.is_null(left), pc.is_null(right)))

    return evaluate


def _has_nan(value: Datum) -> bool:
    nan = pc.is_nan(value)
    return bool(nan.as_py() if isinstance(nan, pa.Scalar) else pc.any(nan).as_py())


def _equal(left: Datum, right: Datum) -> Datum:
    result = pc.equal(left, right)
    if _has_nan(left) and _has_nan(right):
        return pc.or_kleene(result, pc.and_kleene(pc.is_nan(left), pc.is_nan(right)))
    return result


def _less(left: Datum, right: Datum) -> Datum:
    result = pc.less(left, right)
    if _has_nan(right):
        return pc.or_kleene(result, pc.and_kleene(pc.invert(pc.is_nan(left)), pc.is_nan(right)))
    return result


_ORDINARY: dict[str, Kernel] = {
    **{name: getattr(pc, name) for name in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")},
    "same": _same(pc.equal),
}

_FLOATING: dict[str, Kernel] = {
    "equal": _equal,
    "not_equal": lambda left, right: pc.invert(_equal(left, right)),
    "less": _less,
    "less_equal": lambda left, right: pc.or_(_less(left, right), _equal(left, right)),
    "greater": lambda left, right: _less(right, left),
    "greater_equal": lambda left, right: pc.or_(_less(right, left), _equal(left, right)),
    "same": _same(_equal),
}


def logic(kernel: Kernel) -> Builder:
    def build(call: Call, types: Types, result: pa.DataType) -> Kernel:
        return in_type(kernel, types, pa.bool_())

    return build


def is_null(call: Call, types: Types, result: pa.DataType) -> Kernel:
    return lambda value: pc.is_null(value)


def membership(call: Call, types: Types, result: pa.DataType) -> Kernel:
    """IN: true if a member of the list is equal, else null if a comparison is null, else false."""
    common = common_type(types)
    if pa.types.is_null(common):
        return lambda *values: nulls_like(values, pa.bool_())
    if all(isinstance(argument, Literal) for argument in call.arguments[1:]):
        return in_type(_is_constant_member, types, common)
    equal = compare_in("equal", (common, common), common)
    return in_type(
        lambda value, *others: reduce(pc.or_kleene, (equal(value, other) for other in others)), types, common
    )


def _is_constant_member(value: Datum, *constants: pa.Scalar) -> Datum:
    """IN with constants only: one lookup in a hash set."""
    if isinstance(value, pa.Scalar):
        value = one_row(value)
    members = pa.array([constant.as_py() for constant in constants if constant.is_valid], value.type)
    if pa.types.is_floating(value.type):
        # -0.0 and 0.0 have different hashes; adding zero turns -0.0 into 0.0.
        zero = pa.scalar(0.0, value.type)
        value, members = pc.add(value, zero), pc.add(members, zero)
    is_member = pc.is_in(value, value_set=members)
    null_result = pa.scalar(None, pa.bool_())
    has_null_constant = len(members) < len(constants)
    if has_null_constant:
        return pc.if_else(is_member, True, null_result)
    return pc.if_else(pc.is_null(value), null_result, is_member)


def extreme(function: str) -> Builder:
    """GREATEST and LEAST; nulls are ignored."""

    def build(call: Call, types: Types, result: pa.DataType) -> Kernel:
        if pa.types.is_null(result):
            return lambda *values: nulls_like(values, result)
        beats = compare_in(function, (result, result), result)

        def better(best: Datum, value: Datum) -> Datum:
            return pc.coalesce(pc.if_else(beats(value, best), value, best), best, value)

        return in_type(lambda *values: reduce(better, values), types, result)

    return build


BUILDERS: dict[str, Builder] = {
    **{name: comparison(name) for name in _ORDINARY},
    "and": logic(pc.and_kleene),
    "or": logic(pc.or_kleene),
    "not": logic(pc.invert),
    "is_null": is_null,
    "in": membership,
    "greatest": extreme("greater"),
    "least": extreme("less"),
}
