"""The streams of the demo: each is a directory with one file for every minute of the airline's day."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from braid.errors import BraidError
from braid.workloads.airline_day import Airline

MINUTE = 2.0
"""Seconds that one minute of the airline's day takes in the demo."""

LATENESS = "1 minute"


class Feed:
    """Writes the rows of one minute after the other. `minutes` has what was written."""

    def __init__(self, directory: Path, airline: Airline) -> None:
        self._directory = directory
        self._airline = airline
        self.minutes: list[dict[str, pa.Table]] = []
        self.sent = 0

    def send(self) -> None:
        """Write the next minute of every stream. Spark skips names that begin with a dot and sees only whole files."""
        tables = self._airline.minute(self.sent)
        for stream, table in tables.items():
            directory = self._directory / stream
            directory.mkdir(parents=True, exist_ok=True)
            unfinished = directory / f".{self.sent:06d}"
            pq.write_table(table, unfinished)
            unfinished.rename(directory / f"{self.sent:06d}.parquet")
        self.minutes.append(tables)
        self.sent += 1

    def keep_up(self, elapsed: float, forget: bool) -> None:
        """Send the next minute if it is time. `forget` drops all but the last one, for a demo that never ends."""
        if elapsed >= self.sent * MINUTE:
            self.send()
            if forget:
                del self.minutes[:-1]

    def dataframes(self, spark: Any) -> Iterator[tuple[str, Any]]:
        """Each stream by name, as a streaming DataFrame of this Spark."""
        for stream in self.minutes[0]:
            path = str(self._directory / stream)
            yield stream, spark.readStream.schema(spark.read.parquet(path).schema).parquet(path)

    def tables(self) -> dict[str, pa.Table]:
        """All rows of each stream."""
        return concatenated(self.minutes)


def concatenated(minutes: list[dict[str, pa.Table]]) -> dict[str, pa.Table]:
    """Each stream as one table."""
    if not minutes:
        raise BraidError("the demo has no input; give a larger number of seconds")
    return {stream: pa.concat_tables([tables[stream] for tables in minutes]) for stream in minutes[0]}
