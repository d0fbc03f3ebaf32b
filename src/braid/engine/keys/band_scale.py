"""The values of a band as words: two rows may match only if their words are at most `reach` apart.

Whole numbers and times fill the words up to their highest bit, so that words wrap where the arithmetic does. Floats and
decimals are counted in a unit, a power of two, small beside the band; there are so few units that rounding is always
less than one of them. What lies beyond the last unit, with infinity and NaN, is in the last one: then there may be many
candidates, but never too few.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from braid.engine.arrays.jit import Words
from braid.model.band import Band

LAST_UNIT = 1 << 44
UNITS_IN_BAND = 4
"""Half a band has at least 2 to this, less one, units."""
SMALLEST_UNIT = -16
"""The power of two that is the unit of a band with no width at all."""
ROUNDED_UNITS = 1
"""Rounding moves two values apart by less than this."""


@dataclass(frozen=True, slots=True)
class BandScale:
    """`centre` is added to the right side, so that the words of both lie around each other.

    A word counts units of 2 to the `exponent`; of whole numbers, it is their product by such a power.
    """

    band: Band
    centre: int | float
    exponent: int
    reach: int

    @classmethod
    def of(cls, band: Band) -> BandScale:
        if band.bits is not None:
            whole = int(band.low + band.high) // 2
            reach = max(int(band.high) - whole, whole - int(band.low))
            # One bit more than the width: the absolute value of the smallest integer is as if it were zero.
            shift = 65 - band.bits
            return cls(band, whole, -shift, reach << shift)
        half = float((band.high - band.low) / 2)
        exponent = math.frexp(half)[1] - UNITS_IN_BAND if half else SMALLEST_UNIT
        reach = math.ceil(math.ldexp(half, -exponent)) + ROUNDED_UNITS
        return cls(band, float((band.low + band.high) / 2), exponent, reach)

    @property
    def grain(self) -> int:
        """Words that agree but for so many bits are indexed together: never are more than three such cells in reach."""
        return (2 * self.reach).bit_length()

    def words(self, source: str, values: pa.Array) -> Words:
        """The words of a stream of the band, none of whose values is null."""
        moved = self.band.key(source) is self.band.right
        if self.band.bits is not None:
            numbers: Words = values.cast(pa.int64()).to_numpy(zero_copy_only=False)
            shifted: Words = (numbers + np.int64(self.centre) if moved else numbers) << -self.exponent
            return shifted
        with np.errstate(all="ignore"):
            floats = values.to_numpy(zero_copy_only=False)
            units = np.floor(np.ldexp(floats + self.centre if moved else floats, -self.exponent))
        counted: Words = np.clip(np.nan_to_num(units, nan=LAST_UNIT), -LAST_UNIT, LAST_UNIT).astype(np.int64)
        return counted
