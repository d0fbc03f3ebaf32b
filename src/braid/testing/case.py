"""A case: a query, its input and the options to run it with. Its repr can be pasted into a test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from braid.model.duration import duration_text
from braid.testing.encoding import gather_rows
from braid.testing.relation import microseconds


@dataclass(frozen=True)
class Case:
    """A query over streams whose rows are in order of arrival.

    `time` and `lateness` (in microseconds) map stream names, `plan` maps aliases. `batch_rows` is the number of rows of
    each stream in one batch; None for all rows in one batch.
    """

    text: str
    streams: Mapping[str, pa.Table]
    time: Mapping[str, str]
    lateness: Mapping[str, int]
    plan: Mapping[str, Sequence[str]] | None = None
    batch_rows: int | None = None

    @property
    def options(self) -> dict[str, Any]:
        """The arguments of `braid.run` besides the query and the streams."""
        lateness = {name: duration_text(length) for name, length in self.lateness.items()}
        return {"time": self.time, "lateness": lateness, "plan": self.plan, "batch_rows": self.batch_rows}

    def __repr__(self) -> str:
        streams = "".join(f"        {name!r}: {_table_code(rows)},\n" for name, rows in self.streams.items())
        return (
            f"Case(\n    text={self.text!r},\n    streams={{\n{streams}    }},\n"
            f"    time={dict(self.time)!r},\n    lateness={dict(self.lateness)!r},\n"
            f"    plan={self.plan!r},\n    batch_rows={self.batch_rows!r},\n)"
        )


def without_late_rows(case: Case) -> dict[str, pa.Table]:
    """The streams of a case without the rows that arrive too late.

    Batch i has the i-th `batch_rows` rows of each stream. A row is late if its time is more than the stream's lateness
    before the newest time of the earlier batches. If all rows are in one batch, none is late.
    """
    return {
        name: gather_rows(rows, _rows_in_time(rows, case.time[name], case.lateness[name], case.batch_rows))
        for name, rows in case.streams.items()
    }


def _rows_in_time(rows: pa.Table, time: str, lateness: int, batch_rows: int | None) -> pa.Array:
    """The numbers of the rows that are not late. A row without a time is never late."""
    times: list[int | None] = microseconds(rows.column(time)).to_pylist()
    batch_length = batch_rows or max(len(times), 1)
    in_time: list[int] = []
    newest: int | None = None
    for first in range(0, len(times), batch_length):
        batch = dict(enumerate(times[first : first + batch_length], first))
        for row, row_time in batch.items():
            if row_time is None or newest is None or row_time >= newest - lateness:
                in_time.append(row)
        known_times = [row_time for row_time in (newest, *batch.values()) if row_time is not None]
        newest = max(known_times, default=None)
    return pa.array(in_time, pa.int64())


def _table_code(rows: pa.Table) -> str:
    """The Python expression that makes a table."""
    columns = (f"\n            {field.name!r}: {_column_code(rows.column(field.name))}," for field in rows.schema)
    return f"pa.table({{{''.join(columns)}\n        }})"


def _column_code(column: pa.ChunkedArray) -> str:
    kind = column.type
    if pa.types.is_dictionary(kind):
        return f"{_column_code(column.cast(kind.value_type))}.dictionary_encode().cast({_type_code(kind)})"
    if pa.types.is_temporal(kind):
        # As integers: not every time has a Python value.
        integer = pa.int32() if kind.bit_width == 32 else pa.int64()
        return f"pa.array({column.combine_chunks().view(integer).to_pylist()!r}, {_type_code(kind)})"
    values = repr(column.to_pylist())
    return f"pa.array({_with_special_floats(values)}, {_type_code(kind)})"


def _with_special_floats(values: str) -> str:
    """Replace the bare names nan and inf, which `repr` writes but Python does not know, outside of quoted strings."""
    parts = values.split("'")
    for position in range(0, len(parts), 2):
        parts[position] = parts[position].replace("nan", "float('nan')").replace("inf", "float('inf')")
    return "'".join(parts)


def _type_code(kind: pa.DataType) -> str:
    """The Python expression that makes a type."""
    if pa.types.is_dictionary(kind):
        return f"pa.dictionary({_type_code(kind.index_type)}, {_type_code(kind.value_type)})"
    if pa.types.is_timestamp(kind):
        return f"pa.timestamp({kind.unit!r}, {kind.tz!r})"
    if pa.types.is_time(kind) or pa.types.is_duration(kind):
        return f"pa.{type(kind).__name__.removesuffix('Type').lower()}({kind.unit!r})"
    if pa.types.is_decimal(kind):
        return f"pa.decimal{kind.bit_width}({kind.precision}, {kind.scale})"
    if pa.types.is_fixed_size_list(kind):
        return f"pa.list_({_type_code(kind.value_type)}, {kind.list_size})"
    if pa.types.is_list(kind):
        return f"pa.list_({_type_code(kind.value_type)})"
    if pa.types.is_map(kind):
        return f"pa.map_({_type_code(kind.key_type)}, {_type_code(kind.item_type)})"
    if pa.types.is_struct(kind):
        return f"pa.struct({{{', '.join(f'{field.name!r}: {_type_code(field.type)}' for field in kind)}}})"
    return f"pa.{ALIASES.get(str(kind), str(kind))}()"


ALIASES = {
    "bool": "bool_",
    "double": "float64",
    "float": "float32",
    "halffloat": "float16",
    "date32[day]": "date32",
}
"""Type names that differ from the name of the function that makes the type."""
