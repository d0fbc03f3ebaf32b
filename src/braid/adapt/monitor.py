"""The statistics of a running query: takes observations, and gives snapshots of what holds now.

The rates of streams are ratios of two sums, rows and seconds, and both sums halve in each half-life. So a rate is a
weighted mean: a batch weighs as much as it observed, and half as much for each half-life of its age.

Fan-outs may change by orders of magnitude, which would fade too slowly. So a batch in which enough rows were looked at
replaces everything before it; otherwise the batches before it count too, as far as they have not faded. Each fan-out
has an interval: a few rows without a match do not show that no row has one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations

from braid.adapt.cells import Cells, cells_of
from braid.adapt.observation import FanoutSeen, KeyColumn, Observation, StreamSeen
from braid.adapt.sketch import KeySketch, estimate_share, largest_share
from braid.errors import ModelError
from braid.model.query import Query
from braid.model.statistics import Prefix, Statistics, Subject

HALF_LIFE = 2.0
"""The default half-life of observations, in seconds."""

SECOND = 1_000_000
"""One second in microseconds, the unit of event time."""

ENOUGH_SAMPLED = 128
"""So many rows show a fan-out well enough that older ones are forgotten."""


@dataclass(frozen=True, slots=True)
class StreamFigures:
    """The figures of one stream; None for a figure that is not known.

    `rate` counts the rows that enter the window per second of the monitor's clock, `event_rate` per second of event
    time. `size` is in bytes per row, `population` is the number of rows in the window, `lateness` the longest lateness
    of recent rows in seconds, and `late` the share of rows that were too late.
    """

    rate: float | None = None
    event_rate: float | None = None
    size: float | None = None
    population: float | None = None
    lateness: float | None = None
    late: float | None = None

    def shared_by(self, copies: int) -> StreamFigures:
        """The figures of a stream whose rows were counted this many times each."""

        def share(figure: float | None) -> float | None:
            return None if figure is None else figure / copies

        return replace(
            self, rate=share(self.rate), event_rate=share(self.event_rate), population=share(self.population)
        )


@dataclass(frozen=True, slots=True)
class KeyFigures:
    """The join keys of a stream: the number of distinct keys, and the share of rows of each frequent key.

    A key is a 64-bit word: the value itself, or a hash of it for texts and other long values.
    """

    distinct: float | None
    frequent: Mapping[int, float]


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate, and the most that it may be."""

    estimate: float
    most: float

    def scaled(self, factor: float) -> Interval:
        return Interval(self.estimate * factor, self.most * factor)


@dataclass(frozen=True)
class Snapshot:
    """The immutable statistics of a monitor at one time.

    `fanouts` are the combinations that a new row makes with each set of other streams, `shares` the shares of pairs of
    rows that match. The shares of pairs in `estimated` come from key sketches.
    """

    time: float
    streams: Mapping[str, StreamFigures]
    fanouts: Mapping[Prefix, Interval]
    shares: Mapping[frozenset[str], Interval]
    keys: Mapping[str, KeyFigures]
    estimated: frozenset[frozenset[str]] = frozenset()
    equalities: Mapping[str, float] = field(default_factory=dict)
    """The shares of pairs with equal keys, by equality, where another index than that of the key may be used."""
    cells: tuple[Cells, ...] = ()
    """How the rows of streams are spread over frequent keys, hash classes and ranges of each join key."""

    @property
    def statistics(self) -> Statistics:
        """The statistics for computing what plans are expected to cost."""
        return self._statistics(
            {prefix: fanout.estimate for prefix, fanout in self.fanouts.items()},
            {ends: min(1.0, share.estimate) for ends, share in self.shares.items()},
        )

    @property
    def cautious(self) -> Statistics:
        """The statistics for computing what plans may cost: every fan-out and share is the most that it may be."""
        return self._statistics(
            {prefix: fanout.most for prefix, fanout in self.fanouts.items()},
            {ends: min(1.0, share.most) for ends, share in self.shares.items()},
        )

    def _statistics(self, fanouts: Mapping[Prefix, float], shares: Mapping[frozenset[str], float]) -> Statistics:
        rates = {
            alias: figures.event_rate if figures.rate is None else figures.rate
            for alias, figures in self.streams.items()
        }
        selectivities: dict[Subject, float] = dict.fromkeys(self._empty_pairs(), 1.0)
        selectivities |= {ends: share for ends, share in shares.items()}  # noqa: C416
        selectivities |= {equality: share for equality, share in self.equalities.items()}  # noqa: C416
        return Statistics(
            rates={alias: rate for alias, rate in rates.items() if rate is not None},
            sizes={alias: figures.size for alias, figures in self.streams.items() if figures.size is not None},
            populations={
                alias: figures.population for alias, figures in self.streams.items() if figures.population is not None
            },
            selectivities=selectivities,
            fanouts=fanouts,
        )

    def _empty_pairs(self) -> Iterator[frozenset[str]]:
        """Pairs with a stream that has no rows and no rate. Their share is not known, and does not matter."""
        empty = {alias for alias, known in self.streams.items() if known.population == 0 and not known.rate}
        return (frozenset(pair) for pair in combinations(self.streams, 2) if not empty.isdisjoint(pair))


