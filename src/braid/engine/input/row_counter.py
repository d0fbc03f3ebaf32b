"""Windows that count rows: a row ends when the n-th row after it comes, in its stream or its partition."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from braid.engine.arrays.columns import Flags
from braid.engine.arrays.jit import Words
from braid.engine.keys.ordering import number_values
from braid.engine.window.chain import NOBODY
from braid.engine.window.window_state import Renaming
from braid.model.window import FOREVER, Rows


@dataclass(frozen=True, slots=True)
class Closing:
    """Ends of new rows (FOREVER for those still open), and ids and ends of earlier rows that they close."""

    new_ends: Words
    older_ids: Words
    older_ends: Words
    codes: Words
    still_open: Flags


class RowCounter:
    """Knows which rows of one stream are still open, and closes them as others come in event-time order."""

    def __init__(self, window: Rows) -> None:
        self._count = window.count
        self._partition_by = window.partition_by
        self._codes_of_values: list[dict[object, int]] = [{} for _ in window.partition_by]
        self._codes_of_keys: dict[tuple[int, ...], int] = {}
        self._open_ids = np.empty(0, np.int64)
        self._open_codes = np.empty(0, np.int64)

    def close(self, rows: pa.RecordBatch, times: Words) -> Closing:
        """What new rows, in event-time order and behind all earlier ones, bring to an end.

        `enter` must follow, with the ids the new rows got.
        """
        codes = self._partition_codes(rows)
        touched = np.isin(self._open_codes, codes)
        older = self._open_ids[touched]
        all_codes = np.concatenate([self._open_codes[touched], codes])
        ends = np.full(len(all_codes), FOREVER)
        order = np.argsort(all_codes, kind="stable")
        closed, closing = order[: -self._count], order[self._count :]
        together = all_codes[closed] == all_codes[closing]
        # Of each partition no more than `count` earlier rows are open, so what closes a row is always a new one.
        ends[closed[together]] = times[closing[together] - len(older)]
        older_ends, new_ends = ends[: len(older)], ends[len(older) :]
        known = older_ends != FOREVER
        still_open = np.ones(len(self._open_ids), bool)
        still_open[np.flatnonzero(touched)[known]] = False
        kept = known & (older != NOBODY)
        return Closing(new_ends, older[kept], older_ends[kept], codes, still_open)

    def enter(self, closing: Closing, ids: Words) -> None:
        """The new rows have got these ids, NOBODY for those that a selection has left out."""
        opened, still_open = closing.new_ends == FOREVER, closing.still_open
        self._open_ids = np.concatenate([self._open_ids[still_open], ids[opened]])
        self._open_codes = np.concatenate([self._open_codes[still_open], closing.codes[opened]])

    def rename(self, renaming: Renaming) -> None:
        """The window has given its rows new ids."""
        present = self._open_ids != NOBODY
        self._open_ids[present] = renaming(self._open_ids[present])

    def _partition_codes(self, rows: pa.RecordBatch) -> Words:
        """A number for the partition of each row; rows whose keys are null form one as well."""
        if not self._partition_by:
            return np.zeros(rows.num_rows, np.int64)
        parts = [
            number_values(rows.column(name), codes)
            for name, codes in zip(self._partition_by, self._codes_of_values, strict=True)
        ]
        if len(parts) == 1:
            return parts[0]
        keys, inverse = np.unique(np.stack(parts, axis=1), axis=0, return_inverse=True)
        known = self._codes_of_keys
        codes = [known.setdefault(tuple(key), len(known)) for key in keys.tolist()]
        return np.array(codes, np.int64)[inverse.reshape(-1)]
