"""The progress of the channels of a network: what they have carried, and what waits in them. It needs no Spark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from braid.adapt.network.monitor import loads_of
from braid.channels.batch import NONE, NOTHING, Carried
from braid.channels.channel import lag
from braid.channels.channels import Channels
from braid.hosts.announced import announced_deployments
from braid.hosts.change_log import ChangeLog
from braid.hosts.figures_log import FiguresLog
from braid.model.network.routes import Routes
from braid.model.network.topology import Topology
from braid.model.statistics import Sized
from braid.model.window import FOREVER
from braid.runtime.sites.deployed import Deployed, Shipped
from braid.runtime.sites.generation import Generation
from braid.runtime.sites.traffic import Traffic, planned_traffic

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class ChannelStatus:
    """One channel of a deployment. `waiting` is what the slowest reader has not released yet.

    A reader releases a batch one step after it has processed it. `load` is how many seconds of work a second of event
    time takes at the site that publishes the channel, for this query; None if the site has not announced it.
    """

    deployment: str
    channel: str
    site: str
    readers: tuple[str, ...]
    batches: int
    rows: int
    bytes: int
    watermark: int | None
    waiting_batches: int
    waiting_rows: int
    waiting_bytes: int
    load: float | None = None

    @property
    def reached(self) -> str:
        """The watermark of the channel as a time."""
        if self.watermark is None or abs(self.watermark) == FOREVER:
            return "-"
        try:
            return f"{EPOCH + timedelta(microseconds=self.watermark):%Y-%m-%d %H:%M:%S}"
        except OverflowError:
            return "-"

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def channel_statuses(channels: Channels) -> list[ChannelStatus]:
    """Every channel of every deployment."""
    deployments = announced_deployments(channels, ChangeLog(channels))
    return [status for deployed in deployments.values() for status in statuses_of(deployed, channels)]


def statuses_of(deployed: Deployed, channels: Channels) -> Iterator[ChannelStatus]:
    readers = readers_of(deployed)
    loads = loads_of(FiguresLog(channels).told(deployed.name))
    for spec in deployed.specs:
        for outlet in spec.work.outlets:
            channel = channels.open(outlet.channel)
            last = channel.last()
            carried = (0, 0, 0) if last is None else last.carried
            waiting = lag(channel, min(channel.released().values(), default=NONE))
            yield ChannelStatus(
                deployed.name,
                outlet.channel.removeprefix(deployed.unique_name).lstrip(": "),
                spec.site,
                readers.get(outlet.channel, ()),
                *carried,
                watermark=None if last is None else last.watermark,
                waiting_batches=waiting.batches,
                waiting_rows=waiting.rows,
                waiting_bytes=waiting.bytes,
                load=loads.get(spec.site),
            )


def readers_of(deployed: Deployed) -> dict[str, tuple[str, ...]]:
    """The sites that read each channel for a query."""
    readers: dict[str, dict[str, None]] = {}
    for spec in deployed.specs:
        for channel in spec.work.arriving:
            readers.setdefault(channel, {})[spec.site] = None
    return {channel: tuple(sites) for channel, sites in readers.items()}


def link_traffic(deployed: Deployed, topology: Topology, channels: Channels) -> dict[str, Traffic]:
    """What has crossed each link since a query was deployed, and what was planned to."""
    routes = Routes(topology, deployed.paths)
    links = planned_traffic(deployed.bill, routes)
    shipped = deployed.past
    counted: set[str] = set()
    for generation in deployed.at_work:
        sites = [site for site, spec in generation.sites.items() if spec.subscriber not in counted]
        shipped = added(shipped, shipped_for(deployed, generation, sites, channels))
        counted |= {spec.subscriber for spec in generation.sites.values()}
    for (source, target), (batches, rows, size) in shipped.items():
        for _, link in routes.between(source, target):
            links.setdefault(str(link), Traffic()).add(size, rows, batches)
    return links


def shipped_for(deployed: Deployed, generation: Generation, sites: Iterable[str], channels: Channels) -> Shipped:
    """What was shipped to some sites of a generation, in batches, rows and bytes."""
    publishers = {outlet.channel: spec.site for spec in deployed.specs for outlet in spec.work.outlets}
    shipped: Shipped = {}
    for site in sites:
        began = generation.began.get(site, {})
        for channel in generation.sites[site].work.arriving:
            last = channels.open(channel).last()
            if last is not None and publishers.get(channel, site) != site:
                before = began.get(channel, NOTHING)
                brought = tuple(now - then for now, then in zip(last.carried, before, strict=True))
                shipped = added(shipped, {(publishers[channel], site): Carried(*brought)})
    return shipped


def added(shipped: Shipped, more: Shipped) -> Shipped:
    total = dict(shipped)
    for pair, carried in more.items():
        total[pair] = Carried(*(one + other for one, other in zip(total.get(pair, NOTHING), carried, strict=True)))
    return total


def carried_sizes(deployed: Deployed, channels: Channels) -> dict[Sized, float]:
    """The bytes per row of each stream and join of a query, as its channels have carried them."""
    carried: dict[Sized, Traffic] = {}
    for spec in deployed.specs:
        for outlet in spec.work.outlets:
            stream = spec.work.fragments[outlet.fragment].output
            last = channels.open(outlet.channel).last()
            if stream is None or last is None or stream.at_origin or (stream.kept and outlet.fields is None):
                continue  # Nothing, or more rows or columns than the query itself needs.
            _, rows, size = last.carried
            carried.setdefault(stream.sized, Traffic()).add(size, rows)
    return {subject: traffic.bytes / traffic.rows for subject, traffic in carried.items() if traffic.rows}
