"""Probing the index of a band: for words near those of the probing rows.

Words that differ only in their lowest `grain` bits form a cell, and the rows of a cell share a bucket. Words wrap
around, so the highest and the lowest word are neighbours.
"""

from __future__ import annotations

import numpy as np

from braid.engine.arrays.jit import Records, Words, compiled
from braid.engine.arrays.prefetch import prefetch
from braid.engine.window.chain import BUCKETS_AHEAD, END, KEY, NEXT, NO_ROW, START, bucket_of


@compiled
def probe_near(
    words: Words, starts: Words, ends: Words, begin: int, resume: int, tail: int, limit: int, reach: int, grain: int,
    buckets: Words, records: Records, mask: int, shift: int,
    positions: Words, ids: Words, overlap_starts: Words, overlap_ends: Words,
) -> tuple[int, int, int]:  # fmt: skip
    """As `chain.probe`, but rows match if their words are at most `reach` apart."""
    count = 0
    for row in range(begin, len(words)):
        if row + BUCKETS_AHEAD < len(words):
            prefetch(buckets, bucket_of((words[row + BUCKETS_AHEAD] - reach) >> grain, shift))
            prefetch(buckets, bucket_of((words[row + BUCKETS_AHEAD] + reach) >> grain, shift))
        start, end = starts[row], ends[row]
        lowest = words[row] - reach
        first = (lowest >> grain) << grain
        cells = np.int64(np.uint64(words[row] + reach - first) >> np.uint64(grain)) + 1
        cell = np.int64(0)
        if resume != NO_ROW:
            # The search stopped at a match. The word of that match says in which cell.
            cell = np.int64(np.uint64(records[resume & mask, KEY] - first) >> np.uint64(grain))
        while cell < cells:
            bottom = first + (cell << grain)
            candidate = buckets[bucket_of(bottom >> grain, shift)] if resume == NO_ROW else resume
            resume = NO_ROW
            while candidate >= tail:
                slot = candidate & mask
                word = records[slot, KEY]
                if (
                    np.uint64(word - lowest) <= np.uint64(2 * reach)
                    # A bucket may hold rows of several cells in reach; each row is matched in its own cell.
                    and np.uint64(word - bottom) >> np.uint64(grain) == np.uint64(0)
                    and candidate < limit
                    and records[slot, START] < end
                    and records[slot, END] > start
                ):
                    if count == len(positions):
                        return count, row, candidate
                    positions[count] = row
                    ids[count] = candidate
                    overlap_starts[count] = max(start, records[slot, START])
                    overlap_ends[count] = min(end, records[slot, END])
                    count += 1
                candidate = records[slot, NEXT]
            cell += 1
    return count, len(words), NO_ROW
