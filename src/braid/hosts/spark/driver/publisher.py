"""Publishes on channels what a micro-batch of a site has made, under the number of the micro-batch.

Spark calls the publisher at the end of each micro-batch, and once more if the site died before it had committed the
micro-batch. What is on a channel already is not published again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame

from braid.channels.batch import Batch
from braid.channels.channel import Channel
from braid.channels.channels import Channels
from braid.engine.segment import Segment
from braid.errors import BraidError, ChannelError
from braid.model.window import FOREVER
from braid.runtime.report import ShardReport
from braid.runtime.sites.node import progress_of
from braid.runtime.sites.site import Outgoing
from braid.runtime.sites.site_spec import SiteSpec

MOST_MERGED = 10_000
"""The most rows of segments that are merged into one: it costs time, and larger ones hardly gain."""


class Publisher:
    """Called with the output of each micro-batch of a site, in the driver."""

    def __init__(
        self,
        spec: SiteSpec,
        channels: Channels,
        receive: Callable[[int, Sequence[ShardReport]], None],
    ) -> None:
        self._spec = spec
        self._receive = receive
        self._channels: list[Channel] = [channels.open(outlet.channel, outlet.keep) for outlet in spec.work.outlets]
        self.failure: BraidError | None = None
        """Why publishing failed, in our own words: Spark would show a traceback."""

    def check_checkpoint(self, last_batch: int) -> None:
        """Refuse a checkpoint that is older than what its site has published: its batches would be taken for known."""
        for channel in self._channels:
            last = channel.last()
            if last is not None and last.number > last_batch:
                raise ChannelError(
                    f"channel '{channel.name}' has batch {last.number}, but the checkpoint of site "
                    f"'{self._spec.site}' has come to {_batch(last_batch)} only: it was removed, or an older one was "
                    "restored; restore the newest one, or deploy the query under another name"
                )

    def __call__(self, output: DataFrame, number: int) -> None:
        try:
            # One action only: a second one would run the operator again.
            reports = self._publish(output.toArrow(), number)
            self._receive(number, reports)
        except BraidError as failure:
            self.failure = failure
            raise

    def _publish(self, output: pa.Table, number: int) -> list[ShardReport]:
        outlets, payloads, texts = (output.column(name).to_pylist() for name in ("outlet", "payload", "report"))
        reports = [ShardReport.from_json(text) for text in texts if text is not None]
        segments: dict[int, list[Segment]] = {}
        for outlet, payload in zip(outlets, payloads, strict=True):
            if outlet is not None:
                segments.setdefault(outlet, []).append(Segment.from_bytes(payload))
        for outgoing, channel in self._outgoing(segments, reports):
            last = channel.last()
            news = bool(outgoing.segments) or last is None or outgoing.watermark > last.watermark
            if news and (last is None or last.number < number):
                channel.publish(Batch.behind(last, channel.name, number, outgoing.segments, outgoing.watermark))
            if outgoing.outlet.is_offered and not outgoing.outlet.readers:
                channel.release(self._spec.subscriber, number)
        return reports

    def _outgoing(
        self, segments: dict[int, list[Segment]], reports: Sequence[ShardReport]
    ) -> Iterator[tuple[Outgoing, Channel]]:
        """What goes out by each outlet whose fragment has run in this micro-batch."""
        watermarks: dict[str, int] = {}
        for report in reports:
            name, _ = self._spec.shard_of[report.shard]
            watermarks[name] = min(watermarks.get(name, FOREVER), progress_of(report))
        for number, (outlet, channel) in enumerate(zip(self._spec.work.outlets, self._channels, strict=True)):
            if outlet.fragment in watermarks:
                yield Outgoing(outlet, _few(segments.get(number, ())), watermarks[outlet.fragment]), channel


def _few(segments: Sequence[Segment]) -> tuple[Segment, ...]:
    """Small segments as one: each carries its Arrow schema, which may be more bytes than its rows."""
    if len(segments) < 2 or sum(segment.rows.num_rows for segment in segments) > MOST_MERGED:
        return tuple(segments)
    rows = pa.concat_batches([segment.rows for segment in segments])
    return (Segment(segments[0].stream, rows, newest=max(segment.newest for segment in segments)),)


def _batch(number: int) -> str:
    return "no batch" if number < 0 else f"batch {number}"
