"""The statistics of a running query: observations in, one snapshot out, in which the past fades.

Everything is a ratio of two sums (rows to seconds, matches to pairs), and both sums halve in each half-life, so that a
ratio is a mean in which a batch weighs as much as it saw, and half as much for each half-life that it is old.

Orders of magnitude fade slowly, though: ten half-lives after rows have stopped to match a thousand others, they still
seem to match one. So when the matches of a pair of streams break with what was known of them, the past is dropped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations

from braid.adapt.observation import Key, Observation
from braid.adapt.sketch import KeySketch, estimate_share
from braid.errors import ModelError
from braid.model.query import Query
from braid.model.statistics import Statistics, Subject

HALF_LIFE = 2.0
"""Seconds in which what was seen comes to weigh half as much."""

SECOND = 1_000_000
"""Microseconds, in which event time is counted."""

BATCHES_TO_BREAK = 2
"""One strange batch may be chance; so many in a row, strange in the same way, are a new world."""

FEWEST_TO_BREAK = 16
"""A batch with fewer rows that probe may be strange by chance, however many follow each other."""


@dataclass(frozen=True, slots=True)
class StreamFigures:
    """What is known of one stream; None is what is not.

    `rate` is in rows that enter the window per second of the monitor's clock, `event_rate` per second of event time,
    `size` in bytes per row, `population` in rows in the window, `lateness` the longest seen lately, in seconds, and
    `late` the share of rows that came too late.
    """

    rate: float | None = None
    event_rate: float | None = None
    size: float | None = None
    population: float | None = None
    lateness: float | None = None
    late: float | None = None

    def shared_by(self, copies: int) -> StreamFigures:
        """The figures of a stream of which each row was counted so often."""

        def share(figure: float | None) -> float | None:
            return None if figure is None else figure / copies

        return replace(
            self, rate=share(self.rate), event_rate=share(self.event_rate), population=share(self.population)
        )


@dataclass(frozen=True, slots=True)
class KeyFigures:
    """The join keys of a stream: how many distinct ones, and the part that each frequent one has of the rows.

    A key is a 64-bit word: the value itself, or a hash of it for texts and other long values.
    """

    distinct: float | None
    frequent: Mapping[int, float]


@dataclass(frozen=True)
class Snapshot:
    """What a monitor knew at one moment; it does not change any more. Some shares are only `estimated`, by keys."""

    time: float
    streams: Mapping[str, StreamFigures]
    shares: Mapping[frozenset[str], float]
    keys: Mapping[str, KeyFigures]
    estimated: frozenset[frozenset[str]] = frozenset()

    @property
    def statistics(self) -> Statistics:
        """The figures that plans are costed with."""
        rates = {
            alias: figures.event_rate if figures.rate is None else figures.rate
            for alias, figures in self.streams.items()
        }
        selectivities: dict[Subject, float] = dict.fromkeys(self._empty_pairs(), 1.0)
        selectivities |= {ends: share for ends, share in self.shares.items()}  # noqa: C416
        return Statistics(
            rates={alias: rate for alias, rate in rates.items() if rate is not None},
            sizes={alias: figures.size for alias, figures in self.streams.items() if figures.size is not None},
            populations={
                alias: figures.population for alias, figures in self.streams.items() if figures.population is not None
            },
            selectivities=selectivities,
        )

    def _empty_pairs(self) -> Iterator[frozenset[str]]:
        """Pairs of streams one of which has no rows and brings none: nothing is known of them, and any will do."""
        empty = {alias for alias, known in self.streams.items() if known.population == 0 and not known.rate}
        return (frozenset(pair) for pair in combinations(self.streams, 2) if not empty.isdisjoint(pair))


@dataclass(slots=True)
class _Ratio:
    """Two sums that fade together."""

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


class _Share:
    """The share of the pairs of two streams that match."""

    def __init__(self) -> None:
        self._known, self._strange, self._strange_side = _Ratio(), _Ratio(), 0
        self.broke = False
        """Whether the batch that came last made the past forgotten."""

    @property
    def value(self) -> float | None:
        return self._known.value

    def fade(self, factor: float) -> None:
        """What is known gets older, whether or not the next batch tells anything of these streams."""
        self._known.fade(factor)
        self._strange.fade(factor)
        self.broke = False

    def observe(self, matches: float, pairs: float, probes: float) -> None:
        """Take in a batch. One that breaks with the past waits for the next: if that does so too, it alone counts.

        The first of them may have begun before the break.
        """
        side = self._side(matches, pairs, probes)
        self.broke = side != 0 and side == self._strange_side
        if self.broke:
            self._known = _Ratio(matches, pairs)
        else:
            self._known.add(self._strange.part, self._strange.whole)
        waits = side != 0 and not self.broke
        self._strange, self._strange_side = (_Ratio(matches, pairs), side) if waits else (_Ratio(), 0)
        if side == 0:
            self._known.add(matches, pairs)

    def _side(self, matches: float, pairs: float, probes: float) -> int:
        """On which side of what is known a batch breaks with it: 1 for more matches, -1 for fewer, 0 if it does not."""
        if self.value is None or probes < FEWEST_TO_BREAK:
            return 0
        found, expected = matches / probes, self.value * pairs / probes
        return (1 if found > expected else -1) if _breaks(found, expected) else 0


def _breaks(found: float, expected: float) -> bool:
    """Whether matches of a row are of another order than expected; below one, they make little difference."""
    return max(found, expected) > 1 + 4 * min(found, expected)


@dataclass(slots=True)
class _Stream:
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
    """Takes observations in their order, each with its time in seconds; a clock that was set back is followed."""

    def __init__(self, query: Query, half_life: float = HALF_LIFE) -> None:
        if not half_life > 0:
            raise ModelError(f"a half-life of {half_life} seconds forgets everything at once; give more than 0")
        self._query = query
        self._half_life = half_life
        self._time: float | None = None
        self._streams = {alias: _Stream() for alias in query.aliases}
        self._pairs: dict[frozenset[str], _Share] = {}
        self._turned = 0.0
        self._keys: list[dict[Key, KeySketch]] = [{}, {}]

    def observe(self, seen: Observation, time: float) -> None:
        """Take in what was seen up to this time since the last."""
        elapsed = 0.0 if self._time is None else max(0.0, time - self._time)
        first, self._time = self._time is None, time
        factor = 0.5 ** (elapsed / self._half_life)
        for alias, stream in self._streams.items():
            for ratio in stream.ratios:
                ratio.fade(factor)
            if stream.lateness is not None:
                stream.lateness *= factor
            self._observe_stream(stream, seen, alias, 0.0 if first else elapsed)
        for share in self._pairs.values():
            share.fade(factor)
        self._observe_pairs(seen)
        self._observe_keys(seen, time)

    def _observe_pairs(self, seen: Observation) -> None:
        """Whichever of two streams is the head, it is the same share."""
        sums: dict[frozenset[str], tuple[float, float, float]] = {}
        for (head, probed), pair in seen.pairs.items():
            matches, pairs, probes = sums.get(frozenset((head, probed)), (0.0, 0.0, 0.0))
            pairs += pair.probes * seen.streams[probed].held
            sums[frozenset((head, probed))] = (matches + pair.matches, pairs, probes + pair.probes)
        for ends, told in sums.items():
            self._pairs.setdefault(ends, _Share()).observe(*told)

    def _observe_stream(self, stream: _Stream, seen: Observation, alias: str, elapsed: float) -> None:
        now = seen.streams.get(alias)
        # How long the rows of the first batch took to come is not known.
        if elapsed:
            stream.rate.add(0 if now is None else now.entered, elapsed, self._weight(elapsed))
        if now is None:
            return
        stream.size.add(now.size, now.received)
        stream.late.add(now.late, now.received)
        stream.held = now.held
        if now.behind is not None:
            stream.lateness = max(stream.lateness or 0.0, now.behind / SECOND)
        if now.newest is not None:
            if stream.newest is not None and now.newest > stream.newest:
                passed = (now.newest - stream.newest) / SECOND
                stream.event_rate.add(now.entered, passed, self._weight(passed))
            stream.newest = now.newest if stream.newest is None else max(stream.newest, now.newest)

    def _weight(self, seconds: float) -> float:
        """A batch that stands for hours, because nothing came, does not weigh more than what has not faded yet."""
        return min(1.0, self._half_life / seconds)

    def _observe_keys(self, seen: Observation, time: float) -> None:
        """Sketches do not fade: there are two, the one being filled and the one before it, which is left in time."""
        if abs(time - self._turned) > 2 * self._half_life:
            self._keys = [{}, self._keys[0]]
            self._turned = time
        for key, sketch in seen.keys.items():
            self._keys[0].setdefault(key, KeySketch()).merge(sketch)

    @property
    def agreed(self) -> int:
        """How many batches in a row tell what is known of matches now, as far as it is news."""
        return BATCHES_TO_BREAK if any(share.broke for share in self._pairs.values()) else 1

    def snapshot(self) -> Snapshot:
        """What is known now."""
        sketches = self._sketches()
        shares = {ends: min(1.0, ratio.value) for ends, ratio in self._pairs.items() if ratio.value is not None}
        estimated = self._estimated(sketches, frozenset(shares))
        classes = self._query.graph.classes
        keys = {
            str(classes[number].key(alias)): KeyFigures(sketch.distinct, sketch.frequent())
            for (alias, number), sketch in sketches.items()
        }
        streams = {alias: stream.figures for alias, stream in self._streams.items()}
        return Snapshot(self._time or 0.0, streams, shares | estimated, keys, frozenset(estimated))

    def _sketches(self) -> dict[Key, KeySketch]:
        merged: dict[Key, KeySketch] = {}
        for generation in self._keys:
            for key, sketch in generation.items():
                merged.setdefault(key, KeySketch()).merge(sketch)
        return merged

    def _estimated(
        self, sketches: Mapping[Key, KeySketch], known: frozenset[frozenset[str]]
    ) -> dict[frozenset[str], float]:
        """The shares of pairs that nobody has probed, from their keys; what is no equality is taken to let all pass."""
        found: dict[frozenset[str], float] = {}
        for (alias, number), sketch in sketches.items():
            for (other, same), theirs in sketches.items():
                ends = frozenset((alias, other))
                if number == same and alias < other and ends not in known:
                    share = estimate_share(sketch, theirs)
                    if share is not None:
                        found[ends] = found.get(ends, 1.0) * share
        return found
