"""The streams of `braid.run`: Arrow data that is read only if the query names it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias, TypeVar

import pyarrow as pa

from braid.errors import StreamError, did_you_mean
from braid.model.duration import Duration
from braid.model.stream import Stream
from braid.runtime.arrival import Arrival

Setting = TypeVar("Setting")
Data: TypeAlias = "pa.Table | Iterable[pa.RecordBatch]"


class LocalStreams(Mapping[str, Stream]):
    """Declared streams by name. A stream is read when it is asked for, so streams that no query names never are.

    `time` and `lateness` hold for all streams, or map the names of streams to their own.
    """

    def __init__(
        self,
        data: Mapping[str, Data],
        time: str | Mapping[str, str],
        lateness: Duration | Mapping[str, Duration],
    ) -> None:
        if not isinstance(data, Mapping):
            raise StreamError(f"streams maps names to Arrow tables; {type(data).__name__} does not")
        for setting in (time, lateness):
            for name in setting if isinstance(setting, Mapping) else ():
                if name not in data:
                    raise StreamError(f"there is no stream '{name}' to have a setting; {did_you_mean(str(name), data)}")
        self._data = data
        self._time = time
        self._lateness = lateness
        self._read: dict[str, Arrival] = {}

    @property
    def read(self) -> list[Arrival]:
        """The streams that were asked for, in that order."""
        return list(self._read.values())

    def original_schema(self, name: str) -> pa.Schema:
        """The schema of a stream as it was given, before its columns were laid out for the engine."""
        return self._read[name].original_schema

    def __getitem__(self, name: str) -> Stream:
        if name not in self._read:
            no_lateness: Duration = "0 seconds"
            time = _setting(self._time, name, "ts")
            lateness = _setting(self._lateness, name, no_lateness)
            self._read[name] = Arrival(name, self._data[name], time, lateness)
        return self._read[name].stream

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def __len__(self) -> int:
        return len(self._data)


def _setting(setting: Setting | Mapping[str, Setting], name: str, default: Setting) -> Setting:
    return setting.get(name, default) if isinstance(setting, Mapping) else setting
