"""What may go wrong in a simulation, chosen by its seed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from braid.errors import ModelError, did_you_mean
from braid.hosts.simulated.links import Outage


class Absence(NamedTuple):
    """A site is gone for a while, with everything that was in its memory."""

    begin: float
    end: float
    site: str


@dataclass(frozen=True)
class Faults:
    """How much goes wrong.

    `crash_rate` is the chance that the process of a site dies at each of several points of every step, and is back at
    once. `absences` is how often a site dies and stays away for a while; it may be the one of the coordinator.
    `outages` is how often a link carries nothing for a while. Each of them takes up to `seconds`. `repeats` is the
    chance that a batch is delivered twice.
    """

    crash_rate: float = 0.0
    absences: int = 0
    outages: int = 0
    repeats: float = 0.0
    seconds: float = 2.0

    def __post_init__(self) -> None:
        for name in ("crash_rate", "repeats"):
            if not 0 <= getattr(self, name) < 1:
                raise ModelError(f"{name} is a chance from 0 to less than 1, not {getattr(self, name)}")
        for name in ("absences", "outages", "seconds"):
            if getattr(self, name) < 0:
                raise ModelError(f"{name} must not be less than 0, and is {getattr(self, name)}")

    def absences_of(self, sites: Sequence[str], seconds: float, chance: random.Random) -> list[Absence]:
        """When which sites are away, in a simulation of this many seconds."""
        drawn = [self._interval(seconds, chance) for _ in range(self.absences)]
        return sorted(Absence(*interval, chance.choice(sites)) for interval in drawn)

    def outages_of(self, links: Sequence[str], seconds: float, chance: random.Random) -> list[Outage]:
        """When which links carry nothing."""
        if not links:
            return []
        drawn = [self._interval(seconds, chance) for _ in range(self.outages)]
        return sorted(Outage(*interval, chance.choice(links)) for interval in drawn)

    def _interval(self, seconds: float, chance: random.Random) -> tuple[float, float]:
        begin = chance.uniform(0, seconds)
        return begin, begin + chance.uniform(0, self.seconds)


PROFILES = {
    "none": Faults(),
    "crashes": Faults(crash_rate=0.05),
    "absences": Faults(absences=4),
    "outages": Faults(outages=6),
    "all": Faults(crash_rate=0.02, absences=3, outages=4, repeats=0.1),
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
