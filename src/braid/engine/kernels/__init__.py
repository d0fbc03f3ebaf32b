"""Computes expressions on Arrow arrays, with the meaning of Spark (ANSI mode off).

Begin with `expression.compile_expression`. `KERNELS` has a builder for each function in
`braid.model.expressions.functions`; they are in one module per group of functions. `values` has what all kernels share,
`casts` the conversions between types.
"""

from braid.engine.kernels import arithmetic, compare, conditional, elements, numeric, strings, temporal
from braid.engine.kernels.values import Builder

KERNELS: dict[str, Builder] = {
    **compare.BUILDERS,
    **conditional.BUILDERS,
    **arithmetic.BUILDERS,
    **numeric.BUILDERS,
    **strings.BUILDERS,
    **temporal.BUILDERS,
    **elements.BUILDERS,
}
