"""Made-up streams whose rates and matches are known, observed through noise: for tests of monitors and controllers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from braid.adapt.observation import FanoutSeen, Observation, StreamSeen
from braid.language import parse
from braid.model.query import Query

SECOND = 1_000_000
"""One second in microseconds."""

WINDOW = 10
"""The length of all windows, in seconds."""


def star(streams: int) -> Query:
    """A join of streams a, b, c, .. on one key."""
    names = "abcdefghijklmnop"[:streams]
    tables = ", ".join(f"{name} [RANGE {WINDOW} SECONDS]" for name in names)
    condition = " AND ".join(f"a.k = {name}.k" for name in names[1:])
    return parse(f"SELECT a.n FROM {tables} WHERE {condition}")


@dataclass(frozen=True)
class World:
    """The rate of each stream in rows per second, and the fan-out of each pair of streams.

    The fan-out is the number of rows, in a window of 1,000 rows of one stream, that match a row of the other.
    """

    rates: Mapping[str, float]
    fanouts: Mapping[frozenset[str], float]

    def share(self, *pair: str) -> float:
        """The share of all pairs of rows of two streams that match."""
        return self.fanouts[frozenset(pair)] / 1_000

    def see(self, generator: np.random.Generator, time: float, sampled: int = 256) -> Observation:
        """Observe one second: counts are drawn at random, and matches are counted on a sample of the rows."""
        streams, fanouts = {}, {}
        for name, rate in self.rates.items():
            entered = int(generator.poisson(rate))
            held = int(generator.poisson(rate * WINDOW))
            streams[name] = StreamSeen(entered, entered, 0, held, entered * 20, int(time * SECOND), 0)
        for head, seen in streams.items():
            probes = min(sampled, seen.entered)
            for stream in streams:
                if stream != head and probes:
                    held = streams[stream].held
                    matches = generator.poisson(probes * self.share(head, stream) * held)
                    rows, scale = float(seen.entered), seen.entered / probes
                    fanouts[head, frozenset((head, stream))] = FanoutSeen(
                        rows, matches * scale, matches * scale**2, rows * held, probes, rows
                    )
        return Observation(streams, fanouts)


Weather = Callable[[int], World]
"""The world in each second."""


def world(rates: Mapping[str, float], fanout: float = 1.0, **pairs: float) -> World:
    """A world where all pairs of streams have the same fan-out, except those given by name, as in `ab=0.1`."""
    fanouts = {frozenset(ends): fanout for ends in combinations(sorted(rates), 2)}
    return World(rates, fanouts | {frozenset(pair): figure for pair, figure in pairs.items()})
