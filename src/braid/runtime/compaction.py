"""Which rows of a window that counts rows are still needed: those that later rows of their partition have not ended."""

from __future__ import annotations

import numpy as np

from braid.engine.arrays.columns import Flags
from braid.engine.arrays.jit import Words

FEWEST_COMPACTED = 1_000
"""Fewer rows than this are not worth compacting."""

GROWTH = 2
"""A stream is compacted once it has this many times the rows that were alive the last time.

So the store holds at most about twice the live rows, and a row is read again only a few times.
"""


def is_worth_compacting(rows: int, alive_last_time: int) -> bool:
    return rows >= GROWTH * max(alive_last_time, FEWEST_COMPACTED // GROWTH)


def alive_rows(times: Words, partitions: Words, row_limit: int, horizon: int) -> Flags:
    """Marks the rows that are alive at `horizon` or later, given the event times and partitions of all rows.

    A row has ended if `row_limit` rows of its partition come after it and start by the horizon. Among rows of the same
    time the values of all columns decide which comes first; here only rows of a later time count. So of some rows it
    is not noticed that they have ended, until more rows come.
    """
    order = np.lexsort((times, partitions))
    times, partitions = times[order], partitions[order]
    is_last = np.ones(len(order), bool)  # of the rows of its partition and time
    is_last[:-1] = (np.diff(partitions) != 0) | (np.diff(times) != 0)
    first_later = np.flatnonzero(is_last)[np.cumsum(is_last) - is_last] + 1
    ending = first_later + row_limit - 1
    alive = np.ones(len(order), bool)
    rows = np.flatnonzero(ending < len(order))
    ended_by = ending[rows]
    ended = (partitions[ended_by] == partitions[rows]) & (times[ended_by] <= horizon)
    alive[order[rows[ended]]] = False
    return alive
