"""Windows that count rows: a row ends when the n-th row after it comes, in its stream or in its partition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from braid.engine.arrays.columns import Flags
from braid.engine.arrays.jit import Words
from braid.engine.keys.ordering import number_values
from braid.engine.window.chain import NO_ROW
from braid.engine.window.window_state import Renaming
from braid.model.window import FOREVER


@dataclass(frozen=True, slots=True)
class Closing:
    """The effect of new rows: their own ends (FOREVER for rows still open), and the older rows that they close.

    `codes` are the partitions of the new rows. `still_open` marks the rows that were open before and still are.
    """

    new_ends: Words
    older_ids: Words
    older_ends: Words
    codes: Words
    still_open: Flags


class RowCounter:
    """Knows which rows of one stream are still open, and closes them as later rows come in event-time order."""

    def __init__(self, row_limit: int, partition_by: Sequence[str]) -> None:
        self._count = row_limit
        self._partition_by = partition_by
        self._codes_of_values: list[dict[object, int]] = [{} for _ in partition_by]
        self._codes_of_keys: dict[tuple[int, ...], int] = {}
        self._open_ids = np.empty(0, np.int64)
        self._open_codes = np.empty(0, np.int64)

    def close(self, rows: pa.RecordBatch, times: Words) -> Closing:
        """The rows that new rows close. The new rows are in event-time order and come after all earlier ones.

        `enter` must follow, with the ids of the new rows.
        """
        codes = self.partition_codes(rows)
        touched = np.isin(self._open_codes, codes)
        older = self._open_ids[touched]
        all_codes = np.concatenate([self._open_codes[touched], codes])
        ends = np.full(len(all_codes), FOREVER)
        order = np.argsort(all_codes, kind="stable")
        closed, closing = order[: -self._count], order[self._count :]
        same_partition = all_codes[closed] == all_codes[closing]
        # At most `count` earlier rows of a partition are open, so the row that closes another is always a new one.
        ends[closed[same_partition]] = times[closing[same_partition] - len(older)]
        older_ends, new_ends = ends[: len(older)], ends[len(older) :]
        has_end = older_ends != FOREVER
        still_open = np.ones(len(self._open_ids), bool)
        still_open[np.flatnonzero(touched)[has_end]] = False
        to_close = has_end & (older != NO_ROW)
        return Closing(new_ends, older[to_close], older_ends[to_close], codes, still_open)

    def enter(self, closing: Closing, ids: Words) -> None:
        """The new rows have got these ids; NO_ROW for rows that a selection kept out of the window."""
        opened, still_open = closing.new_ends == FOREVER, closing.still_open
        self._open_ids = np.concatenate([self._open_ids[still_open], ids[opened]])
        self._open_codes = np.concatenate([self._open_codes[still_open], closing.codes[opened]])

    def rename(self, renaming: Renaming) -> None:
        """The window has given its rows new ids."""
        present = self._open_ids != NO_ROW
        self._open_ids[present] = renaming(self._open_ids[present])

    def partition_codes(self, rows: pa.RecordBatch) -> Words:
        """A number for the partition of each row; rows with null keys form a partition as well."""
        if not self._partition_by:
            return np.zeros(rows.num_rows, np.int64)
        columns = [
            number_values(rows.column(name), codes)
            for name, codes in zip(self._partition_by, self._codes_of_values, strict=True)
        ]
        if len(columns) == 1:
            return columns[0]
        keys, inverse = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)
        known = self._codes_of_keys
        codes = [known.setdefault(tuple(key), len(known)) for key in keys.tolist()]
        return np.array(codes, np.int64)[inverse.reshape(-1)]
