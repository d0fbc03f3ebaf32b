"""What may go wrong in a simulation, chosen by its seed."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from braid.errors import ModelError, did_you_mean
from braid.hosts.simulated.links import Slowdown
from braid.model.network.topology import Topology

SLOWER = 20.0
"""A link that slows down takes this many times as long."""


class Absence(NamedTuple):
    """A site is gone for a while, with everything that was in its memory."""

    begin: float
    end: float
    site: str


class Partition(NamedTuple):
    """Two sides of a network cannot reach each other for a while."""

    begin: float
    end: float
    side: tuple[str, ...]


class Restart(NamedTuple):
    """What keeps the channels is gone for a while. `operations` on channels still succeed after it has begun to go."""

    begin: float
    end: float
    operations: int


class Silence(NamedTuple):
    """A stream brings nothing for a while, and then all at once."""

    begin: float
    end: float
    alias: str


@dataclass(frozen=True)
class Faults:
    """How much goes wrong.

    Sites: `crash_rate` is the chance that the process of a site dies at each of several points of every step, and is
    back at once, and that the site dies at each control message that it sends or receives. `absences` is how often a
    site dies at any other moment. It may be the one of the coordinator. A site comes back with its last checkpoint.

    Links: `outages` is how often a link carries nothing, `slowdowns` how often one is slow, and `partitions` how often
    the network falls in two sides that cannot reach each other.

    Channels and messages: `restarts` is how often the broker that keeps all channels restarts: meanwhile nothing can be
    read or published, and what is published at that moment may be there or not. `repeats` is the chance that a batch
    or a control message is delivered twice, `delays` the chance that a control message is late, so that later ones
    overtake it.

    Streams and clocks: `silences` is how often a stream brings nothing. The clocks of sites differ from the true time
    by up to `skew` seconds.

    Absences, outages and everything else that lasts takes up to `seconds`. Nothing goes wrong after the share `until`
    of the time that the streams take.
    """

    crash_rate: float = 0.0
    absences: int = 0
    outages: int = 0
    slowdowns: int = 0
    partitions: int = 0
    restarts: int = 0
    repeats: float = 0.0
    delays: float = 0.0
    silences: int = 0
    skew: float = 0.0
    seconds: float = 2.0
    until: float = 1.0

    def __post_init__(self) -> None:
        for name in ("crash_rate", "repeats", "delays"):
            if not 0 <= getattr(self, name) < 1:
                raise ModelError(f"{name} is a chance from 0 to less than 1, not {getattr(self, name)}")
        for name in ("absences", "outages", "slowdowns", "partitions", "restarts", "silences", "skew", "seconds"):
            if getattr(self, name) < 0:
                raise ModelError(f"{name} must not be less than 0, and is {getattr(self, name)}")
        if not 0 <= self.until <= 1:
            raise ModelError(f"until is a share of the time, from 0 to 1, not {self.until}")

    def schedule(self, topology: Topology, aliases: Sequence[str], seconds: float, seed: int) -> Schedule:
        """When what goes wrong in a simulation of this many seconds."""
        chance = random.Random(f"faults {seed}")

        def intervals(count: int) -> list[tuple[float, float]]:
            begins = sorted(chance.uniform(0, self.until * seconds) for _ in range(count))
            return [(begin, begin + chance.uniform(0, self.seconds)) for begin in begins]

        sites, links = topology.names, [str(link) for link in topology.links]
        absences = [Absence(*interval, chance.choice(sites)) for interval in intervals(self.absences)]
        slowdowns = [Slowdown(*interval, chance.choice(links)) for interval in intervals(self.outages if links else 0)]
        slowdowns += [
            Slowdown(*interval, chance.choice(links), SLOWER) for interval in intervals(self.slowdowns if links else 0)
        ]
        partitions = []
        for interval in intervals(self.partitions if links else 0):
            side = frozenset(chance.sample(sites, chance.randint(1, len(sites) - 1)))
            partitions.append(Partition(*interval, tuple(sorted(side))))
            cut = [link for link in topology.links if (link.source in side) != (link.target in side)]
            slowdowns += [Slowdown(*interval, str(link)) for link in cut]
        restarts = [Restart(*interval, chance.randrange(6)) for interval in intervals(self.restarts)]
        silences = [Silence(*interval, chance.choice(aliases)) for interval in intervals(self.silences)]
        clocks = {site: chance.uniform(-self.skew, self.skew) for site in sites}
        return Schedule(
            tuple(absences), tuple(sorted(slowdowns)), tuple(partitions), tuple(restarts), tuple(silences), clocks
        )


@dataclass(frozen=True)
class Schedule:
    """The faults of one simulation that have a time. `clocks` tells how many seconds the clock of each site is ahead.

    The links that a partition cuts are among the `slowdowns`.
    """

    absences: tuple[Absence, ...] = ()
    slowdowns: tuple[Slowdown, ...] = ()
    partitions: tuple[Partition, ...] = ()
    restarts: tuple[Restart, ...] = ()
    silences: tuple[Silence, ...] = ()
    clocks: Mapping[str, float] | None = None

    def clock(self, site: str, now: float) -> float:
        """What the clock of a site shows."""
        return now + (self.clocks or {}).get(site, 0.0)

    def brings(self, alias: str, moment: float) -> float:
        """When a stream brings what it would bring at a moment."""
        for silence in self.silences:
            if silence.alias == alias and silence.begin <= moment < silence.end:
                moment = silence.end
        return moment


PROFILES = {
    "none": Faults(),
    "crashes": Faults(crash_rate=0.05),
    "absences": Faults(absences=4),
    "outages": Faults(outages=6),
    "slow links": Faults(slowdowns=6),
    "partitions": Faults(partitions=3),
    "broker": Faults(restarts=4),
    "messages": Faults(crash_rate=0.02, repeats=0.2, delays=0.2),
    "silent streams": Faults(silences=4, seconds=10.0),
    "clocks": Faults(skew=100.0),
    "all": Faults(
        crash_rate=0.02,
        absences=2,
        outages=2,
        slowdowns=2,
        partitions=1,
        restarts=2,
        repeats=0.1,
        delays=0.1,
        silences=2,
        skew=10.0,
    ),
}
"""Faults by name."""


def faults_of(faults: Faults | str | None) -> Faults:
    """Faults that were given as such or by the name of a profile."""
    if faults is None:
        return PROFILES["none"]
    if isinstance(faults, Faults):
        return faults
    if faults not in PROFILES:
        raise ModelError(f"there is no profile of faults called '{faults}'; {did_you_mean(faults, PROFILES)}")
    return PROFILES[faults]
