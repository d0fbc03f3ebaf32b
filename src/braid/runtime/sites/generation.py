"""A generation of a query that runs: one plan of it, at work at its sites.

A query has one generation, and two while its plan changes. Each answers for an interval of event time, its reign: it
gives the results whose event time is in there.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from braid.model.window import FOREVER
from braid.planning.cost.bill import Bill, Charge
from braid.planning.solution.written import Written
from braid.runtime.sites.site_spec import SiteSpec

Carried = tuple[int, int, int]
"""Batches, rows and bytes."""


@dataclass(frozen=True)
class Reign:
    """The event times that a generation answers for: from `since` on, and before `until`."""

    since: int = -FOREVER
    until: int = FOREVER

    def reached(self, watermark: int) -> int:
        """The event time before which nothing more will come from a generation with this watermark."""
        return FOREVER if watermark >= self.until else max(watermark, self.since)


@dataclass(frozen=True)
class Generation:
    """One plan of a query. `explanation` is the plan as text, `bill` what it was expected to cost.

    `paths` has the sites on the way between two sites, as the plan chose them. A generation that is being prepared has
    no reign. One that `is_retired` does no work any more; its results may still have to be read. `began` has, by
    site, the totals of each channel that the site reads and that was there before, from before the site read it.
    `written` is the plan as plain data; None for a plan that reuses joins of others.

    Some of its `sites` may have been started for earlier plans: see `common_parts`.
    """

    number: int
    sites: Mapping[str, SiteSpec]
    explanation: str
    bill: Bill
    paths: Mapping[tuple[str, str], tuple[str, ...]]
    reign: Reign | None = Reign()
    is_retired: bool = False
    began: Mapping[str, Mapping[str, Carried]] = field(default_factory=dict)
    planner: str = ""
    written: Written | None = None

    @property
    def results(self) -> dict[str, list[str]]:
        """The channels that carry its results, by the site that publishes them."""
        channels: dict[str, list[str]] = {}
        for site, spec in self.sites.items():
            finals = spec.work.finals
            published = [outlet.channel for outlet in spec.work.outlets if outlet.fragment in finals]
            if published:
                channels[site] = published
        return channels

    @property
    def published(self) -> frozenset[str]:
        """Every channel that it publishes on."""
        return frozenset(outlet.channel for spec in self.sites.values() for outlet in spec.work.outlets)

    @property
    def started(self) -> dict[str, SiteSpec]:
        """The sites that were started for this generation, and not taken over from an earlier one."""
        return {site: spec for site, spec in self.sites.items() if spec.generation == self.number}

    @property
    def outside(self) -> frozenset[str]:
        """The channels that it reads and others publish: intakes, and joins of other queries."""
        return self.read - self.published

    @property
    def read(self) -> frozenset[str]:
        """Every channel that it reads."""
        return frozenset(channel for spec in self.sites.values() for channel in spec.work.arriving)

    def needed_for(self, used: Collection[str]) -> Generation | None:
        """What must go on so that others can read some of its channels; None if nothing must.

        A site goes on with all its work if it publishes what others use, or what such a site reads.
        """
        needed = frozenset(used) & self.published
        sites: dict[str, SiteSpec] = {}
        while True:
            going_on = {site: spec for site, spec in self.sites.items() if spec.publishes(needed)}
            if len(going_on) == len(sites):
                break
            sites = going_on
            needed |= {channel for spec in sites.values() for channel in spec.work.arriving}
        if not sites:
            return None
        return replace(self, sites={site: spec.publishing(needed, sites) for site, spec in sites.items()})

    def to_json(self) -> dict[str, Any]:
        charges = [asdict(charge) | {"streams": sorted(charge.streams)} for charge in self.bill.charges]
        return {
            "number": self.number,
            "sites": {site: spec.to_json() for site, spec in self.sites.items()},
            "explanation": self.explanation,
            "bill": {"unit": self.bill.unit, "charges": charges, "counts_bytes": self.bill.counts_bytes},
            "paths": list(self.paths.values()),
            "reign": None if self.reign is None else [self.reign.since, self.reign.until],
            "is_retired": self.is_retired,
            "began": self.began,
            "planner": self.planner,
            "written": self.written,
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Generation:
        bill = content["bill"]
        charges = [Charge(**{**charge, "streams": frozenset(charge["streams"])}) for charge in bill["charges"]]
        return cls(
            content["number"],
            {site: SiteSpec.from_json(spec) for site, spec in content["sites"].items()},
            content["explanation"],
            Bill(bill["unit"], tuple(charges), bill["counts_bytes"]),
            {(path[0], path[-1]): tuple(path) for path in content["paths"]},
            None if content["reign"] is None else Reign(*content["reign"]),
            content["is_retired"],
            {
                site: {channel: tuple(carried) for channel, carried in channels.items()}
                for site, channels in content["began"].items()
            },
            content["planner"],
            content["written"],
        )
