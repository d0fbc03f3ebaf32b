"""The index of a window: buckets of chained rows, with compiled inner loops.

Rows have ever-growing ids. The arrays are rings: a row lives in slot `id & mask`. Each bucket holds the id of its
newest row and each row the id of the next older row in its bucket, so ids fall along a chain. A chain ends where ids
fall below the window's `tail`, so forgetting rows only needs a new tail.

A record is (key, end, start, next). It fills half a cache line, so a step along a chain costs one cache miss.
"""

from __future__ import annotations

import numpy as np

from braid.engine.arrays.jit import Records, Words, compiled, inlined
from braid.engine.arrays.prefetch import prefetch

KEY, END, START, NEXT = 0, 1, 2, 3
"""The columns of a record."""

NO_ROW = -1
"""The id that no row has: the end of a chain, or a search that starts at its beginning."""

DONE = -2
"""In place of the id to resume a search from: nothing is left to look at."""

BUCKETS_AHEAD, RECORDS_AHEAD = 24, 12
"""How many rows ahead of the current one buckets, and the records that they point to, are prefetched."""


@inlined
def bucket_of(key: int, shift: int) -> int:
    return np.int64(  # type: ignore[return-value]
        (np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(shift)
    )


@inlined
def fetch_ahead(keys: Words, row: int, buckets: Words, records: Records, mask: int, shift: int) -> None:
    """Prefetch what the probes of the next rows will read first."""
    if row + BUCKETS_AHEAD < len(keys):
        prefetch(buckets, bucket_of(keys[row + BUCKETS_AHEAD], shift))
        prefetch(records, buckets[bucket_of(keys[row + RECORDS_AHEAD], shift)] & mask)


@compiled
def insert(
    keys: Words, starts: Words, ends: Words, first: int, grain: int,
    buckets: Words, records: Records, mask: int, shift: int,
) -> None:  # fmt: skip
    """Index rows with ids from `first` on; keys that differ only in their lowest `grain` bits share a bucket."""
    for row in range(len(keys)):
        if row + BUCKETS_AHEAD < len(keys):
            prefetch(buckets, bucket_of(keys[row + BUCKETS_AHEAD] >> grain, shift))
        slot = (first + row) & mask
        bucket = bucket_of(keys[row] >> grain, shift)
        records[slot, KEY] = keys[row]
        records[slot, END] = ends[row]
        records[slot, START] = starts[row]
        records[slot, NEXT] = buckets[bucket]
        buckets[bucket] = first + row


@compiled
def probe(
    keys: Words, starts: Words, ends: Words, begin: int, resume: int, tail: int, limit: int,
    buckets: Words, records: Records, mask: int, shift: int,
    positions: Words, ids: Words, overlap_starts: Words, overlap_ends: Words,
) -> tuple[int, int, int]:  # fmt: skip
    """Match each probing row with the rows of the same key in `tail <= id < limit` whose lifetimes overlap its own.

    Matches go to the last four arrays: position of the probing row, id of its match, their common lifetime. Returns the
    number of matches and, for when the arrays are full, where to resume: the probing row (`begin` of the next call) and
    the id in its chain (`resume`; NO_ROW to start with its bucket).
    """
    count = 0
    for row in range(begin, len(keys)):
        fetch_ahead(keys, row, buckets, records, mask, shift)
        key, start, end = keys[row], starts[row], ends[row]
        candidate = buckets[bucket_of(key, shift)] if resume == NO_ROW else resume
        resume = NO_ROW
        while candidate >= tail:
            slot = candidate & mask
            if (
                records[slot, KEY] == key
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
    return count, len(keys), NO_ROW


@compiled
def scan(
    starts: Words, ends: Words, begin: int, resume: int, tail: int, limit: int,
    window_starts: Words, window_ends: Words, mask: int,
    positions: Words, ids: Words, overlap_starts: Words, overlap_ends: Words,
) -> tuple[int, int, int]:  # fmt: skip
    """As `probe`, without a key: every row of the window whose lifetime overlaps that of the probing row."""
    count = 0
    for row in range(begin, len(starts)):
        start, end = starts[row], ends[row]
        for candidate in range(tail if resume == NO_ROW else resume, limit):
            slot = candidate & mask
            if window_starts[slot] < end and window_ends[slot] > start:
                if count == len(positions):
                    return count, row, candidate
                positions[count] = row
                ids[count] = candidate
                overlap_starts[count] = max(start, window_starts[slot])
                overlap_ends[count] = min(end, window_ends[slot])
                count += 1
        resume = NO_ROW
    return count, len(starts), NO_ROW


@compiled
def rows_with_candidate(
    keys: Words, starts: Words, ends: Words, tail: int, limit: int,
    buckets: Words, records: Records, mask: int, shift: int, rows: Words,
) -> int:  # fmt: skip
    """Write the positions of probing rows that have any match to `rows`; returns how many there are."""
    count = 0
    for row in range(len(keys)):
        fetch_ahead(keys, row, buckets, records, mask, shift)
        candidate = buckets[bucket_of(keys[row], shift)]
        while candidate >= tail:
            slot = candidate & mask
            if (
                records[slot, KEY] == keys[row]
                and candidate < limit
                and records[slot, START] < ends[row]
                and records[slot, END] > starts[row]
            ):
                rows[count] = row
                count += 1
                break
            candidate = records[slot, NEXT]
    return count


@compiled
def probe_next(
    keys: Words, starts: Words, ends: Words, resumes: Words, tail: int, limit: int,
    buckets: Words, records: Records, mask: int, shift: int,
    positions: Words, ids: Words, overlap_starts: Words, overlap_ends: Words,
) -> int:  # fmt: skip
    """As `probe`, but at most one match per probing row.

    `resumes` says where the search of each row resumes, and is updated: an id, or DONE.
    """
    count = 0
    for row in range(len(keys)):
        fetch_ahead(keys, row, buckets, records, mask, shift)
        key, start, end = keys[row], starts[row], ends[row]
        candidate = buckets[bucket_of(key, shift)] if resumes[row] == NO_ROW else resumes[row]
        resumes[row] = DONE
        while candidate >= tail:
            slot = candidate & mask
            following = records[slot, NEXT]
            if (
                records[slot, KEY] == key
                and candidate < limit
                and records[slot, START] < end
                and records[slot, END] > start
            ):
                positions[count] = row
                ids[count] = candidate
                overlap_starts[count] = max(start, records[slot, START])
                overlap_ends[count] = min(end, records[slot, END])
                count += 1
                resumes[row] = following if following >= tail else DONE
                break
            candidate = following
    return count


@compiled
def scan_next(
    starts: Words, ends: Words, resumes: Words, tail: int, limit: int,
    window_starts: Words, window_ends: Words, mask: int,
    positions: Words, ids: Words, overlap_starts: Words, overlap_ends: Words,
) -> int:  # fmt: skip
    """As `probe_next`, without a key: any row of the window whose lifetime overlaps that of the probing row."""
    count = 0
    for row in range(len(starts)):
        start, end = starts[row], ends[row]
        first = tail if resumes[row] == NO_ROW else resumes[row]
        resumes[row] = DONE
        for candidate in range(first, limit):
            slot = candidate & mask
            if window_starts[slot] < end and window_ends[slot] > start:
                positions[count] = row
                ids[count] = candidate
                overlap_starts[count] = max(start, window_starts[slot])
                overlap_ends[count] = min(end, window_ends[slot])
                count += 1
                resumes[row] = candidate + 1
                break
    return count


@compiled
def set_ends(ids: Words, ends: Words, window_ends: Words, mask: int) -> None:
    """Set the ends of rows of a window, once they are known."""
    for row in range(len(ids)):
        window_ends[ids[row] & mask] = ends[row]


@compiled
def first_alive(window_ends: Words, mask: int, tail: int, next_id: int, horizon: int) -> int:
    """The first id from `tail` on whose row is still alive at `horizon`; `next_id` if there is none."""
    while tail < next_id and window_ends[tail & mask] <= horizon:
        tail += 1
    return tail


@compiled
def alive(window_ends: Words, mask: int, tail: int, last: int, horizon: int) -> Words:
    """The ids from `tail` up to `last` whose rows are still alive at `horizon`."""
    ids, count = np.empty(last - tail, np.int64), 0
    for candidate in range(tail, last):
        ids[count] = candidate
        count += window_ends[candidate & mask] > horizon
    return ids[:count]


@compiled
def bucket_order(keys: Words, bits: int) -> Words:
    """The order of rows by index bucket, a stable counting sort on the first `bits` bits of the bucket number.

    Rows that are inserted and probed in this order read the index from one end to the other, not at random.
    """
    counts = np.zeros((1 << bits) + 1, np.int64)
    for row in range(len(keys)):
        counts[bucket_of(keys[row], 64 - bits) + 1] += 1
    for bucket in range(1 << bits):
        counts[bucket + 1] += counts[bucket]
    order = np.empty(len(keys), np.int64)
    for row in range(len(keys)):
        bucket = bucket_of(keys[row], 64 - bits)
        order[counts[bucket]] = row
        counts[bucket] += 1
    return order
