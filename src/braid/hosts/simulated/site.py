"""A site of a simulation: its process may die at any moment, its store, its log and its channels survive.

A step is done as a streaming system does a batch: the site first logs which inputs the step takes, then runs it,
publishes what it made under the number of the step, and commits. A site that comes back finds its last commit, and
runs the step that it had logged once more, with the same inputs; what is published already is not published again.
The same happens if the channels cannot be reached in the middle of a step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from braid.adapt.network.figures import SiteFigures
from braid.adapt.network.meter import ChannelReading
from braid.channels.batch import NONE, Batch
from braid.channels.channel import Channel, newest_published
from braid.hosts.simulated.broker import Broker, Unreachable
from braid.hosts.simulated.disruptions import Died
from braid.model.output import EVENT_TIME_COLUMN
from braid.model.window import FOREVER
from braid.runtime.migration.gate import Gate
from braid.runtime.migration.readiness import Readiness
from braid.runtime.sites.site import Outgoing, SiteRuntime, StreamBatch
from braid.runtime.sites.site_watch import SiteWatch
from braid.runtime.sites.work import Outlet, SiteWork
from braid.runtime.store import DictionaryStore

Publish = Callable[[Outlet, Batch], None]
"""Called when a batch has been published, whether or not the site lives to commit its step."""

Die = Callable[[str], bool]
"""Whether the process of a site dies at a point of a step."""

Committed = Callable[[Mapping[str, Sequence[int]]], None]
"""Called when a step is committed, with the numbers of the batches that it has taken of each channel."""


class Waits(Exception):  # noqa: N818
    """A site may not publish its results before it knows the moment of a plan change."""


@dataclass
class Inputs:
    """How far a step reads: of each stream that starts here the number of batches, of each channel the last number."""

    sources: dict[str, int] = field(default_factory=dict)
    channels: dict[str, int] = field(default_factory=dict)


class SimulatedSite:
    """One site. `feeds` are the batches of its own streams, by alias; `channels` those it publishes on or reads.

    Its results go through a `gate`, which a plan change may close; a site that comes back has it from `recall`, which
    knows what the site has promised. `repeated` is called with a batch that was published already. Who wants to know
    its figures gives it a `watch`.
    """

    def __init__(
        self,
        name: str,
        work: SiteWork,
        feeds: Mapping[str, Sequence[StreamBatch]],
        channels: Mapping[str, Channel],
        published: Publish,
        dies: Die = lambda point: False,
        shards: int = 1,
        watch: SiteWatch | None = None,
        *,
        broker: Broker | None = None,
        recall: Callable[[], Gate] = Gate,
        committed: Committed = lambda taken: None,
        repeated: Callable[[Batch], None] = lambda batch: None,
    ) -> None:
        self.name = name
        self.work = work
        self._feeds = feeds
        self._channels = channels
        self._published = published
        self._dies = dies
        self._shards = shards
        self._watch = watch
        self._broker = broker or Broker()
        self._recall = recall
        self._committed = committed
        self._repeated = repeated
        self._store = DictionaryStore()
        self._log: dict[int, Inputs] = {}
        self.available = Inputs()
        """What has reached the site: rows of its own streams, and batches on channels."""
        self.is_behind = False
        """Whether more was available than the last step has taken: it had logged its inputs before that came."""
        self.gate = Gate()
        self.readiness = Readiness()
        self.runtime = SiteRuntime(work, self._store, shards)
        for channel in work.arriving:
            channels[channel].subscribe(name)
        for outlet in work.outlets:
            if outlet.keep:
                channels[outlet.channel].subscribe(self._publisher)

    @property
    def _publisher(self) -> str:
        """The name under which it subscribes to its own channels, to release what they keep for newcomers."""
        return f"publisher of {self.name}"

    @property
    def result_schema(self) -> pa.Schema | None:
        return self.runtime.result_schema

    def step(self) -> bool:
        """Take what is available. A site that dies comes back and does it again.

        False if its results must wait, or the channels cannot be reached.
        """
        while True:
            try:
                self._try_step()
                return True
            except Died:
                self.come_back()
            except (Waits, Unreachable):
                self.come_back()
                return False

    def come_back(self) -> None:
        """Begin again at the last commit, held to what was promised."""
        self._store.rollback()
        self.runtime = SiteRuntime(self.work, self._store, self._shards)
        self.gate = self._recall()
        self.readiness = Readiness()

    def figures(self) -> SiteFigures | None:
        """What the site can tell of what it makes; None if that is nothing yet, or nobody wants to know."""
        if self._watch is None:
            return None
        lasts = {outlet.channel: self._channels[outlet.channel].last() for outlet in self.work.outlets}
        readings = {
            channel: ChannelReading(last.watermark, *last.carried)
            for channel, last in lasts.items()
            if last is not None
        }
        return self._watch.figures(readings)

    @property
    def reached(self) -> int:
        """How far the channels that the site reads have come, as far as it has read them."""
        return self.runtime.reached

    @property
    def answered(self) -> int:
        """How far its results have come."""
        lasts = [self._channels[channel].last() for channel in self.result_channels]
        return min(-FOREVER if last is None else last.watermark for last in lasts)

    @property
    def newest_result(self) -> int:
        """An event time that no result it has published is later than."""
        return max(newest_published(self._channels[channel]) for channel in self.result_channels)

    @property
    def result_channels(self) -> list[str]:
        return [outlet.channel for outlet in self.work.outlets if outlet.fragment in self.work.finals]

    def _try_step(self) -> None:
        runtime = self.runtime
        number = runtime.step_number + 1
        self._survive("before it logs")
        inputs = self._log.setdefault(number, Inputs(dict(self.available.sources), dict(self.available.channels)))
        self._survive("after it has logged")
        taken: dict[str, list[int]] = {}
        published = runtime.step(self._own(inputs), self._arrived(inputs, taken))
        self._survive("after it has run")
        finals = self.work.finals
        if not all(self._admits(outgoing) for outgoing in published if outgoing.outlet.fragment in finals):
            raise Waits
        for outgoing in published:
            self._publish(self._gated(outgoing) if outgoing.outlet.fragment in finals else outgoing, number)
            self._survive("after it has published")
        runtime.checkpoint()
        self._survive("before it commits")
        self._store.commit()
        del self._log[number]
        self.is_behind = inputs != self.available
        if self._watch is not None:
            for name, reports in runtime.reports.items():
                self._watch.observe(name, reports)
        self._committed(taken)
        self._release(inputs)

    def _release(self, inputs: Inputs) -> None:
        for channel in inputs.channels:
            try:
                self._broker.check()
            except Unreachable:
                return  # The next step releases it.
            self._channels[channel].release(self.name, self.runtime.positions.get(channel, NONE))

    def _admits(self, outgoing: Outgoing) -> bool:
        return all(self.gate.admits(segment.newest) for segment in outgoing.segments)

    def _gated(self, outgoing: Outgoing) -> Outgoing:
        passing = [
            replace(segment, rows=self.gate.passing(segment.rows, EVENT_TIME_COLUMN)) for segment in outgoing.segments
        ]
        segments = tuple(segment for segment in passing if segment.rows.num_rows)
        return replace(outgoing, segments=segments, watermark=self.gate.watermark(outgoing.watermark))

    def _survive(self, point: str) -> None:
        if self._dies(point):
            raise Died(point)

    def _own(self, inputs: Inputs) -> dict[str, StreamBatch]:
        own = {}
        for alias, upto in inputs.sources.items():
            position = self.runtime.positions.get(alias, 0)
            batches = self._feeds[alias][position:upto]
            rows = [part for batch in batches for part in batch.rows]
            if batches:
                own[alias] = StreamBatch(rows, max(batch.watermark for batch in batches))
            self.runtime.positions[alias] = upto
        return own

    def _arrived(self, inputs: Inputs, taken: dict[str, list[int]]) -> dict[str, StreamBatch]:
        arrived = {}
        for channel, upto in inputs.channels.items():
            self._broker.check()
            position = self.runtime.positions.get(channel, NONE)
            entries = self._channels[channel].entries(position)
            batches = [self._channels[channel].read(entry.number) for entry in entries if entry.number <= upto]
            if batches:
                rows = [segment.rows for batch in batches for segment in batch.segments]
                arrived[channel] = StreamBatch(rows, batches[-1].watermark)
                self.runtime.positions[channel] = batches[-1].number
                taken[channel] = [batch.number for batch in batches]
        return arrived

    def _publish(self, made: Outgoing, number: int) -> None:
        self._broker.check()
        channel = self._channels[made.outlet.channel]
        last = channel.last()
        if last is not None:
            channel.release(self._publisher, last.number)
        if last is not None and last.number >= number:
            # The site died, or the channels could not be reached, after it had published this.
            self._repeated(Batch.behind(None, made.outlet.channel, number, made.segments, made.watermark))
            return
        batch = Batch.behind(last, made.outlet.channel, number, made.segments, made.watermark)
        channel.publish(batch)
        self._published(made.outlet, batch)
        self._broker.check()  # That it was published may not be heard of.
