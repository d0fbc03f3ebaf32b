"""The channels between the sites of a simulation, and when what is published arrives where it is read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

from braid.channels.batch import NONE, Batch
from braid.channels.memory import MemoryChannel
from braid.hosts.simulated.agenda import Agenda
from braid.hosts.simulated.links import VirtualLinks
from braid.hosts.simulated.place import Place
from braid.hosts.simulated.trace import Trace
from braid.model.window import FOREVER
from braid.runtime.sites.work import Outlet, SiteWork


class Delivery:
    """Brings the batches of every channel over the links to all who read it.

    `arrive` is told at the moment at which a batch, by its number, reaches a reader. `delays` says how much later than
    it could each copy of a batch reaches one: more than one copy if the batch is delivered again.
    """

    def __init__(
        self,
        links: VirtualLinks,
        agenda: Agenda,
        trace: Trace,
        arrive: Callable[[Place, str, int], None],
        delays: Callable[[], Sequence[float]],
    ) -> None:
        self._links = links
        self._agenda = agenda
        self._trace = trace
        self._arrive = arrive
        self._delays = delays
        self.channels: dict[str, MemoryChannel] = {}
        self._publishers: dict[str, str] = {}
        """The site that publishes each channel."""
        self._readers: dict[str, list[Place]] = defaultdict(list)

    def open(self, place: Place, work: SiteWork) -> None:
        """Have the channels that a place publishes and reads."""
        for outlet in work.outlets:
            channel = self._channel(outlet.channel)
            channel.keep = max(channel.keep, outlet.keep)
            self._publishers[outlet.channel] = place.site
        for name in work.arriving:
            self._channel(name)
            self._readers[name].append(place)

    def _channel(self, name: str) -> MemoryChannel:
        return self.channels.setdefault(name, MemoryChannel(name))

    def close(self, place: Place, work: SiteWork, subscriber: str) -> None:
        """Bring nothing more to a place, and keep nothing for it."""
        for name in work.arriving:
            self._readers[name].remove(place)
            self.channels[name].unsubscribe(subscriber)

    def watermarks(self, channels: Sequence[str]) -> list[int]:
        """How far channels have come."""
        lasts = [self.channels[channel].last() for channel in channels]
        return [-FOREVER if last is None else last.watermark for last in lasts]

    def send(self, place: Place, outlet: Outlet, batch: Batch) -> None:
        """Bring a batch that a place has published to all who read its channel."""
        size = len(batch.data)
        # Two that read a channel at one site have it brought there once.
        arrivals: dict[str, float] = {}
        for reader in self._readers[outlet.channel]:
            target = reader.site
            if target not in arrivals:
                arrivals[target] = self._links.send(place.query, place.site, target, size, batch.rows, self._agenda.now)
                if batch.rows and target != place.site:
                    what = f"ships {batch.rows:,} rows of {outlet.fragment} to {target}, {size:,} bytes"
                    self._trace.note(place.site, what, place.query)
            for delay in self._delays():
                self._bring(arrivals[target] + delay, reader, outlet.channel, batch.number)

    def fill(self, place: Place, work: SiteWork) -> None:
        """Bring what channels hold to a new reader. Another one at its site may have it already."""
        for name in work.arriving:
            entries = self.channels[name].entries(NONE)
            if not entries:
                continue
            source, now = self._publishers[name], self._agenda.now
            is_here = any(reader.site == place.site and reader != place for reader in self._readers[name])
            if not is_here and source != place.site:
                what = f"has a window filled: {len(entries)} batches of {name}"
                self._trace.note(place.site, what, place.query)
            for entry in entries:
                arrives = now
                if not is_here:
                    arrives = self._links.send(place.query, source, place.site, entry.bytes, entry.rows, now)
                self._bring(arrives, place, name, entry.number)

    def _bring(self, moment: float, reader: Place, channel: str, number: int) -> None:
        self._agenda.at(moment, lambda: self._arrive(reader, channel, number))
