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

Function = TypeVar("Function", bound=Callable[..., object])


def compiled(function: Function) -> Function:
    """Compile a function to machine code. It may only take and return numbers and NumPy arrays."""
    return cast(Function, numba.njit(cache=True, nogil=True, boundscheck=False)(function))


def inlined(function: Function) -> Function:
    """Compile a small function that is copied into the kernels that call it."""
    return cast(Function, numba.njit(cache=True, inline="always")(function))
