"""An airline workload: five streams, and the queries of gate agents, terminals and monitors.

Rates and selectivities are those of the IFLOW paper (its figure 5). In five minutes, each of 1,500 flights has one
update, and each destination one weather report. In a minute, each flight being handled has two check-ins and four bags,
and each destination with sales one sale.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pyarrow as pa

from braid.model.duration import UNITS
from braid.model.expressions.expression import Call, Column, Literal
from braid.model.network.topology import Topology
from braid.model.predicate import Predicate
from braid.model.query import Query, Source, Star
from braid.model.statistics import Statistics, Subject
from braid.model.window import Range
from braid.workloads.workload import Request, Workload

MINUTE = UNITS["minute"]
RATES = {"FLIGHTS": 1500 / 300, "CHECKINS": 240 / 60, "BAGGAGE": 500 / 60, "WEATHER": 450 / 300, "SALES": 70 / 60}
ALIASES = {"FLIGHTS": "FL", "CHECKINS": "CI", "BAGGAGE": "BG", "WEATHER": "WR", "SALES": "SA"}
RECORD_BYTES = 100.0
FLIGHTS, TERMINALS, CITIES = 1500, 10, 450

FLIGHT_KEYS = {"FL": "NUM", "CI": "FLIGHT", "BG": "FLIGHT"}
CITY_KEYS = {"FL": "DEST", "WR": "CITY", "SA": "DEST"}
# A check-in or a bag is for one of 1,500 flights; a bag matches 2 of the 240 check-ins of a minute.
SELECTIVITIES = {
    frozenset({"FL", "CI"}): 1 / FLIGHTS,
    frozenset({"FL", "BG"}): 1 / FLIGHTS,
    frozenset({"CI", "BG"}): 2 / 240,
    frozenset({"FL", "WR"}): 1 / CITIES,
    frozenset({"FL", "SA"}): 1 / CITIES,
    frozenset({"WR", "SA"}): 1 / CITIES,
}


def airline(topology: Topology, *, queries: int = 300, seed: int = 1) -> Workload:
    """80% of the queries are by gate agents, 15% by terminals, and 5% by monitors; the sinks are random sites."""
    generator = np.random.default_rng(seed)
    sites = {stream: topology.names[int(generator.integers(len(topology.names)))] for stream in RATES}
    requests = []
    for kind in generator.choice(3, size=queries, p=[0.80, 0.15, 0.05]):
        query = (_gate, _terminal, _monitor)[int(kind)](generator)
        requests.append(Request(query, topology.names[int(generator.integers(len(topology.names)))]))
    return Workload(tuple(requests), airline_statistics(sites), topology)


def airline_statistics(sites: dict[str, str]) -> Statistics:
    """The figures of the paper; `sites` tells where each stream starts."""
    shares: dict[Subject, float] = {
        "FL.CARRIER_CODE = 'DL'": 0.5,
        **{f"FL.NUM = {flight}": 1 / FLIGHTS for flight in range(FLIGHTS)},
        **{f"FL.TERMINAL = {terminal}": 1 / TERMINALS for terminal in range(TERMINALS)},
    }
    for keys in (FLIGHT_KEYS, CITY_KEYS):
        for left, right in combinations(keys, 2):
            shares[str(_equal(left, keys[left], right, keys[right]))] = SELECTIVITIES[frozenset({left, right})]
    return Statistics(rates=RATES, sizes=dict.fromkeys(RATES, RECORD_BYTES), selectivities=shares, sites=sites)


def _gate(generator: np.random.Generator) -> Query:
    """The query of a gate agent about one flight."""
    flight = int(generator.integers(FLIGHTS))
    return _query({"FLIGHTS": 5, "BAGGAGE": 1, "CHECKINS": 1}, [_is("FL", "NUM", flight)])


def _terminal(generator: np.random.Generator) -> Query:
    """The query for the displays of one terminal."""
    filters = [_is("FL", "TERMINAL", int(generator.integers(TERMINALS))), _is("FL", "CARRIER_CODE", "DL")]
    return _query({"FLIGHTS": 5, "WEATHER": 5, "CHECKINS": 1, "BAGGAGE": 1}, filters)


def _monitor(generator: np.random.Generator) -> Query:
    """A query over flights and some of the other streams, with windows of one to five minutes."""
    streams = list(RATES)
    count = int(generator.integers(2, len(streams) + 1))
    chosen = {"FLIGHTS", *generator.permutation(streams[1:])[: count - 1].tolist()}
    return _query({stream: int(generator.integers(1, 6)) for stream in streams if stream in chosen}, [])


def _query(minutes: dict[str, int], filters: list[Predicate]) -> Query:
    sources = tuple(
        Source(ALIASES[stream], stream, Range(length * MINUTE, MINUTE)) for stream, length in minutes.items()
    )
    aliases = [source.alias for source in sources]
    joins: list[Predicate] = []
    for keys in (FLIGHT_KEYS, CITY_KEYS):
        joined = [alias for alias in aliases if alias != "FL" and alias in keys]
        joins += [_equal("FL", keys["FL"], alias, keys[alias]) for alias in joined]
    predicates = (*joins, *filters)
    text = f"SELECT * FROM {', '.join(map(str, sources))} WHERE {' AND '.join(map(str, predicates))}"
    return Query(text, sources, (Star(None),), predicates)


def _equal(left: str, left_key: str, right: str, right_key: str) -> Predicate:
    return Predicate(Call("equal", (Column(left, left_key), Column(right, right_key))))


def _is(alias: str, column: str, value: int | str) -> Predicate:
    kind = pa.int64() if isinstance(value, int) else pa.string()
    return Predicate(Call("equal", (Column(alias, column), Literal(value, kind))))
