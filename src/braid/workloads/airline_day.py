"""A day at an airline: the rows of five streams, at the rates of the IFLOW paper's figure 5, and three queries.

A flight has one update in five minutes. The flights being handled, a range of flight numbers that moves on slowly, have
two check-ins and four bags a minute each. A destination has one forecast in five minutes; destinations with sales have
one sale a minute.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa

from braid.workloads.airline import CITIES, FLIGHTS, RATES, TERMINALS

QUERIES = {
    "gate agent": """\
SELECT FL.GATE, BG.STATUS AS BAG, CI.STATUS AS PASSENGER
FROM FLIGHTS [RANGE 5 MINUTES SLIDE 1 MINUTE] AS FL, CHECKINS [RANGE 1 MINUTE SLIDE 1 MINUTE] AS CI,
     BAGGAGE [RANGE 1 MINUTE SLIDE 1 MINUTE] AS BG
WHERE FL.NUM = CI.FLIGHT AND FL.NUM = BG.FLIGHT AND FL.NUM = 119""",
    "terminal": """\
SELECT FL.NUM, FL.GATE, BG.AREA, CI.STATUS, WR.FORECAST
FROM FLIGHTS [RANGE 5 MINUTES SLIDE 1 MINUTE] AS FL, WEATHER [RANGE 5 MINUTES SLIDE 1 MINUTE] AS WR,
     CHECKINS [RANGE 1 MINUTE SLIDE 1 MINUTE] AS CI, BAGGAGE [RANGE 1 MINUTE SLIDE 1 MINUTE] AS BG
WHERE FL.DEST = WR.CITY AND FL.NUM = CI.FLIGHT AND FL.NUM = BG.FLIGHT AND FL.TERMINAL = 3 AND FL.CARRIER_CODE = 'DL'""",
    "monitoring": """\
SELECT FL.NUM, SA.AMOUNT, WR.FORECAST
FROM FLIGHTS [RANGE 3 MINUTES SLIDE 1 MINUTE] AS FL, SALES [RANGE 2 MINUTES SLIDE 1 MINUTE] AS SA,
     WEATHER [RANGE 4 MINUTES SLIDE 2 MINUTES] AS WR
WHERE FL.DEST = SA.DEST AND FL.DEST = WR.CITY""",
}
"""One query of each of the paper's three kinds."""

PER_MINUTE = {stream: round(rate * 60) for stream, rate in RATES.items()}
HANDLED, SELLING, CYCLE = 120, 70, 5
"""Flights being handled at a time, destinations with sales, and minutes between two updates of a flight or a city."""

MICROSECONDS = 60_000_000
"""One minute in microseconds."""
START = int(datetime(2024, 7, 1, 6, tzinfo=UTC).timestamp()) * 1_000_000


@dataclass(frozen=True)
class Burst:
    """A stream has `times` as many rows in the minutes from `first` up to, but not including, `last`."""

    stream: str
    first: int
    last: int
    times: int = 10

    def at(self, minute: int) -> bool:
        return self.first <= minute < self.last


@dataclass(frozen=True)
class Airline:
    """The rows of each minute of the day; the same seed gives the same rows."""

    seed: int = 1
    burst: Burst | None = None

    def minute(self, minute: int) -> dict[str, pa.Table]:
        """The rows of each stream in one minute, in order of event time."""
        generator = np.random.default_rng([self.seed, minute])
        counts = dict(PER_MINUTE)
        if self.burst is not None and self.burst.at(minute):
            counts[self.burst.stream] *= self.burst.times
        flights = self._turn(FLIGHTS, minute, counts["FLIGHTS"], generator)
        bags, passengers = (minute + generator.integers(0, HANDLED, counts[of]) for of in ("BAGGAGE", "CHECKINS"))
        columns: Mapping[str, Mapping[str, object]] = {
            "FLIGHTS": {
                "NUM": flights,
                "GATE": [f"{'ABCDEFGHIJ'[flight % TERMINALS]}{flight // TERMINALS % 30 + 1}" for flight in flights],
                "TERMINAL": flights % TERMINALS,
                "DEST": [_city(flight * 7 % CITIES) for flight in flights],
                "CARRIER_CODE": [("DL", "AF")[flight // TERMINALS % 2] for flight in flights],
            },
            "CHECKINS": {
                "FLIGHT": passengers % FLIGHTS,
                "STATUS": generator.choice(["at desk", "at gate", "boarded"], len(passengers)),
            },
            "BAGGAGE": {
                "FLIGHT": bags % FLIGHTS,
                "AREA": generator.choice(["hall", "belt", "hold"], len(bags)),
                "STATUS": generator.choice(["checked", "loaded", "rerouted"], len(bags)),
            },
            "WEATHER": {
                "CITY": [_city(city) for city in self._turn(CITIES, minute, counts["WEATHER"], generator)],
                "FORECAST": generator.choice(["clear", "rain", "storm"], counts["WEATHER"]),
            },
            "SALES": {
                "DEST": [_city(city * 6) for city in generator.integers(0, SELLING, counts["SALES"])],
                "AMOUNT": generator.integers(80, 900, counts["SALES"]),
            },
        }
        return {stream: _table(minute, generator, content) for stream, content in columns.items()}

    def _turn(self, members: int, minute: int, count: int, generator: np.random.Generator) -> np.ndarray:
        """The members with an update in a minute: each has one in every cycle; additional ones are drawn at random."""
        order = np.random.default_rng([self.seed, members, minute // CYCLE]).permutation(members)
        share = members // CYCLE
        turn = order[minute % CYCLE * share :][: min(share, count)]
        return np.concatenate([turn, generator.integers(0, members, count - len(turn))])


def _table(minute: int, generator: np.random.Generator, content: Mapping[str, object]) -> pa.Table:
    columns = {name: pa.array(values) for name, values in content.items()}
    moments = np.sort(generator.integers(0, MICROSECONDS, len(next(iter(columns.values())))))
    times = pa.array(START + minute * MICROSECONDS + moments, pa.timestamp("us", "UTC"))
    return pa.table({"ts": times, **columns})


def _city(number: int) -> str:
    return f"C{number:03d}"
