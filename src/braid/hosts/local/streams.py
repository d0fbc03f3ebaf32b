"""The streams and tables of `braid.run`: Arrow data that is read only if the query names it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias, TypeVar

import pyarrow as pa

from braid.errors import StreamError, did_you_mean
from braid.model.duration import Duration
from braid.model.stream import Stream
from braid.model.table import Table
from braid.runtime.arrival import Arrival, read_table

Setting = TypeVar("Setting")
Data: TypeAlias = "pa.Table | Iterable[pa.RecordBatch]"


class LocalStreams(Mapping[str, Stream | Table]):
    """Declared streams and tables by name. They are read when they are asked for: those that no query names never are.

    `time` and `lateness` hold for all streams, or map the names of streams to their own.
    """

    def __init__(
        self,
        data: Mapping[str, Data],
        time: str | Mapping[str, str],
        lateness: Duration | Mapping[str, Duration],
        tables: Mapping[str, Data] | None = None,
    ) -> None:
        if not isinstance(data, Mapping):
            raise StreamError(f"streams must map names to Arrow tables, not {type(data).__name__}")
        if not isinstance(tables, Mapping | None):
            raise StreamError(f"tables must map names to Arrow tables, not {type(tables).__name__}")
        self._table_data = tables or {}
        both = next((name for name in self._table_data if name in data), None)
        if both is not None:
            raise StreamError(f"'{both}' is a stream and a table; give it once")
        for setting, values in {"time": time, "lateness": lateness}.items():
            for name in values if isinstance(values, Mapping) else ():
                if name not in data:
                    problem = f"{setting} names stream '{name}', which is not among the streams"
                    raise StreamError(f"{problem}; {did_you_mean(str(name), data)}")
        self._data = data
        self._time = time
        self._lateness = lateness
        self._read: dict[str, Arrival] = {}
        self.tables: dict[str, pa.RecordBatch] = {}
        """The rows of the tables that were asked for."""
        self._table_schemas: dict[str, pa.Schema] = {}

    @property
    def read(self) -> list[Arrival]:
        """The streams that were asked for, in that order."""
        return list(self._read.values())

    def original_schema(self, name: str) -> pa.Schema:
        """The schema of a stream or table as it was given, before its columns were laid out for the engine."""
        return self._table_schemas[name] if name in self._table_schemas else self._read[name].original_schema

    def __getitem__(self, name: str) -> Stream | Table:
        if name in self._table_data:
            if name not in self.tables:
                self._table_schemas[name], self.tables[name] = read_table(name, self._table_data[name])
            return Table(name, self.tables[name].schema)
        if name not in self._read:
            no_lateness: Duration = "0 seconds"
            time = _setting(self._time, name, "ts")
            lateness = _setting(self._lateness, name, no_lateness)
            self._read[name] = Arrival(name, self._data[name], time, lateness)
        return self._read[name].stream

    def __iter__(self) -> Iterator[str]:
        return iter((*self._data, *self._table_data))

    def __len__(self) -> int:
        return len(self._data) + len(self._table_data)


def _setting(setting: Setting | Mapping[str, Setting], name: str, default: Setting) -> Setting:
    return setting.get(name, default) if isinstance(setting, Mapping) else setting