@dataclass(slots=True)
class _Ratio:
    """Two sums, and their ratio. Both fade together."""

    part: float = 0.0
    whole: float = 0.0

    def add(self, part: float, whole: float, weight: float = 1.0) -> None:
        self.part += part * weight
        self.whole += whole * weight

    def fade(self, factor: float) -> None:
        self.part *= factor
        self.whole *= factor

    @property
    def value(self) -> float | None:
        return self.part / self.whole if self.whole > 0 else None


@dataclass(slots=True)
class _Stream:
    """The sums of one stream, and its last values of `held` and `newest`."""

    rate: _Ratio = field(default_factory=_Ratio)
    event_rate: _Ratio = field(default_factory=_Ratio)
    size: _Ratio = field(default_factory=_Ratio)
    late: _Ratio = field(default_factory=_Ratio)
    lateness: float | None = None
    held: int | None = None
    newest: int | None = None

    @property
    def ratios(self) -> tuple[_Ratio, ...]:
        return self.rate, self.event_rate, self.size, self.late

    @property
    def figures(self) -> StreamFigures:
        population = None if self.held is None else float(self.held)
        rates = self.rate.value, self.event_rate.value
        return StreamFigures(*rates, self.size.value, population, self.lateness, self.late.value)


class Monitor:
    """Takes observations in order, each with its time in seconds. If the clock was set back, no time has passed."""

    def __init__(self, query: Query, half_life: float = HALF_LIFE) -> None:
        if not half_life > 0:
            raise ModelError(f"the half-life of a monitor must be greater than 0 seconds, not {half_life}")
        self._query = query
        self._half_life = half_life
        self._time: float | None = None
        self._streams = {alias: _Stream() for alias in query.aliases}
        self._fanouts: dict[Prefix, FanoutSeen] = {}
        # Two generations of key sketches, the newer first, and the time when the newer one was started.
        self._keys: list[dict[KeyColumn, KeySketch]] = [{}, {}]
        self._generation_started = 0.0

    def observe(self, observation: Observation, time: float) -> None:
        """Take in the observation of a batch that ended at this time."""
        elapsed = 0.0 if self._time is None else max(0.0, time - self._time)
        first, self._time = self._time is None, time
        factor = 0.5 ** (elapsed / self._half_life)
        for alias, stream in self._streams.items():
            for ratio in stream.ratios:
                ratio.fade(factor)
            if stream.lateness is not None:
                stream.lateness *= factor
            self._observe_stream(stream, observation.streams.get(alias), 0.0 if first else elapsed)
        empty = {prefix for prefix, seen in observation.fanouts.items() if len(prefix[1]) == 2 and not seen.pairs}
        for (head, bound), seen in observation.fanouts.items():
            # A row that found a window empty tells nothing of how many rows there it would have matched.
            if not any((head, frozenset([head, other])) in empty for other in bound):
                self._observe_fanout((head, bound), seen, factor)
        self._observe_keys(observation, time)

    def _observe_fanout(self, prefix: Prefix, seen: FanoutSeen, factor: float) -> None:
        """Let older observations weigh less, and only as much as it takes for enough rows."""
        known = self._fanouts.get(prefix)
        if known is not None and known.sampled:
            missing = max(0.0, ENOUGH_SAMPLED - seen.sampled) / known.sampled
            seen += known.scaled(min(factor, missing))
        self._fanouts[prefix] = seen

    def _observe_stream(self, stream: _Stream, seen: StreamSeen | None, elapsed: float) -> None:
        """Update the sums of one stream; `seen` is None if the batch has no rows of it."""
        # For the first batch, the time in which its rows arrived is not known, and `elapsed` is 0.
        if elapsed:
            stream.rate.add(0 if seen is None else seen.entered, elapsed, self._weight(elapsed))
        if seen is None:
            return
        stream.size.add(seen.size, seen.received)
        stream.late.add(seen.late, seen.received)
        stream.held = seen.held
        if seen.behind is not None:
            stream.lateness = max(stream.lateness or 0.0, seen.behind / SECOND)
        if seen.newest is not None:
            if stream.newest is not None and seen.newest > stream.newest:
                passed = (seen.newest - stream.newest) / SECOND
                stream.event_rate.add(seen.entered, passed, self._weight(passed))
            stream.newest = seen.newest if stream.newest is None else max(stream.newest, seen.newest)

    def _weight(self, seconds: float) -> float:
        """The weight of a batch that stands for this many seconds: at most one half-life counts.

        So a batch after a pause of hours does not outweigh all others.
        """
        return min(1.0, self._half_life / seconds)

    def _observe_keys(self, observation: Observation, time: float) -> None:
        """Add key sketches. Sketches cannot fade, so every two half-lives a new generation replaces the older one."""
        if abs(time - self._generation_started) > 2 * self._half_life:
            self._keys = [{}, self._keys[0]]
            self._generation_started = time
        for key, sketch in observation.keys.items():
            self._keys[0].setdefault(key, KeySketch()).merge(sketch)

    def snapshot(self) -> Snapshot:
        """The statistics at this time."""
        sketches = self._sketches()
        fanouts = {prefix: _interval(seen, seen.rows) for prefix, seen in self._fanouts.items() if seen.rows}
        shares = self._shares()
        estimated = self._estimated(sketches, frozenset(shares))
        classes = self._query.graph.classes
        keys = {
            str(classes[class_number].key(alias)): KeyFigures(sketch.distinct, sketch.frequent())
            for (alias, class_number), sketch in sketches.items()
        }
        streams = {alias: stream.figures for alias, stream in self._streams.items()}
        equalities = dict(self._equalities(sketches))
        figures = streams, fanouts, shares | estimated, keys
        cells = tuple(self._cells(sketches))
        return Snapshot(self._time or 0.0, *figures, frozenset(estimated), equalities, cells)

    def _cells(self, sketches: Mapping[KeyColumn, KeySketch]) -> Iterator[Cells]:
        for class_number, attribute_class in enumerate(self._query.graph.classes):
            by_stream = {
                alias: sketches[alias, class_number]
                for alias in self._query.aliases
                if (alias, class_number) in sketches
            }
            yield from cells_of(attribute_class, by_stream)

    def _shares(self) -> dict[frozenset[str], Interval]:
        """The shares of pairs. A pair has one share, whichever of its streams is the head."""
        sums: dict[frozenset[str], FanoutSeen] = {}
        for (_, bound), seen in self._fanouts.items():
            if seen.pairs:
                sums[bound] = sums[bound] + seen if bound in sums else seen
        return {bound: _interval(seen, seen.pairs) for bound, seen in sums.items()}

    def _equalities(self, sketches: Mapping[KeyColumn, KeySketch]) -> Iterator[tuple[str, float]]:
        """The equalities beside a band, with the shares of pairs that have equal keys."""
        graph = self._query.graph
        for band in graph.bands:
            one, other = (alias for alias in graph.streams if alias in band.sources)
            for class_number, attribute_class in enumerate(graph.classes):
                ours, theirs = sketches.get((one, class_number)), sketches.get((other, class_number))
                share = None if ours is None or theirs is None else estimate_share(ours, theirs)
                if share is not None:
                    yield f"{attribute_class.key(one)} = {attribute_class.key(other)}", share

    def _sketches(self) -> dict[KeyColumn, KeySketch]:
        merged: dict[KeyColumn, KeySketch] = {}
        for generation in self._keys:
            for key, sketch in generation.items():
                merged.setdefault(key, KeySketch()).merge(sketch)
        return merged

    def _estimated(
        self, sketches: Mapping[KeyColumn, KeySketch], known: frozenset[frozenset[str]]
    ) -> dict[frozenset[str], Interval]:
        """The shares of pairs that were not probed, estimated from their keys.

        Conditions other than equalities are assumed to pass all rows, and several equalities to be independent. At
        most, all of them pass what the strictest one passes.
        """
        estimates: dict[frozenset[str], Interval] = {}
        for (alias, class_number), sketch in sketches.items():
            for (other, other_class), other_sketch in sketches.items():
                ends = frozenset((alias, other))
                if class_number == other_class and alias < other and ends not in known:
                    share = estimate_share(sketch, other_sketch)
                    if share is not None:
                        before, most = estimates.get(ends, Interval(1.0, 1.0)), largest_share(sketch, other_sketch)
                        estimates[ends] = Interval(before.estimate * share, min(before.most, max(share, most)))
        return estimates


def _interval(seen: FanoutSeen, whole: float) -> Interval:
    """The ratio of combinations to a whole."""
    return Interval(seen.combinations / whole, seen.most / whole)
