"""The prefetch instruction for compiled code: it loads memory into the cache before it is needed.

Looking up keys in an index larger than the caches costs a cache miss per row, one after the other. A kernel that
prefetches for a row some rows ahead lets these misses overlap.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from braid.engine.arrays.jit import Records, Words


def _typed(typing_context: Any, array: Any, row: Any) -> Any:
    """What numba needs to know about an intrinsic: its type, and a function that generates its instructions."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        view = context.make_array(signature.args[0])(context, builder, arguments[0])
        stride = builder.extract_value(view.strides, 0)
        base = builder.bitcast(view.data, cgutils.voidptr_t)
        address = builder.gep(base, [builder.mul(arguments[1], stride)])
        for_reading, keep_in_all_caches, data = (ir.Constant(cgutils.int32_t, flag) for flag in (0, 3, 1))
        kind = ir.FunctionType(ir.VoidType(), [address.type] + [cgutils.int32_t] * 3)
        instruction = builder.module.declare_intrinsic("llvm.prefetch", [address.type], kind)
        builder.call(instruction, [address, for_reading, keep_in_all_caches, data])
        return context.get_dummy_value()

    return types.void(array, types.int64), generate


prefetch = cast(Callable[[Words | Records, int], None], intrinsic(_typed))
"""Load an item of an array, or a row of a table, into the cache; it has no other effect."""
