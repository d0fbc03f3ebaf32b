"""Compiles the engine's inner loops to machine code, cached on disk between processes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

import numba
import numpy as np

Words = np.ndarray[tuple[int], np.dtype[np.int64]]
"""An array of 64-bit integers."""

Records = np.ndarray[tuple[int, int], np.dtype[np.int64]]
"""A table of 64-bit integers."""

Kernel = TypeVar("Kernel", bound=Callable[..., object])


def compiled(kernel: Kernel) -> Kernel:
    """Compile a kernel to machine code. It may only take and return numbers and NumPy arrays."""
    return cast(Kernel, numba.njit(cache=True, nogil=True, boundscheck=False)(kernel))


def inlined(kernel: Kernel) -> Kernel:
    """Compile a small function that is copied into the kernels that call it."""
    return cast(Kernel, numba.njit(cache=True, inline="always")(kernel))
