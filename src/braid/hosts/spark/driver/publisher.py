"""Publishes on channels what a micro-batch of a site has made, under the number of the micro-batch.

Spark calls a publisher at the end of each micro-batch, and once more if the site died before it had committed the
micro-batch. What is on a channel already is not published again.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
from pyspark.sql import DataFrame

from braid.channels.batch import NONE, Batch
from braid.channels.channel import Channel, newest_published
from braid.channels.channels import Channels
from braid.engine.segment import Segment
from braid.errors import BraidError, ChannelError
from braid.hosts.change_log import ChangeLog
from braid.hosts.spark.driver.names import named
from braid.hosts.spark.worker.intake_packer import IntakePacker
from braid.hosts.spark.worker.operator import SITE_OUTPUT_DDL
from braid.model.window import FOREVER
from braid.runtime.migration.change import ChangeState
from braid.runtime.migration.gate import Gate
from braid.runtime.report import ShardReport
from braid.runtime.sites.node import progress_of
from braid.runtime.sites.site import merged
from braid.runtime.sites.site_spec import SiteSpec
from braid.runtime.sites.work import Outlet

WAIT_SECONDS = 0.05
"""How long a site waits before it looks again whether it may publish its results."""

Receive = Callable[[int, Sequence[ShardReport]], None]
"""Takes the reports of a micro-batch."""


class Publisher(ABC):
    """Called with the output of each micro-batch, in the driver. `outlets` are those of the site by position."""

    def __init__(self, spec: SiteSpec, channels: Channels, outlets: Mapping[int, Outlet], receive: Receive) -> None:
        self._spec = spec
        self._receive = receive
        self._channels: dict[int, tuple[Outlet, Channel]] = {
            position: (outlet, channels.open(outlet.channel, outlet.keep)) for position, outlet in outlets.items()
        }
        self.failure: BraidError | None = None
        """Why publishing failed, in our own words: Spark would show a traceback."""

    def check_checkpoint(self, last_batch: int) -> None:
        """Refuse a checkpoint that is older than what its site has published: new batches would count as published."""
        for _, channel in self._channels.values():
            last = channel.last()
            if last is not None and last.number > last_batch:
                raise ChannelError(
                    f"channel '{channel.name}' has batch {last.number}, but the checkpoint of site "
                    f"'{self._spec.site}' has come to {_batch(last_batch)} only: it was removed, or an older one was "
                    "restored; restore the newest one, or deploy the query under another name"
                )

    def __call__(self, output: DataFrame, number: int) -> None:
        try:
            self._receive(number, self._take(output, number))
        except BraidError as failure:
            self.failure = failure
            raise

    @abstractmethod
    def _take(self, output: DataFrame, number: int) -> list[ShardReport]:
        """Publish the output of a micro-batch; returns the reports on it."""

    def _publish(self, outlet: int, segments: Sequence[Segment], watermark: int, number: int) -> None:
        """Publish a batch, unless it is there already or tells nothing new."""
        described, channel = self._channels[outlet]
        last = channel.last()
        is_news = bool(segments) or last is None or watermark > last.watermark
        if is_news and (last is None or last.number < number):
            channel.publish(Batch.behind(last, channel.name, number, merged(segments), watermark))
        if described.keep:
            channel.release(self._spec.publisher, number)


class SitePublisher(Publisher):
    """Publishes what the fragments of a site make. Its results go through a gate, which a plan change may close."""

    def __init__(self, spec: SiteSpec, channels: Channels, changes: ChangeLog, receive: Receive) -> None:
        super().__init__(spec, channels, dict(enumerate(spec.work.outlets)), receive)
        self._changes = changes
        self._gate = Gate()
        self._lock = threading.Lock()
        """Held while something is published, and while something is promised."""
        self._stopping = threading.Event()

    def take_part(self, state: ChangeState) -> None:
        """Say what the site has to say of a change from its generation to another one."""
        site = self._spec.site
        with self._lock:
            if state.must_promise(site):
                newest = max(map(newest_published, self._results))
                promise = self._gate.promise(state, site, newest, self._margin(state))
                self._changes.say(state.change, promise)
            self._gate.learn(self._changes.state(state.change), site)
        answered = state.answered(site, _least_watermark(self._results))
        if answered is not None:
            self._changes.say(state.change, answered)

    def _margin(self, state: ChangeState) -> int:
        """How far in event time results may go on while other sites promise: the span of the batches still there."""
        if len(state.change.answering) == 1:
            return 0
        newest: list[int] = []
        for channel in self._results:
            newest += [entry.newest for entry in channel.entries(NONE) if entry.rows]
        return max(newest, default=0) - min(newest, default=0)

    def stop(self) -> None:
        """Do not wait for the moment of a change any longer."""
        self._stopping.set()

    @property
    def _results(self) -> list[Channel]:
        """The channels of the results of the query."""
        finals = self._spec.work.finals
        return [channel for outlet, channel in self._channels.values() if outlet.fragment in finals]

    @property
    def reached(self) -> int:
        """How far all that the site makes has come."""
        return _least_watermark([channel for _, channel in self._channels.values()])

    def _take(self, output: DataFrame, number: int) -> list[ShardReport]:
        # One action only: a second one would run the operator again.
        segments, texts = _read(output.toArrow())
        reports = [ShardReport.from_json(text) for _, text in texts]
        watermarks: dict[str, int] = {}
        for report in reports:
            name, _ = self._spec.shard_of[report.shard]
            watermarks[name] = min(watermarks.get(name, FOREVER), progress_of(report))
        finals = self._spec.work.finals
        for position, (outlet, _) in self._channels.items():
            if outlet.fragment not in watermarks:
                continue
            if outlet.fragment in finals:
                self._publish_results(position, segments[position], watermarks[outlet.fragment], number)
            else:
                self._publish(position, segments[position], watermarks[outlet.fragment], number)
        return reports

    def _publish_results(self, outlet: int, segments: Sequence[Segment], watermark: int, number: int) -> None:
        newest = max((segment.newest for segment in segments), default=-FOREVER)
        while True:
            with self._lock:
                if self._gate.admits(newest):
                    passing = [self._gated(segment) for segment in segments]
                    ours = [segment for segment in passing if segment.rows.num_rows]
                    self._publish(outlet, ours, self._gate.watermark(watermark), number)
                    return
            if self._stopping.wait(WAIT_SECONDS):
                raise BraidError(f"site '{self._spec.site}' stops while it waits for the moment of a plan change")

    def _gated(self, segment: Segment) -> Segment:
        rows = self._gate.passing(segment.rows, self._spec.event_time)
        return segment if rows is segment.rows else replace(segment, rows=rows)


class IntakePublisher(Publisher):
    """Takes the rows of a stream where it starts, and publishes those that enter the query.

    How far the stream has come is on the channel itself. So a micro-batch that runs again finds the same rows late, and
    an intake needs no state of its own.
    """

    def __init__(self, spec: SiteSpec, stream: str, channels: Channels, receive: Receive) -> None:
        outlets = {
            position: outlet
            for position, outlet in enumerate(spec.work.outlets)
            if spec.stream_of(outlet).name == stream
        }
        super().__init__(spec, channels, outlets, receive)
        self._stream = stream
        self._text = spec.to_json()
        self._read: set[str] = set()
        for outlet in outlets.values():
            for stream_read in spec.work.fragments[outlet.fragment].inputs:
                self._read.update(stream_read.schema.names)

    def rows(self, dataframe: DataFrame) -> DataFrame:
        """The columns of the stream that are read, named by their position: PySpark does not support every name."""
        self._columns = [name for name in dataframe.columns if name in self._read]
        return dataframe.select(*(named(name).alias(str(position)) for position, name in enumerate(self._columns)))

    def _take(self, output: DataFrame, number: int) -> list[ShardReport]:
        before = {}
        for outlet, channel in self._channels.values():
            last = channel.last()
            before[outlet.fragment] = -FOREVER if last is None else last.watermark
        packer = IntakePacker(self._text, self._stream, self._columns, before)
        segments, texts = _read(output.mapInArrow(packer, SITE_OUTPUT_DDL).toArrow())
        reports = [(position, ShardReport.from_json(text)) for position, text in texts]
        for position, (outlet, _) in self._channels.items():
            reached = [progress_of(report) for outlet_position, report in reports if outlet_position == position]
            self._publish(position, segments[position], max(reached, default=before[outlet.fragment]), number)
        # What was passed on unfiltered has the same figures as the rows that it was chosen from.
        filtered = {
            position for position, (outlet, _) in self._channels.items() if outlet.fragment in self._spec.work.own
        }
        return [report for position, report in reports if position in filtered]


def _read(output: pa.Table) -> tuple[dict[int, list[Segment]], list[tuple[int, str]]]:
    """The segments for each outlet, and the reports, each with the outlet that it is about, if it is about one."""
    segments: dict[int, list[Segment]] = defaultdict(list)
    reports = []
    columns = (output.column(name).to_pylist() for name in ("outlet", "payload", "report"))
    for outlet, payload, report in zip(*columns, strict=True):
        if report is not None:
            reports.append((outlet, report))
        else:
            segments[outlet].append(Segment.from_bytes(payload))
    return segments, reports


def _least_watermark(channels: Sequence[Channel]) -> int:
    lasts = [channel.last() for channel in channels]
    return min((-FOREVER if last is None else last.watermark for last in lasts), default=FOREVER)


def _batch(number: int) -> str:
    return "no batch" if number < 0 else f"batch {number}"
