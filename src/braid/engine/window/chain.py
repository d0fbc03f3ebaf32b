"""The bucket-chain index of a window: its inner loops, compiled.

Rows have ever-growing ids; a row lives at place `id & mask` of arrays that are used as rings. Each bucket holds the id
of its newest row and each row the id of the next older one in its bucket, so that ids fall along a chain: a chain ends
where ids fall below the window's `tail`, and forgetting rows needs no more than a new tail.

A record is (key, end, start, next). It is one half of a cache line, so that a step along a chain costs one miss.
"""

from __future__ import annotations

import numpy as np

from braid.engine.arrays.jit import Records, Words, compiled, inlined
from braid.engine.arrays.prefetch import prefetch

KEY, END, START, NEXT = 0, 1, 2, 3
NOBODY = -1
DONE = -2
"""Where to go on if nothing is left to look at."""
BUCKETS_AHEAD, RECORDS_AHEAD = 24, 12
"""How many rows before its turn the bucket of a row is fetched, and the record that the bucket names."""


@inlined
def bucket_of(key: int, shift: int) -> int:
    return np.int64(  # type: ignore[return-value]
        (np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(shift)
    )


@inlined
def fetch_ahead(keys: Words, row: int, buckets: Words, records: Records, mask: int, shift: int) -> None:
    """Fetch what the probes of the rows to come will look at first."""
    if row + BUCKETS_AHEAD < len(keys):
        prefetch(buckets, bucket_of(keys[row + BUCKETS_AHEAD], shift))
        prefetch(records, buckets[bucket_of(keys[row + RECORDS_AHEAD], shift)] & mask)


@compiled
def insert(
    keys: Words, starts: Words, ends: Words, first: int, grain: int,
    buckets: Words, records: Records, mask: int, shift: int,
) -> None:  # fmt: skip
    """Index rows that got the ids from `first` on; keys that agree but for the lowest `grain` bits share a bucket."""
    for row in range(len(keys)):
        if row + BUCKETS_AHEAD < len(keys):
            prefetch(buckets, bucket_of(keys[row + BUCKETS_AHEAD] >> grain, shift))
        place = (first + row) & mask
        bucket = bucket_of(keys[row] >> grain, shift)
        records[place, KEY] = keys[row]
        records[place, END] = ends[row]
        records[place, START] = starts[row]
        records[place, NEXT] = buckets[bucket]
        buckets[bucket] = first + row


@compiled
def probe(
    keys: Words, starts: Words, ends: Words, begin: int, resume: int, tail: int, limit: int,
    buckets: Words, records: Records, mask: int, shift: int,
    positions: Words, ids: Words, overlap_starts: Words, overlap_ends: Words,
) -> tuple[int, int, int]:  # fmt: skip
    """Match each probing row with the rows of its key in `tail <= id < limit` that are alive together with it.

    Matches go to the last four arrays: position of the probing row, id of its match, their common lifetime. Returns
    the number of matches and where to go on if the arrays are full: a probing row, and an id to go on from in its
    chain (or NOBODY to start with its bucket).
    """
    found = 0
    for row in range(begin, len(keys)):
        fetch_ahead(keys, row, buckets, records, mask, shift)
        key, start, end = keys[row], starts[row], ends[row]
        candidate = buckets[bucket_of(key, shift)] if resume == NOBODY else resume
        resume = NOBODY
        while candidate >= tail:
            place = candidate & mask
            if (
                records[place, KEY] == key
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
    return found, len(keys), NOBODY


@compiled
def scan(
    starts: Words, ends: Words, begin: int, resume: int, tail: int, limit: int,
    window_starts: Words, window_ends: Words, mask: int,
    positions: Words, ids: Words, overlap_starts: Words, overlap_ends: Words,
) -> tuple[int, int, int]:  # fmt: skip
    """As `probe`, with no key: every row of the window that is alive together with the probing one."""
    found = 0
    for row in range(begin, len(starts)):
        start, end = starts[row], ends[row]
        for candidate in range(tail if resume == NOBODY else resume, limit):
            place = candidate & mask
            if window_starts[place] < end and window_ends[place] > start:
                if found == len(positions):
                    return found, row, candidate
                positions[found] = row
                ids[found] = candidate
                overlap_starts[found] = max(start, window_starts[place])
                overlap_ends[found] = min(end, window_ends[place])
                found += 1
        resume = NOBODY
    return found, len(starts), NOBODY


@compiled
def meets(
    keys: Words, starts: Words, ends: Words, tail: int, limit: int,
    buckets: Words, records: Records, mask: int, shift: int, kept: Words,
) -> int:  # fmt: skip
    """Set `kept` to those of the probing rows that have any match at all; returns how many."""
    found = 0
    for row in range(len(keys)):
        fetch_ahead(keys, row, buckets, records, mask, shift)
        candidate = buckets[bucket_of(keys[row], shift)]
        while candidate >= tail:
            place = candidate & mask
            if (
                records[place, KEY] == keys[row]
                and candidate < limit
                and records[place, START] < ends[row]
                and records[place, END] > starts[row]
            ):
                kept[found] = row
                found += 1
                break
            candidate = records[place, NEXT]
    return found


@compiled
def probe_next(
    keys: Words, starts: Words, ends: Words, resumes: Words, tail: int, limit: int,
    buckets: Words, records: Records, mask: int, shift: int,
    positions: Words, ids: Words, overlap_starts: Words, overlap_ends: Words,
) -> int:  # fmt: skip
    """As `probe`, but one match at most for each probing row, and then where it goes on: an id, or DONE."""
    found = 0
    for row in range(len(keys)):
        fetch_ahead(keys, row, buckets, records, mask, shift)
        key, start, end = keys[row], starts[row], ends[row]
        candidate = buckets[bucket_of(key, shift)] if resumes[row] == NOBODY else resumes[row]
        resumes[row] = DONE
        while candidate >= tail:
            place = candidate & mask
            following = records[place, NEXT]
            if (
                records[place, KEY] == key
                and candidate < limit
                and records[place, START] < end
                and records[place, END] > start
            ):
                positions[found] = row
                ids[found] = candidate
                overlap_starts[found] = max(start, records[place, START])
                overlap_ends[found] = min(end, records[place, END])
                found += 1
                resumes[row] = following if following >= tail else DONE
                break
            candidate = following
    return found


@compiled
def scan_next(
    starts: Words, ends: Words, resumes: Words, tail: int, limit: int,
    window_starts: Words, window_ends: Words, mask: int,
    positions: Words, ids: Words, overlap_starts: Words, overlap_ends: Words,
) -> int:  # fmt: skip
    """As `probe_next`, with no key: every row of the window that is alive together with the probing one."""
    found = 0
    for row in range(len(starts)):
        start, end = starts[row], ends[row]
        first = tail if resumes[row] == NOBODY else resumes[row]
        resumes[row] = DONE
        for candidate in range(first, limit):
            place = candidate & mask
            if window_starts[place] < end and window_ends[place] > start:
                positions[found] = row
                ids[found] = candidate
                overlap_starts[found] = max(start, window_starts[place])
                overlap_ends[found] = min(end, window_ends[place])
                found += 1
                resumes[row] = candidate + 1
                break
    return found


@compiled
def set_ends(ids: Words, ends: Words, window_ends: Words, mask: int) -> None:
    """Give rows of a window the end of life that has become known."""
    for row in range(len(ids)):
        window_ends[ids[row] & mask] = ends[row]


@compiled
def first_alive(window_ends: Words, mask: int, tail: int, head: int, horizon: int) -> int:
    """The first id from `tail` on whose row is still alive at `horizon`."""
    while tail < head and window_ends[tail & mask] <= horizon:
        tail += 1
    return tail


@compiled
def alive(window_ends: Words, mask: int, tail: int, last: int, horizon: int) -> Words:
    """The ids from `tail` up to `last` whose rows are still alive at `horizon`."""
    ids, found = np.empty(last - tail, np.int64), 0
    for candidate in range(tail, last):
        ids[found] = candidate
        found += window_ends[candidate & mask] > horizon
    return ids[:found]


@compiled
def bucket_order(keys: Words, bits: int) -> Words:
    """The order that brings rows of nearby buckets together, otherwise as they came (a counting sort).

    Rows stored and probed in this order touch the index from one end to the other instead of here and there.
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
