"""CASE and COALESCE. Every branch is computed for every row: no kernel fails, so that changes no result."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from braid.engine.kernels.casts import convert_all, in_type
from braid.engine.kernels.compare import Types
from braid.engine.kernels.values import Builder, Kernel, Value, nulls_like
from braid.model.expressions.expression import Call


def case(call: Call, types: Types, result: pa.DataType) -> Kernel:
    if pa.types.is_null(result):
        return lambda *values: nulls_like(values, result)
    wanted = [pa.bool_() if position % 2 == 0 else result for position in range(len(types) - 1)] + [result]

    def evaluate(*values: Value) -> Value:
        chosen = values[-1]
        for position in range(len(values) - 3, -1, -2):
            chosen = pc.if_else(pc.fill_null(values[position], False), values[position + 1], chosen)
        return chosen

    return convert_all(evaluate, types, wanted)


def coalesce(call: Call, types: Types, result: pa.DataType) -> Kernel:
    if pa.types.is_null(result):
        return lambda *values: nulls_like(values, result)
    return in_type(pc.coalesce, types, result)


BUILDERS: dict[str, Builder] = {"case": case, "coalesce": coalesce}
