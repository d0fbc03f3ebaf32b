"""Probing a bucket chain for words near those of the probing rows.

The index has the rows of a cell, words that agree but for their lowest bits, in one bucket. Words wrap, so that the
highest and the lowest are neighbours.
"""

from __future__ import annotations

import numpy as np

from braid.engine.arrays.jit import Records, Words, compiled
from braid.engine.arrays.prefetch import prefetch
from braid.engine.window.chain import BUCKETS_AHEAD, END, KEY, NEXT, NOBODY, START, bucket_of


@compiled
def probe_near(
    words: Words, starts: Words, ends: Words, begin: int, resume: int, tail: int, limit: int, reach: int, grain: int,
    buckets: Words, records: Records, mask: int, shift: int,
    positions: Words, ids: Words, overlap_starts: Words, overlap_ends: Words,
) -> tuple[int, int, int]:  # fmt: skip
    """As `chain.probe`, for every row whose word is at most `reach` away."""
    found = 0
    for row in range(begin, len(words)):
        if row + BUCKETS_AHEAD < len(words):
            prefetch(buckets, bucket_of((words[row + BUCKETS_AHEAD] - reach) >> grain, shift))
            prefetch(buckets, bucket_of((words[row + BUCKETS_AHEAD] + reach) >> grain, shift))
        start, end = starts[row], ends[row]
        lowest = words[row] - reach
        first = (lowest >> grain) << grain
        cells = np.int64(np.uint64(words[row] + reach - first) >> np.uint64(grain)) + 1
        cell = np.int64(0)
        if resume != NOBODY:
            # Where it stopped, there is a match, which says by its word in which cell that was.
            cell = np.int64(np.uint64(records[resume & mask, KEY] - first) >> np.uint64(grain))
        while cell < cells:
            bottom = first + (cell << grain)
            candidate = buckets[bucket_of(bottom >> grain, shift)] if resume == NOBODY else resume
            resume = NOBODY
            while candidate >= tail:
                place = candidate & mask
                word = records[place, KEY]
                if (
                    np.uint64(word - lowest) <= np.uint64(2 * reach)
                    # A bucket may have the rows of several cells in reach: each is met in its own.
                    and np.uint64(word - bottom) >> np.uint64(grain) == np.uint64(0)
                    and candidate < limit
                    and records[place, START] < end
                    and records[place, END] > start
                ):
                    if found == len(positions):
                        return found, row, candidate
                    positions[found] = row
                    ids[found] = candidate
                    overlap_starts[found] = max(start, records[place, START])
                    overlap_ends[found] = min(end, records[place, END])
                    found += 1
                candidate = records[place, NEXT]
            cell += 1
    return found, len(words), NOBODY
