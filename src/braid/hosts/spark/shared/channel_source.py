"""Channels as a source of a streaming query.

An offset holds, for every channel, the last batch that was taken and the channel's watermark after it. A channel that
is new to a checkpoint begins with its oldest batch, so a query may read new channels at any time. Rows of the source
only refer to batches; the tasks that process these rows read the batches.

Spark loads this module in several short-lived Python processes, so it imports as little as possible.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, SimpleDataSourceStreamReader
from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

if TYPE_CHECKING:
    from braid.channels.channel import Channel

FORMAT = "braid_channels"

CHANNEL_DDL = "channel string, number bigint, watermarks string"
"""A batch, or the watermarks of all channels as JSON."""

NO_BATCH = -1

Row = tuple[str | None, int | None, str | None]

Offset = dict[str, list[int]]
"""The last batch of each channel and the watermark after it."""


class ChannelSource(DataSource):
    """The source as Spark knows it.

    The option `channels` says as JSON where the channels are, `read` lists their names, `subscriber` is who reads them,
    and `most_bytes` is how many bytes of a channel a micro-batch takes, though at least one batch.
    """

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return CHANNEL_DDL

    def simpleStreamReader(self, schema: StructType) -> ChannelReader:  # noqa: N802
        location, names = json.loads(self.options["channels"]), json.loads(self.options["read"])
        return ChannelReader(location, names, self.options["subscriber"], int(self.options["most_bytes"]))


class ChannelReader(SimpleDataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads the entries of channels behind an offset."""

    def __init__(self, location: dict[str, Any], names: list[str], subscriber: str, most_bytes: int) -> None:
        from braid.channels.kinds import channels_of

        channels = channels_of(location)
        self._channels: dict[str, Channel] = {name: channels.open(name) for name in names}
        self._subscriber = subscriber
        self._most_bytes = most_bytes

    def initialOffset(self) -> Offset:  # noqa: N802
        return {}

    def read(self, start: Offset) -> tuple[Iterator[Row], Offset]:
        end = dict(start)
        for name, channel in self._channels.items():
            entries = channel.entries(_position(start, name), self._most_bytes)
            if entries:
                end[name] = [entries[-1].number, entries[-1].watermark]
        return self.readBetweenOffsets(start, end), end

    def readBetweenOffsets(self, start: Offset, end: Offset) -> Iterator[Row]:  # noqa: N802
        if start == end:
            return iter(())
        rows: list[Row] = [(None, None, json.dumps({name: end[name][1] for name in end}))]
        for name, channel in self._channels.items():
            upto = _position(end, name)
            for entry in channel.entries(_position(start, name)):
                if entry.number <= upto:
                    rows.append((name, entry.number, None))
        return iter(rows)

    def commit(self, end: Offset) -> None:
        for name, channel in self._channels.items():
            if name in end:
                channel.release(self._subscriber, _position(end, name))

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Do nothing: batches that come after the start of the run are read too.

        The method must exist, because without it Spark would take all batches of all channels in a single micro-batch.
        """


def _position(offset: Offset, channel: str) -> int:
    return offset[channel][0] if channel in offset else NO_BATCH
