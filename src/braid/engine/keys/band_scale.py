"""The values of a band as words: two rows can match only if their words are at most `reach` apart.

Integers and times are shifted up to the highest bit of the word, so that words wrap around where the arithmetic does.
Floats and decimals are counted in units: a unit is a power of two that is small compared to the band. A word counts at
most LAST_UNIT units, so that rounding errors are always less than one unit. Values beyond the last unit, infinity and
NaN get the last unit. So there may be too many candidates there, but never too few.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from braid.engine.arrays.jit import Words
from braid.model.band import Band

LAST_UNIT = 1 << 44
"""The largest word of floats and decimals, in units."""

UNITS_IN_BAND = 4
"""A band is at least 2 to the power of this many units wide."""

SMALLEST_UNIT = -16
"""The exponent of the unit of a band of width 0."""

ROUNDED_UNITS = 1
"""Rounding moves two values apart by less than this many units."""


@dataclass(frozen=True, slots=True)
class BandScale:
    """How the values of a band become words.

    `centre` is added to the values of the right side, so that the words of matches lie around each other. A word counts
    units of 2 to the power of `exponent`; integers are shifted to the left by `-exponent` bits.
    """

    band: Band
    centre: int | float
    exponent: int
    reach: int

    @classmethod
    def of(cls, band: Band) -> BandScale:
        if band.bits is not None:
            centre = int(band.low + band.high) // 2
            reach = max(int(band.high) - centre, centre - int(band.low))
            # The highest bit is shifted out, too: the absolute value of the smallest integer counts as zero.
            shift = 65 - band.bits
            return cls(band, centre, -shift, reach << shift)
        half = float((band.high - band.low) / 2)
        exponent = math.frexp(half)[1] - UNITS_IN_BAND if half else SMALLEST_UNIT
        reach = math.ceil(math.ldexp(half, -exponent)) + ROUNDED_UNITS
        return cls(band, float((band.low + band.high) / 2), exponent, reach)

    @property
    def grain(self) -> int:
        """How many low bits of a word the index ignores.

        Words that differ only in these form a cell; at most three cells are in reach of a word.
        """
        return (2 * self.reach).bit_length()

    def words(self, source: str, values: pa.Array) -> Words:
        """The words of one stream of the band; no value is null."""
        is_right = self.band.key(source) is self.band.right
        if self.band.bits is not None:
            numbers: Words = values.cast(pa.int64()).to_numpy(zero_copy_only=False)
            shifted: Words = (numbers + np.int64(self.centre) if is_right else numbers) << -self.exponent
            return shifted
        with np.errstate(all="ignore"):
            floats = values.to_numpy(zero_copy_only=False)
            units = np.floor(np.ldexp(floats + self.centre if is_right else floats, -self.exponent))
        counted: Words = np.clip(np.nan_to_num(units, nan=LAST_UNIT), -LAST_UNIT, LAST_UNIT).astype(np.int64)
        return counted
