"""CASE and COALESCE. Every branch is computed for every row, which is safe because no kernel raises an error."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from braid.engine.kernels.casts import convert_all, in_type
from braid.engine.kernels.compare import Types
from braid.engine.kernels.values import Builder, Datum, Kernel, nulls_like
from braid.model.expressions.expression import Call


def case(call: Call, types: Types, result: pa.DataType) -> Kernel:
    if pa.types.is_null(result):
        return lambda *values: nulls_like(values, result)
    # The arguments are condition, value, condition, value, .. and the value of ELSE.
    branches = len(types) // 2
    targets = [pa.bool_(), result] * branches + [result]

    def evaluate(*values: Datum) -> Datum:
        chosen = values[-1]
        # From the last branch to the first, so that the first condition that holds decides.
        for position in range(len(values) - 3, -1, -2):
            condition, value = values[position], values[position + 1]
            chosen = pc.if_else(pc.fill_null(condition, False), value, chosen)
        return chosen

    return convert_all(evaluate, types, targets)


def coalesce(call: Call, types: Types, result: pa.DataType) -> Kernel:
    if pa.types.is_null(result):
        return lambda *values: nulls_like(values, result)
    return in_type(pc.coalesce, types, result)


BUILDERS: dict[str, Builder] = {"case": case, "coalesce": coalesce}
