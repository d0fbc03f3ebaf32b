"""Who decides on the plan of a query in one process; its clock is event time."""

from __future__ import annotations

import logging

from braid.adapt.adaptation import Adaptation
from braid.adapt.controller import Policy
from braid.model.plan import Plan
from braid.runtime.report import ShardReport

logger = logging.getLogger(__name__)

SECOND = 1_000_000


class LocalController:
    """Takes the report of every step, and gives the plan to go on with."""

    def __init__(self, plan: Plan, adapt: bool | Policy) -> None:
        self.adaptation = Adaptation(plan, adapt)
        self._newest: int | None = None

    def decide(self, report: ShardReport, step: int) -> Plan:
        """The plan to go on with."""
        streams = report.observation.streams.values()
        reached = [stream.newest for stream in streams if stream.newest is not None]
        if reached:
            self._newest = max(reached) if self._newest is None else max(self._newest, *reached)
        if self._newest is None:
            return self.adaptation.plan
        change = self.adaptation.observe(report.observation, self._newest / SECOND, step)
        if change is not None:
            logger.info("after batch %d: %s", step, change.reason)
        return self.adaptation.plan
