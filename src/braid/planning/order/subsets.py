"""Sets of streams as bit masks, and all ways to split them in two, as arrays.

Bit i of a mask stands for stream i; arrays over masks have 2**k entries.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Masks = NDArray[np.int64]


class Level(NamedTuple):
    """All sets of one size. Row i of `lefts` and `rights` has the splits of set i in two parts, each split once."""

    masks: Masks
    lefts: Masks
    rights: Masks


@lru_cache(maxsize=16)
def levels(streams: int) -> tuple[Level, ...]:
    """The sets of 2, 3, .. streams.

    >>> [(level.masks.tolist(), level.lefts.tolist()) for level in levels(3)]
    [([3, 5, 6], [[1], [1], [2]]), ([7], [[1, 3, 5]])]
    """
    return tuple(_level(streams, size) for size in range(2, streams + 1))


def _level(streams: int, size: int) -> Level:
    bits = 1 << np.array(list(combinations(range(streams), size)), np.int64)
    return _splits(bits)


def _splits(bits: Masks) -> Level:
    """The splits of sets; each row of `bits` has the bits of the streams of one set."""
    size = bits.shape[1]
    masks = bits.sum(axis=1)
    # The left part always has the lowest stream, so each split occurs once.
    choices = np.arange(2 ** (size - 1) - 1, dtype=np.int64)
    in_left = (choices[:, None] >> np.arange(size - 1)) & 1
    lefts = bits[:, :1] + bits[:, 1:] @ in_left.T
    return Level(masks, lefts, masks[:, None] - lefts)


def members(mask: int) -> Iterator[int]:
    """The streams of a set, in order."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


def splits(mask: int) -> tuple[Masks, Masks]:
    """All ways to split one set in two, in the same order as in its `Level`.

    >>> [part.tolist() for part in splits(0b111)]
    [[1, 3, 5], [6, 4, 2]]
    """
    level = _splits(1 << np.array([list(members(mask))], np.int64))
    return level.lefts[0], level.rights[0]
