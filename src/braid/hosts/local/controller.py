"""Decides on the plan of a query on the local host. Its clock is event time."""

from __future__ import annotations

import logging

from braid.adapt.adaptation import Adaptation
from braid.adapt.controller import Policy
from braid.model.plan import Plan
from braid.runtime.report import ShardReport

logger = logging.getLogger(__name__)

SECOND = 1_000_000
"""In microseconds."""


class LocalController:
    """Takes the report of every step and returns the plan for the next one, and the plan it is on trial against."""

    def __init__(self, plan: Plan, adapt: bool | Policy) -> None:
        self.adaptation = Adaptation(plan, adapt)
        self._newest: int | None = None

    def decide(self, report: ShardReport, step: int) -> tuple[Plan, Plan | None]:
        """The plan for the step after `step`, and the plan that it is on trial against."""
        streams = report.observation.streams.values()
        times = [stream.newest for stream in streams if stream.newest is not None]
        if self._newest is not None:
            times.append(self._newest)
        if not times:  # No row yet, so there is no time to observe anything at.
            return self.adaptation.plan, None
        self._newest = max(times)
        change = self.adaptation.observe(report.observation, self._newest / SECOND, step)
        if change is not None:
            logger.info("after batch %d: %s", step, change.reason)
        return self.adaptation.plan, self.adaptation.against
