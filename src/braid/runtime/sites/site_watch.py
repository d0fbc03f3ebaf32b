"""Measures the part of a query that one site does, from the totals of its channels and the reports of its shards."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from braid.adapt.monitor import Monitor
from braid.adapt.network.figures import SiteFigures
from braid.adapt.network.meter import ChannelReading, LoadMeter, Meter
from braid.adapt.observation import KeyColumn, Observation
from braid.adapt.sketch import KeySketch
from braid.model.statistics import Sized
from braid.model.window import FOREVER
from braid.runtime.report import ShardReport
from braid.runtime.sites.fragment import Fragment
from braid.runtime.sites.node import Node, progress_of
from braid.runtime.sites.work import SiteWork

SECOND = 1_000_000


class SiteWatch:
    """Watches what a site does for one generation of a query, or the intakes at the site.

    Rates are those of the last `seconds` of event time. A join of three or more inputs is sampled, so that the joins of
    some of its inputs have rates, too.
    """

    def __init__(self, site: str, generation: int, work: SiteWork, nodes: Mapping[str, Node], seconds: float) -> None:
        self._site = site
        self._generation = generation
        self._work = work
        self._nodes = nodes
        self._seconds = seconds
        self._meters = {outlet.channel: Meter(seconds) for outlet in work.outlets}
        self._monitors = {
            name: Monitor(node.query, seconds) for name, node in nodes.items() if len(node.fragment.inputs) > 2
        }
        self._keys = _RecentKeys(int(seconds * SECOND))
        self._load = LoadMeter(seconds)

    def observe(self, name: str, reports: Sequence[ShardReport]) -> None:
        """Take in the reports of all shards of a node on one batch."""
        self._load.work(sum(report.seconds.total for report in reports))
        reached = min((progress_of(report) for report in reports), default=-FOREVER)
        if abs(reached) >= FOREVER:
            return
        self._load.read(reached)
        observation = Observation.merged(report.observation for report in reports)
        if name in self._monitors:
            self._monitors[name].observe(observation, reached / SECOND)
        elif observation.keys and self._nodes[name].sketcher is not None:
            self._keys.add(observation.keys, reached)

    def figures(self, readings: Mapping[str, ChannelReading]) -> SiteFigures | None:
        """The figures of the site, given the totals of its channels; None if nothing is known yet."""
        for channel, meter in self._meters.items():
            if channel in readings:
                meter.read(readings[channel])
        rates: dict[Sized, float] = {}
        bytes_per_second: dict[Sized, float] = {}
        batches: dict[str, float] = {}
        rows: dict[str, float] = {}
        for subject, meter in self._counting():
            if meter.rate is not None:
                rates[subject] = rates.get(subject, 0.0) + meter.rate
                bytes_per_second[subject] = bytes_per_second.get(subject, 0.0) + meter.rate * (meter.size or 0.0)
                if isinstance(subject, str) and meter.batches is not None:
                    batches[subject] = meter.batches
                    rows[subject] = meter.rows_so_far
        if not rates:
            return None
        sizes = {subject: bytes_per_second[subject] / rate for subject, rate in rates.items() if rate}
        sampled: dict[Sized, float] = {}
        for name in self._monitors:
            sampled |= dict(self._sampled(name))
        reached = max(meter.reached for meter in self._meters.values())
        self._load.read(reached)
        keys = self._keys.merged()
        seconds = max(meter.seconds for meter in self._meters.values())
        rates = {**sampled, **rates}
        load = self._load.load
        return SiteFigures(self._site, self._generation, rates, sizes, keys, batches, rows, seconds, reached, load)

    def clear(self) -> None:
        """Forget everything."""
        self._monitors.clear()
        self._keys = _RecentKeys(int(self._seconds * SECOND))

    def _counting(self) -> Iterator[tuple[Sized, Meter]]:
        """What each node of the site makes, with meters that together count each of its rows once."""
        for name, node in self._nodes.items():
            if len(node.fragment.inputs) == 1 and node.sketcher is None:
                continue  # It passes on what others make, or a part of a stream.
            outlets = [outlet for outlet in self._work.outlets if outlet.fragment == name]
            whole = [outlet for outlet in outlets if outlet.guard.partitions is None]
            if whole:
                # Two channels may have the same rows: the one for other queries has more columns.
                outlets = [min(whole, key=lambda outlet: outlet.fields is None)]
            for outlet in outlets:
                yield made_by(node.fragment), self._meters[outlet.channel]

    def _sampled(self, name: str) -> Iterator[tuple[Sized, float]]:
        """The rates of joins of some inputs of a node, from samples; cautious, so rather too high."""
        statistics = self._monitors[name].snapshot().cautious
        inputs = {stream.name: frozenset(stream.parts) for stream in self._nodes[name].fragment.inputs}
        for size in range(2, len(inputs)):
            for joined in map(frozenset, combinations(inputs, size)):
                flows = [
                    statistics.rates[head] * statistics.fanouts[head, joined]
                    for head in joined
                    if head in statistics.rates and (head, joined) in statistics.fanouts
                ]
                if len(flows) == size:
                    yield frozenset().union(*(inputs[stream] for stream in joined)), sum(flows)


class _RecentKeys:
    """Sketches of recent keys. A sketch cannot forget, so there is one for each of the last two spans of event time."""

    def __init__(self, span: int) -> None:
        self._span = span
        self._began: int | None = None
        self._spans: tuple[dict[KeyColumn, KeySketch], dict[KeyColumn, KeySketch]] = ({}, {})

    def add(self, keys: Mapping[KeyColumn, KeySketch], reached: int) -> None:
        if self._began is None or reached - self._began > self._span:
            self._began, self._spans = reached, ({}, self._spans[0])
        _merge(self._spans[0], keys)

    def merged(self) -> dict[KeyColumn, KeySketch]:
        merged: dict[KeyColumn, KeySketch] = {}
        for span in self._spans:
            _merge(merged, span)
        return merged


def _merge(sketches: dict[KeyColumn, KeySketch], more: Mapping[KeyColumn, KeySketch]) -> None:
    for key, sketch in more.items():
        sketches.setdefault(key, KeySketch()).merge(sketch)


def made_by(fragment: Fragment) -> Sized:
    """What a fragment makes, in the terms of statistics: a stream, a join, or what a head makes on its way."""
    if fragment.output is not None:
        return fragment.output.sized
    joined = frozenset(fragment.query.aliases)
    if fragment.head is not None:
        head = fragment.input(fragment.head)
        return (head.name if head.is_base else head.started[0]), joined
    return joined if len(joined) > 1 else next(iter(joined))
