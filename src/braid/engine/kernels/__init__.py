"""The kernels of every function of the language, by name."""

from braid.engine.kernels import arithmetic, compare, conditional, numeric, strings, temporal
from braid.engine.kernels.values import Builder

KERNELS: dict[str, Builder] = {
    **compare.BUILDERS,
    **conditional.BUILDERS,
    **arithmetic.BUILDERS,
    **numeric.BUILDERS,
    **strings.BUILDERS,
    **temporal.BUILDERS,
}
