"""What came of a simulation: results, what crossed each link, how long results took."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from braid.hosts.simulated.changes import SimulatedChange
from braid.hosts.simulated.links import Crossing
from braid.hosts.simulated.trace import Event
from braid.model.statistics import Statistics
from braid.planning.cost.bill import Bill
from braid.planning.deployment import Deployment
from braid.runtime.sites.traffic import Traffic


@dataclass(frozen=True, eq=False)
class Simulation:
    """A deployment that has run in virtual time.

    `results` are the rows of the query. `links` tells what has crossed each link, and what was planned to; `bill` what
    the plan expected to pay per second, and `seconds` how many seconds of event time went by. `statistics` are those of
    the plan, measured on the streams if none were given. `latencies` are the seconds from the event time of each result
    until it was at the sink. `timeline` is what happened, in order. `changes` are the plan changes, and `messages`
    counts what sites have told each other about them, by kind. `crossings` are the bytes that have crossed links, one
    batch after the other.
    """

    deployment: Deployment
    results: pa.Table
    links: Mapping[str, Traffic]
    latencies: NDArray[np.float64]
    timeline: tuple[Event, ...]
    seconds: float
    changes: tuple[SimulatedChange, ...] = ()
    messages: Mapping[str, int] = field(default_factory=dict)
    crossings: tuple[Crossing, ...] = ()

    def traffic(self, link: str) -> Traffic:
        """What has crossed a link, which may be nothing."""
        return self.links.get(link, Traffic())

    @property
    def bill(self) -> Bill:
        return self.deployment.bill

    @property
    def statistics(self) -> Statistics:
        return self.deployment.statistics

    @property
    def measured(self) -> dict[str, float]:
        """Bytes per second of event time on each link that was used."""
        return {name: traffic.bytes / self.seconds for name, traffic in self.links.items()} if self.seconds else {}

    @property
    def latency(self) -> float | None:
        """The median seconds from event time to result; None if there was no result."""
        return float(np.median(self.latencies)) if len(self.latencies) else None


@dataclass(frozen=True, eq=False)
class Simulations:
    """Several queries that have run over one network at the same time, by name.

    `links` tells what has crossed each link for all of them. The `links` of one of them tell what its own joins have
    shipped; a join that others reuse counts for the query that makes it.
    """

    queries: Mapping[str, Simulation]
    links: Mapping[str, Traffic]

    def __getitem__(self, name: str) -> Simulation:
        return self.queries[name]

    def saved(self, other: Simulations) -> dict[str, int]:
        """How many bytes fewer than in another simulation have crossed each link; less than 0 if there were more."""
        links = dict.fromkeys([*other.links, *self.links])
        nothing = Traffic()
        return {link: other.links.get(link, nothing).bytes - self.links.get(link, nothing).bytes for link in links}
