"""Made-up streams with known figures, seen through noise: what a controller is tested in."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from braid.adapt.observation import Observation, PairSeen, StreamSeen
from braid.language import parse
from braid.model.query import Query

SECOND = 1_000_000
WINDOW = 10


def star(streams: int) -> Query:
    """A join of streams a, b, c, .. on one key."""
    names = "abcdefghijklmnop"[:streams]
    tables = ", ".join(f"{name} [RANGE {WINDOW} SECONDS]" for name in names)
    condition = " AND ".join(f"a.k = {name}.k" for name in names[1:])
    return parse(f"SELECT a.n FROM {tables} WHERE {condition}")


@dataclass(frozen=True)
class World:
    """Rates in rows per second, and for each pair how many rows of a window of 1,000 match a row."""

    rates: Mapping[str, float]
    fanouts: Mapping[frozenset[str], float]

    def share(self, *ends: str) -> float:
        return self.fanouts[frozenset(ends)] / 1_000

    def see(self, generator: np.random.Generator, time: float, sampled: int = 64) -> Observation:
        """One second of it: counts as they would be drawn, pairs by a sample of the rows."""
        streams, pairs = {}, {}
        for name, rate in self.rates.items():
            entered = int(generator.poisson(rate))
            held = int(generator.poisson(rate * WINDOW))
            streams[name] = StreamSeen(entered, entered, 0, held, entered * 20, int(time * SECOND), 0)
        for head, seen in streams.items():
            probes = min(sampled, seen.entered)
            for stream in streams:
                if stream != head and probes:
                    matches = generator.poisson(probes * self.share(head, stream) * streams[stream].held)
                    pairs[head, stream] = PairSeen(seen.entered, matches * seen.entered / probes)
        return Observation(streams, pairs)


Weather = Callable[[int], World]
"""The world in each second."""


def world(rates: Mapping[str, float], fanout: float = 1.0, **pairs: float) -> World:
    """All pairs have the same fan-out but those that are named, as in `ab=0.1`."""
    names = sorted(rates)
    fanouts = {frozenset((left, right)): fanout for left in names for right in names if left != right}
    return World(rates, fanouts | {frozenset(ends): figure for ends, figure in pairs.items()})
