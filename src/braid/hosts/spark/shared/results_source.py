"""The results of a query over a network as a source of a streaming query, whichever generations give them.

An offset holds, for every channel of results, the last batch that was taken and the event time up to which no more
results will come from the channel. A plan change adds channels and ends others; each gives only the results of its
reign. The publisher of a channel cuts off results after its reign, this source those before it.

Spark loads this module in several short-lived Python processes, so it imports as little as possible.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, SimpleDataSourceStreamReader
from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

if TYPE_CHECKING:
    from braid.channels.channel import Channel

FORMAT = "braid_results"

RESULTS_DDL = "channel string, number bigint, since bigint, reached bigint"
"""A batch of which results from `since` on count, or the event time up to which all results are there."""

NO_BATCH = -1

FOREVER = (1 << 63) - 1

LATEST = 253_402_300_799_000_000
"""The last microsecond but one of the year 9999: Spark has no later timestamps."""

ASK_SECONDS = 0.1
"""How long the source goes on with the channels it knows before it asks again which there are."""

Row = tuple[str | None, int | None, int | None, int | None]

Offset = dict[str, list[int]]
"""For each channel the last batch, and up to which event time it leaves no results open."""


class ResultsSource(DataSource):
    """The source as Spark knows it.

    The option `channels` says as JSON where the channels are, `query` is the name of the query, `subscriber` is who
    reads the results, and `most_bytes` is how many bytes of a channel a micro-batch takes, though at least one batch.
    """

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return RESULTS_DDL

    def simpleStreamReader(self, schema: StructType) -> ResultsReader:  # noqa: N802
        options = self.options
        location = json.loads(options["channels"])
        return ResultsReader(location, options["query"], options["subscriber"], int(options["most_bytes"]))


class ResultsReader(SimpleDataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads the entries of channels with results behind an offset."""

    def __init__(self, location: dict[str, Any], query: str, subscriber: str, most_bytes: int) -> None:
        from braid.channels.kinds import channels_of

        self._all_channels = channels_of(location)
        self._query = query
        self._subscriber = subscriber
        self._most_bytes = most_bytes
        self._asked = float("-inf")
        self._reigns: dict[str, list[int]] = {}
        self._channels: dict[str, Channel] = {}

    def _ask(self) -> None:
        """Ask which channels there are, and from when until when each of them gives results."""
        if time.monotonic() < self._asked + ASK_SECONDS:
            return
        self._asked = time.monotonic()
        documents = self._all_channels.announced("results")
        if not documents.is_damaged(self._query):
            self._reigns = _reigns(documents.get(self._query, {"channels": {}}), self._query)
        elif not self._reigns:
            raise _damaged(self._query)
        for name in self._reigns:
            if name not in self._channels:
                self._channels[name] = self._all_channels.open(name)

    def initialOffset(self) -> Offset:  # noqa: N802
        return {}

    def read(self, start: Offset) -> tuple[Iterator[Row], Offset]:
        from braid.errors import ChannelError

        try:
            self._ask()
            end = self._end(start)
        except ChannelError:
            # A channel may have been removed since we asked: it was read to its end, and is not announced any more.
            self._asked = float("-inf")
            self._ask()
            end = self._end(start)
        return self.readBetweenOffsets(start, end), end

    def _end(self, start: Offset) -> Offset:
        """How far the channels have come."""
        end = {}
        for name, (since, until) in self._reigns.items():
            number, watermark = start.get(name, [NO_BATCH, -FOREVER])
            entries = self._channels[name].entries(number, self._most_bytes)
            if entries:
                number, watermark = entries[-1].number, max(watermark, entries[-1].watermark)
            end[name] = [number, FOREVER if watermark >= until else max(watermark, since)]
        return end

    def readBetweenOffsets(self, start: Offset, end: Offset) -> Iterator[Row]:  # noqa: N802
        self._ask()
        if start == end:
            return iter(())
        reached = min((watermark for _, watermark in end.values()), default=FOREVER)
        rows: list[Row] = [(None, None, None, reached if -LATEST <= reached <= LATEST else None)]
        for name, (upto, _) in end.items():
            behind = start[name][0] if name in start else NO_BATCH
            if upto > behind:
                since, _ = self._reigns[name]
                entries = self._channels[name].entries(behind)
                rows += [(name, entry.number, since, None) for entry in entries if entry.number <= upto]
        return iter(rows)

    def commit(self, end: Offset) -> None:
        # A channel that was read to its end is removed, and is not announced any more before that.
        self._asked = float("-inf")
        self._ask()
        for name, (number, _) in end.items():
            if name in self._reigns and number != NO_BATCH:
                self._channels[name].release(self._subscriber, number)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Do nothing: batches that come after the start of the run are read too.

        The method must exist, because without it Spark would take all batches of all channels in a single micro-batch.
        """


def _reigns(document: dict[str, Any], query: str) -> dict[str, list[int]]:
    """The channels with results that a document tells of."""
    channels = document.get("channels")
    if not isinstance(channels, dict):
        raise _damaged(query)
    return channels


def _damaged(query: str) -> Exception:
    from braid.errors import ChannelError

    return ChannelError(f"the document that tells where the results of query '{query}' are is damaged; restore it")
