"""Rows of one side of a fixed join that may still find partners, and which of them have found one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from braid.engine.arrays.columns import Flags, State
from braid.engine.arrays.jit import Words
from braid.engine.output.waiting import WaitingRows, concatenated, moments, timestamps
from braid.engine.segment import no_rows
from braid.model.window import FOREVER

UNMATCHED = FOREVER
"""The time of the first match of a row that has none."""


@dataclass(slots=True)
class _Chunk:
    """Rows with ascending ids. `first_match` is the time of the earliest match. Only `open` rows are pending."""

    rows: pa.RecordBatch
    ids: Words
    starts: Words
    ends: Words
    first_match: Words
    open: Flags

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, chosen: Flags) -> _Chunk:
        rows = self.rows.filter(pa.array(chosen))
        ids, starts, ends, first_match = (
            array[chosen] for array in (self.ids, self.starts, self.ends, self.first_match)
        )
        return _Chunk(rows, ids, starts, ends, first_match, self.open[chosen])


Choose = Callable[[_Chunk], Flags]
"""Chooses rows of a chunk."""


class Pending:
    """The pending rows of one side.

    `row`, `start` and `end` name columns of `schema`: the id of a row, and its lifetime. Ids ascend. The log of rows
    has one more column, for their first matches. The names of the logs begin with `name`.
    """

    def __init__(self, name: str, schema: pa.Schema, row: str, start: str, end: str) -> None:
        self.schema = schema
        self._name = name
        self._row, self._start, self._end = row, start, end
        self._first_match = free_name("first match", schema.names)
        self._log_schema = schema.append(pa.field(self._first_match, pa.int64()))
        self._marks_schema = pa.schema(
            [schema.field(row), schema.field(end), self._log_schema.field(self._first_match)]
        )
        self._chunks: list[_Chunk] = []
        self._next_id = 0
        self._logged = 0
        """Rows with ids below this have been returned by `newly_waiting`."""
        self._marks: list[pa.RecordBatch] = []
        """First matches of logged rows that are not logged yet."""

    @property
    def logs(self) -> Mapping[str, str]:
        """The names of the two logs (rows, and first matches found later), and the column `until` of each."""
        return {f"{self._name} rows": self._end, f"{self._name} matches": self._end}

    def __len__(self) -> int:
        return sum(int(chunk.open.sum()) for chunk in self._chunks)

    @property
    def earliest_start(self) -> int:
        """The earliest start of a pending row; FOREVER if there is none."""
        return min((int(chunk.starts[chunk.open].min(initial=FOREVER)) for chunk in self._chunks), default=FOREVER)

    def next_ids(self, count: int) -> Words:
        """Ids for `count` new rows."""
        first = self._next_id
        self._next_id += count
        return np.arange(first, self._next_id)

    def add(self, rows: pa.RecordBatch, first_match: Words | None = None) -> None:
        """Add rows whose ids are greater than those of all pending rows."""
        if not rows.num_rows:
            return
        ids: Words = rows.column(self._row).to_numpy()
        unmatched = np.full(len(ids), UNMATCHED)
        chunk = _Chunk(
            rows,
            ids,
            moments(rows, self._start),
            moments(rows, self._end),
            unmatched if first_match is None else first_match,
            np.ones(len(ids), np.bool_),
        )
        self._chunks.append(chunk)
        # Chunks grow like those of a log-structured store, so that there are few and a row is rarely copied.
        while len(self._chunks) > 1 and len(self._chunks[-2]) <= 2 * len(self._chunks[-1]):
            self._chunks[-2:] = [self._merged(self._chunks[-2:])]

    def mark(self, ids: Words, times: Words) -> None:
        """Record matches of rows at these times. An id may occur several times; rows that are gone are ignored."""
        for chunk in self._chunks:
            inside = (ids >= chunk.ids[0]) & (ids <= chunk.ids[-1])
            if not inside.any():
                continue
            positions = np.searchsorted(chunk.ids, ids[inside])
            known = chunk.ids[positions] == ids[inside]
            earliest = chunk.first_match.copy()
            np.minimum.at(earliest, positions[known], times[inside][known])
            changed = (earliest < chunk.first_match) & chunk.open & (chunk.ids < self._logged)
            chunk.first_match = earliest
            if changed.any():
                columns = [pa.array(chunk.ids[changed]), timestamps(chunk.ends[changed]), pa.array(earliest[changed])]
                self._marks.append(pa.RecordBatch.from_arrays(columns, schema=self._marks_schema))

    def take_matched(self, until: int) -> tuple[pa.RecordBatch, Words]:
        """Remove and return the rows whose first match is at or before `until`, and the times of these matches."""
        return self._take(lambda chunk: (chunk.first_match <= until) & (chunk.first_match < UNMATCHED))

    def take_ended(self, until: int) -> tuple[pa.RecordBatch, Words]:
        """Remove and return the rows that end at or before `until`, and the times of their first matches."""
        return self._take(lambda chunk: chunk.ends <= until)

    def _take(self, choose: Choose) -> tuple[pa.RecordBatch, Words]:
        taken: list[_Chunk] = []
        remaining: list[_Chunk] = []
        for chunk in self._chunks:
            chosen = choose(chunk) & chunk.open
            if chosen.any():
                taken.append(chunk.take(chosen))
                chunk.open = chunk.open & ~chosen
            still_open = int(chunk.open.sum())
            if still_open:
                # Rows that are gone are removed from a chunk once they are the larger part of it.
                remaining.append(chunk if 2 * still_open > len(chunk) else chunk.take(chunk.open))
        self._chunks = remaining
        if not taken:
            return no_rows(self.schema), np.empty(0, np.int64)
        rows = concatenated([chunk.rows for chunk in taken], self.schema)
        return rows, np.concatenate([chunk.first_match for chunk in taken])

    def newly_waiting(self, needed_since: int) -> tuple[WaitingRows, WaitingRows]:
        """What to log: rows that are new since the last call, and new first matches of rows that were logged before."""
        new = [chunk.take(chunk.open & (chunk.ids >= self._logged)) for chunk in self._chunks]
        rows = concatenated([self._logged_rows(chunk) for chunk in new], self._log_schema)
        marks = concatenated(self._marks, self._marks_schema)
        self._marks = []
        self._logged = self._next_id
        rows_name, marks_name = self.logs
        return (
            WaitingRows(rows_name, rows, self._end, needed_since),
            WaitingRows(marks_name, marks, self._end, needed_since),
        )

    def restore(self, logs: Mapping[str, Iterable[pa.RecordBatch]]) -> None:
        """Take back what was logged."""
        rows, marks = (logs.get(name, ()) for name in self.logs)
        for batch in rows:
            self._see_ids(batch)
            self.add(batch.select(self.schema.names), batch.column(self._first_match).to_numpy().copy())
        for batch in marks:
            self._see_ids(batch)
            self.mark(self.ids(batch), batch.column(self._first_match).to_numpy())
        self._logged = self._next_id

    def ids(self, logged: pa.RecordBatch) -> Words:
        """The ids in rows of either log."""
        ids: Words = logged.column(self._row).to_numpy()
        return ids

    def with_ids(self, logged: pa.RecordBatch, ids: Words) -> pa.RecordBatch:
        """Rows of either log with other ids."""
        return logged.set_column(logged.schema.get_field_index(self._row), self._row, pa.array(ids))

    def folded(self, logs: Mapping[str, Iterable[pa.RecordBatch]]) -> pa.RecordBatch:
        """The content of both logs as one batch for the log of rows, with new ids from 0 on.

        The rows can be in any order, and there can be matches of other rows.
        """
        rows_name, matches_name = self.logs
        rows = concatenated(list(logs[rows_name]), self._log_schema)
        rows = rows.take(pa.array(np.argsort(self.ids(rows))))
        self.restore({rows_name: [rows], matches_name: logs[matches_name]})
        folded = concatenated([self._logged_rows(chunk) for chunk in self._chunks], self._log_schema)
        return self.with_ids(folded, np.arange(folded.num_rows))

    def rows(self) -> pa.RecordBatch:
        """All pending rows."""
        return concatenated([chunk.rows.filter(pa.array(chunk.open)) for chunk in self._chunks], self.schema)

    def state(self) -> State:
        everything = [chunk.take(chunk.open) for chunk in self._chunks]
        rows = concatenated([self._logged_rows(chunk) for chunk in everything], self._log_schema)
        columns = list(rows.columns) if rows.num_rows else []
        return {"rows": columns, "next_id": self._next_id, "logged": self._logged}

    def load(self, state: State) -> None:
        self._chunks = []
        if state["rows"]:
            rows = pa.RecordBatch.from_arrays(state["rows"], schema=self._log_schema)
            self.add(rows.select(self.schema.names), rows.column(self._first_match).to_numpy().copy())
        self._next_id, self._logged = state["next_id"], state["logged"]

    def _see_ids(self, batch: pa.RecordBatch) -> None:
        """Never use an id of the log again: a match in the log would count for the new row."""
        if batch.num_rows:
            self._next_id = max(self._next_id, int(self.ids(batch).max()) + 1)

    def _logged_rows(self, chunk: _Chunk) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays([*chunk.rows.columns, pa.array(chunk.first_match)], schema=self._log_schema)

    def _merged(self, chunks: list[_Chunk]) -> _Chunk:
        open_chunks = [chunk.take(chunk.open) for chunk in chunks]
        arrays = (
            np.concatenate([getattr(chunk, name) for chunk in open_chunks])
            for name in ("ids", "starts", "ends", "first_match", "open")
        )
        return _Chunk(concatenated([chunk.rows for chunk in open_chunks], self.schema), *arrays)


def free_name(wanted: str, names: list[str]) -> str:
    """A name for one more column, beside those that have these names."""
    while wanted in names:
        wanted += "_"
    return wanted
