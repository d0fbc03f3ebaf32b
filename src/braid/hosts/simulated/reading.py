"""Who reads the results of a query in a simulation: each plan counts as far as its reign goes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from braid.channels.batch import NONE
from braid.channels.memory import MemoryChannel
from braid.engine.input.lifetime import event_times
from braid.engine.output.groups import group
from braid.errors import InvariantError
from braid.model.output import EVENT_TIME_COLUMN
from braid.model.query import Query
from braid.model.window import FOREVER
from braid.runtime.sites.deployed import Deployed
from braid.runtime.sites.generation import Generation, Reign
from braid.runtime.sites.site import results_from

SECOND = 1_000_000


class Reader:
    """Reads the results of a query as they come. `first` is the event time at which virtual time begins.

    `note` is told at which site how many results have come.
    """

    def __init__(
        self,
        deployed: Deployed,
        channels: Mapping[str, MemoryChannel],
        first: int,
        note: Callable[[str, str], None],
    ) -> None:
        self.deployed = deployed
        self._channels = channels
        self._first = first
        self._note = note
        self._read: dict[str, int] = {}
        """The last batch that was read of each channel with results."""
        self._reached = -FOREVER
        """Up to which event time readers were told that all results are there."""
        self._results: list[pa.RecordBatch] = []
        self._latencies: list[NDArray[np.float64]] = []

    def read(self, now: float) -> None:
        """Take the results that are there of each generation, as far as it answers for them."""
        reached = []
        for generation in self.deployed.generations:
            reign = generation.reign
            if reign is None:
                continue
            for site, channels in generation.results.items():
                for channel in channels:
                    self._read_channel(site, channel, reign, now)
                    reached.append(reign.reached(self._watermark(channel)))
        self._reached = max(self._reached, min(reached))

    def answered(self, generation: Generation) -> tuple[int, bool]:
        """How far all results of a generation have come, and whether all of them were read."""
        channels = [channel for published in generation.results.values() for channel in published]
        is_read = all(not self._channels[channel].entries(self._read.get(channel, NONE)) for channel in channels)
        return min(map(self._watermark, channels)), is_read

    def _watermark(self, channel: str) -> int:
        last = self._channels[channel].last()
        return -FOREVER if last is None else last.watermark

    def _read_channel(self, site: str, channel: str, reign: Reign, now: float) -> None:
        count = 0
        for entry in self._channels[channel].entries(self._read.get(channel, NONE)):
            self._read[channel] = entry.number
            for segment in self._channels[channel].read(entry.number).segments:
                rows = results_from(reign.since, segment.rows, EVENT_TIME_COLUMN)
                moments = event_times(rows.column(EVENT_TIME_COLUMN))
                if (moments >= reign.until).any():
                    raise InvariantError(f"{channel} gave a result from {reign.until} on, where another plan answers")
                if (moments < self._reached).any():
                    raise InvariantError(f"{channel} gave a result before {self._reached}, where all were there")
                count += rows.num_rows
                self._results.append(rows)
                # Rows of a sliding window start at the next slide: a result may be there before its event time.
                self._latencies.append(np.maximum(now - (moments - self._first) / SECOND, 0.0))
        if count:
            self._note(site, f"{count:,} results")

    @property
    def latencies(self) -> NDArray[np.float64]:
        """The seconds from the event time of each result until it was there."""
        return np.concatenate(self._latencies) if self._latencies else np.empty(0)

    def results(self, query: Query, schema: pa.Schema) -> pa.Table:
        """All results."""
        table = pa.Table.from_batches(self._results, schema)
        if query.grouping is not None:
            return group(query.grouping, table, EVENT_TIME_COLUMN)
        return table.drop_columns([EVENT_TIME_COLUMN])
