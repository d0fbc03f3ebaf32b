"""The declaration of a stream: its name, schema, event-time column and lateness."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from braid.errors import StreamError, did_you_mean


@dataclass(frozen=True, slots=True)
class Branch:
    """One of the streams that another stream unites: its name, and how late its rows may be."""

    name: str
    lateness: int


@dataclass(frozen=True, slots=True)
class Stream:
    """A named stream of rows with an event-time column.

    `lateness` is how many microseconds a row's event time may lie behind the newest event time seen. A stream that
    unites others has `branches`: each is as late as it is, and the stream is as far as the slowest of them.
    """

    name: str
    schema: pa.Schema
    time: str
    lateness: int = 0
    branches: tuple[Branch, ...] = ()

    def __post_init__(self) -> None:
        if not (isinstance(self.name, str) and self.name):
            raise StreamError(f"a stream needs a name, not {self.name!r}")
        if not isinstance(self.time, str):
            raise StreamError(f"the event time of stream '{self.name}' is the name of a column, not {self.time!r}")
        if not isinstance(self.schema, pa.Schema):
            raise StreamError(f"the columns of stream '{self.name}' are an Arrow schema, not {self.schema!r:.80}")
        names = list(self.schema.names)
        duplicate = next((name for name in names if names.count(name) > 1), None)
        if duplicate is not None:
            raise StreamError(f"stream '{self.name}' has two columns called '{duplicate}'; rename one of them")
        if self.time not in names:
            raise StreamError(
                f"stream '{self.name}' has no event-time column '{self.time}'; "
                f"name it with time=..; {did_you_mean(self.time, names)}"
            )
        time_type = self.schema.field(self.time).type
        if not pa.types.is_timestamp(time_type):
            raise StreamError(
                f"the event-time column '{self.time}' of stream '{self.name}' is {time_type}, not a timestamp; "
                "convert it first: TIMESTAMP in Spark, pa.timestamp('us') in Arrow"
            )
        if isinstance(self.lateness, bool) or not isinstance(self.lateness, int) or self.lateness < 0:
            raise StreamError(
                f"the lateness of stream '{self.name}' must be 0 or more whole microseconds, not {self.lateness}"
            )
