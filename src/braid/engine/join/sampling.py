"""How streams match each other, whatever the plan: a sample of new rows goes along every order of probes.

The counts of the running plan say nothing about other plans. And what two streams have in common says little about
three: keys are skewed, conditions depend on each other, and rows that refer to others come after them. So the sample
does what the engine would do. The sampled rows of a stream probe a window, some of the combinations that they make
probe the next one, and so on, for every set of streams that some order joins first. As in a step, a row sees new rows
only of the streams before its own.

The result is the fan-out of each set: the number of combinations that a new row makes, and how uncertain that is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate, combinations

import numpy as np

from braid.engine.arrays.jit import Words
from braid.engine.join.combinations import Combinations, rows_with
from braid.engine.join.dataflow import Dataflow
from braid.engine.join.matcher import Matcher
from braid.engine.window.window_state import KeyClasses, WindowState
from braid.model.window import FOREVER

MOST_SAMPLED = 256
"""The most rows sampled per stream, and the most combinations kept of a set of streams."""

FIRST_PROBES = 16
"""So many rows of a sample probe first. If they have many matches, fewer of the others follow."""

MOST_MATCHES = 1 << 13
"""About the most matches that the sample of a set of streams looks for."""

MOST_SCANNED = 1 << 14
"""About the most rows of a window that a sample compares if the window has no index for it."""

LARGEST_SCANNED = 1 << 16
"""A larger window is not sampled without an index, not even with one row."""

MOST_STREAMS = 5
"""The most streams for which all sets are sampled. With more, those are that a greedy order chooses from."""

MOST_SETS = 300
"""About the most sets that are sampled with more streams. Pairs always are."""

COST_OF_A_SET = 20_000
"""The work of sampling one set of streams and of comparing plans by it, in probes and candidates."""

COST_OF_A_SAMPLE = 400_000
"""The work of any sample: of sketching keys, and of comparing plans."""


@dataclass(frozen=True, slots=True)
class Fanout:
    """How many combinations of the streams `bound` a new row of `head` makes: the mean, and the variance of that mean.

    `head` has `rows` new rows. In the last join of the sample, `probes` rows probed; if each had found one match, the
    mean were `per_match`. `seen` is the number of rows in the other window, if there is only one other stream.
    """

    head: str
    bound: frozenset[str]
    rows: int
    probes: int
    mean: float
    variance: float
    per_match: float
    seen: int = 0


@dataclass(frozen=True)
class _Sample:
    """Some of the combinations that sampled rows make, and the fan-out that was estimated on the way to them."""

    combinations: Combinations
    probes: int
    mean: float = 1.0
    variance: float = 0.0
    per_match: float = 1.0


class Sampler:
    """Samples the windows of a dataflow."""

    def __init__(self, dataflow: Dataflow) -> None:
        self._windows = {alias: inlet.window for alias, inlet in dataflow.inlets.items()}
        self._dataflow = dataflow
        self._graph = dataflow.program.query.graph
        self._classes = {alias: self._graph.classes_of(alias) for alias in self._windows}
        self._order = [name for name in dataflow.order if name in self._windows]
        self._matchers: dict[tuple[frozenset[str], str, KeyClasses], Matcher] = {}
        self._most_probes, sets = _reach(len(self._windows))
        self.cost = COST_OF_A_SAMPLE + COST_OF_A_SET * sets
        """About the work of a sample, in probes and candidates."""

    def sample(self, new: Mapping[str, int], most: int) -> tuple[Fanout, ...]:
        """The fan-outs of new rows; `new` is the number of new rows of each stream, of which at most `most` are taken.

        No index is built for a sample: that would cost more than it is worth. A window without the right index is
        compared row by row with very few rows, or left out if it is large.
        """
        limits = {alias: _first_new(window, new[alias]) for alias, window in self._windows.items()}
        fanouts: list[Fanout] = []
        for head in self._order:
            window, first = self._windows[head], limits[head]
            rows = window.next_id - first
            if rows:
                # Rows lie in the order of their keys, so evenly spaced rows are a fair sample. Shuffled, any part is.
                ids = first + np.arange(min(rows, most)) * rows // min(rows, most)
                ids = np.random.default_rng(0).permutation(ids)
                sampled = rows_with(self._dataflow.bases[head], ids, -FOREVER)
                fanouts += self._fanouts(head, rows, sampled, limits)
            limits[head] = window.next_id
        return tuple(fanouts)

    def key_words(self, new: Mapping[str, int]) -> Iterator[tuple[str, int, Words]]:
        """The key words of the new rows, by stream and attribute class (see `Engine.key_words`)."""
        for alias, window in self._windows.items():
            first = _first_new(window, new[alias])
            for class_number in self._classes[alias]:
                for words in window.word_stretches(class_number, first, window.next_id):
                    yield alias, class_number, words

    def _fanouts(self, head: str, rows: int, sampled: Combinations, limits: Mapping[str, int]) -> Iterator[Fanout]:
        """The fan-out of each set of streams, from small sets to large ones."""
        samples = {frozenset([head]): _Sample(sampled, len(sampled))}
        for bound in self._sets(head, samples):
            sample = self._grow(bound, samples, limits)
            if sample is not None:
                samples[bound] = sample
                (other, *more) = bound - {head}
                seen = 0 if more else limits[other] - self._windows[other].tail
                figures = sample.probes, sample.mean, sample.variance, sample.per_match
                yield Fanout(head, bound, rows, *figures, seen)

    def _sets(self, head: str, samples: Mapping[frozenset[str], _Sample]) -> Iterator[frozenset[str]]:
        """The sets to sample: all, or those among which an order chooses that takes the fewest combinations each time.

        Ask for a set only when the ones before are in `samples`, as far as they can be sampled.
        """
        others = [alias for alias in self._windows if alias != head]
        if len(self._windows) <= MOST_STREAMS:
            sizes = range(1, len(others) + 1)
            yield from (frozenset([head, *chosen]) for size in sizes for chosen in combinations(others, size))
            return
        bound = frozenset([head])
        for _ in range(self._most_probes):
            larger = [bound | {other} for other in others if other not in bound]
            yield from larger
            sampled = [each for each in larger if each in samples]
            if not sampled:
                return
            bound = min(sampled, key=lambda each: samples[each].mean)

    def _grow(
        self, bound: frozenset[str], samples: Mapping[frozenset[str], _Sample], limits: Mapping[str, int]
    ) -> _Sample | None:
        """The sample of a set, from that set without one stream which has the fewest combinations for each row.

        None if no such sample has any rows, or the last window cannot be sampled.
        """
        ways = []
        for stream in sorted(bound):
            sample = samples.get(bound - {stream})
            if sample is not None and len(sample.combinations):
                matcher = self._matcher(bound - {stream}, stream)
                if matcher is not None:
                    ways.append((sample.mean, stream, sample, matcher))
        if not ways:
            return None
        _, stream, sample, matcher = min(ways, key=lambda way: way[:2])
        return _extend(sample, matcher, limits[stream])

    def _matcher(self, bound: frozenset[str], stream: str) -> Matcher | None:
        """Probes a window with combinations of some streams; None without a condition, or if it would take too long."""
        if not self._graph.joined(bound, stream):
            return None
        index = self._index(bound, stream)
        if not index and len(self._windows[stream]) > LARGEST_SCANNED:
            return None
        by = (bound, stream, index)
        if by not in self._matchers:
            self._matchers[by] = self._dataflow.matchers.for_sample(*by)
        return self._matchers[by]

    def _index(self, bound: frozenset[str], stream: str) -> KeyClasses:
        """The index that a window has on all keys, on one of them or on none, with the band if possible; () without."""
        class_numbers = self._dataflow.class_numbers
        keys = tuple(class_numbers[key] for key in self._graph.classes_between(bound, stream))
        band_number = self._graph.band_between(bound, [stream])
        band = () if band_number is None else (band_number,)
        possible = [chosen_keys + last for chosen_keys in (keys, *((key,) for key in keys), ()) for last in (band, ())]
        return next((index for index in possible if self._windows[stream].has_index(index)), ())


def _reach(streams: int) -> tuple[int, int]:
    """After how many probes of each stream's rows sampling ends, and how many sets are sampled of all streams."""
    others = streams - 1
    if streams <= MOST_STREAMS:
        return others, streams * (2**others - 1)
    sets = list(accumulate(streams * (others - probes) for probes in range(others)))
    most_probes = max(1, sum(each <= MOST_SETS for each in sets))
    return most_probes, sets[most_probes - 1]


