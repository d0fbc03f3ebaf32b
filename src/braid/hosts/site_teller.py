"""Measures the figures of a site, and announces them to the other programs of a network."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace

from braid.adapt.controller import Policy
from braid.adapt.network.central import RENEWED
from braid.adapt.network.figures import SiteFigures
from braid.adapt.network.meter import ChannelReading
from braid.channels.channels import Channels
from braid.hosts.figures_log import FiguresLog
from braid.runtime.report import ShardReport
from braid.runtime.sites.site_spec import SiteSpec
from braid.runtime.sites.site_watch import SiteWatch

TELL_SECONDS = 1.0
"""The figures of a site are computed at most once in this many seconds."""


class SiteTeller:
    """Watches what a site does for the plans of a query, or the intakes at the site. Threads may share it."""

    def __init__(self, query: str, spec: SiteSpec, channels: Channels, log: FiguresLog, policy: Policy) -> None:
        self._query = query
        self._log = log
        self._drift = policy.drift
        self._channels = {outlet.channel: channels.open(outlet.channel, outlet.keep) for outlet in spec.work.outlets}
        self._watch = SiteWatch(spec.site, spec.generation, spec.work, spec.nodes, 2 * policy.half_life)
        self._lock = threading.Lock()
        self._looked = self._told_at = float("-inf")
        self._told: SiteFigures | None = None

    def receive(self, node: str, reports: Sequence[ShardReport]) -> None:
        """Take in the reports of all shards of a join or an intake on one micro-batch."""
        with self._lock:
            self._watch.observe(node, reports)

    def tell(self, time: float, generation: int) -> None:
        """Announce the figures of the site for a generation, if they have moved or were announced long ago."""
        if time - self._looked < TELL_SECONDS:
            return
        self._looked = time
        readings = {}
        for name, channel in self._channels.items():
            last_batch = channel.last()
            if last_batch is not None:
                readings[name] = ChannelReading(last_batch.watermark, *last_batch.carried)
        with self._lock:
            figures = self._watch.figures(readings)
        if figures is None:
            return
        figures, told = replace(figures, generation=generation), self._told
        has_moved = told is None or told.generation != generation or figures.differs(told, self._drift)
        if has_moved or time - self._told_at > RENEWED:
            self._told, self._told_at = figures, time
            self._log.tell(self._query, figures)

    def clear(self) -> None:
        """Forget everything. datasketches reports sketches that are alive when Python ends as leaks."""
        with self._lock:
            self._watch.clear()
            self._told = None