def _extend(sample: _Sample, matcher: Matcher, limit: int) -> _Sample:
    """Let the combinations of a sample probe a window below the id `limit`."""
    probing = sample.combinations
    if not matcher.classes:
        probing = probing.take(slice(max(1, MOST_SCANNED // max(1, len(matcher.window)))))
    matches = [_Matches.none()]
    probes, match_count = 0, 0
    while probes < len(probing) and match_count < MOST_MATCHES:
        piece = FIRST_PROBES if not probes else max(1, (MOST_MATCHES - match_count) * probes // max(1, match_count))
        for rows in matcher.matches_of(probing.take(slice(probes, probes + piece)), limit):
            assert rows.positions is not None
            matches.append(_Matches(rows.positions + probes, rows.ids.copy(), rows.starts.copy(), rows.ends.copy()))
            match_count += len(rows)
        probes = min(probes + piece, len(probing))
    all_matches = _Matches.joined(matches)
    per_probe = np.bincount(all_matches.positions, minlength=probes)
    mean = match_count / probes
    # The variance that few probes show is uncertain, too: a single one shows none.
    variance = (float(per_probe.var()) + mean**2 / probes) / probes
    sampled = all_matches.take(
        np.arange(min(match_count, MOST_SAMPLED)) * match_count // max(1, min(match_count, MOST_SAMPLED))
    )
    return _Sample(
        Combinations(matcher.side, sampled.ids, sampled.starts, sampled.ends, probing, sampled.positions),
        probes,
        sample.mean * mean,
        # The variance of a product of two independent means.
        sample.mean**2 * variance + mean**2 * sample.variance + variance * sample.variance,
        sample.mean,
    )


@dataclass(frozen=True, slots=True)
class _Matches:
    """Matches of probing combinations: the positions of these, ids and common lifetimes."""

    positions: Words
    ids: Words
    starts: Words
    ends: Words

    @classmethod
    def none(cls) -> _Matches:
        return cls(*(np.empty(0, np.int64) for _ in range(4)))

    @classmethod
    def joined(cls, pieces: Iterable[_Matches]) -> _Matches:
        columns = zip(*((piece.positions, piece.ids, piece.starts, piece.ends) for piece in pieces), strict=True)
        return cls(*(np.concatenate(column) for column in columns))

    def take(self, chosen: Words) -> _Matches:
        return _Matches(self.positions[chosen], self.ids[chosen], self.starts[chosen], self.ends[chosen])


def _first_new(window: WindowState, new: int) -> int:
    """The id of the first new row, or of the first row in the window if new rows have left it.

    An id remembered from before the step would not do: a window that makes room gives its old rows new ids.
    """
    return max(window.next_id - new, window.tail)
