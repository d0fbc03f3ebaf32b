"""The whole adaptation loop of one query: takes an observation of each batch, and returns plan changes."""

from __future__ import annotations

from braid.adapt.controller import Controller, PlanChange, Policy
from braid.adapt.costing import Costing
from braid.adapt.history import History
from braid.adapt.monitor import Monitor, Snapshot
from braid.adapt.observation import Observation
from braid.errors import PlanError, PlanningError
from braid.model.checks import check
from braid.model.plan import Plan

MOST_AWAITED = 8
"""The most batches to wait for a plan change to take effect; after that the running plan is accepted."""


class Adaptation:
    """Monitor, controller and history of one query.

    `adapt` is the policy for changing the plan, or True for the default policy. With False the query is monitored, and
    its plan is not changed.
    """

    def __init__(self, plan: Plan, adapt: bool | Policy = True) -> None:
        check(adapt, bool | Policy, "adapt", PlanError)
        policy = adapt if isinstance(adapt, Policy) else Policy()
        self._monitor = Monitor(plan.query, policy.half_life)
        self._controller = Controller(plan, policy)
        self._controller.pinned = not adapt
        self._adapt = bool(adapt)
        self._awaited = 0  # The batches left to wait for a plan change to take effect.
        self.history = History()

    @property
    def plan(self) -> Plan:
        """The plan that runs, or the one that was last asked for."""
        return self._controller.plan

    @property
    def pinned(self) -> bool:
        return self._controller.pinned

    def snapshot(self) -> Snapshot:
        return self._monitor.snapshot()

    def observe(
        self, observation: Observation, time: float, batch: int, running: Plan | None = None
    ) -> PlanChange | None:
        """Take in a batch that ran under a plan (by default the one last asked for), and decide on a plan change.

        While an earlier plan change has not taken effect, there is no new one.
        """
        self._monitor.observe(observation, time)
        arrived = running is None or running == self.plan
        rows = observation.rows(self.plan.query.aliases)
        if rows:
            self.history.count(observation.work / rows, arrived)
        if arrived and rows:
            self._judge()
        if running is not None and not arrived and not self._give_up(running, time, batch):
            return None
        if arrived:
            self._awaited = 0
        statistics = self._monitor.snapshot().statistics
        change = self._controller.decide(statistics, time, self._monitor.agreed)
        if change is not None:
            self._record(change, batch)
        return change

    def set_plan(self, plan: Plan, time: float, batch: int, reason: str) -> None:
        """Change to a plan that the user asks for."""
        if plan != self.plan:
            self.history.record(batch, time, reason, self.plan, plan, None)
        self._controller.set_plan(plan, time)
        self._awaited = MOST_AWAITED

    def pin(self) -> None:
        """Keep the plan, whatever is observed."""
        self._controller.pinned = True

    def unpin(self) -> None:
        """Decide on plan changes again, unless `adapt` is False."""
        self._controller.pinned = not self._adapt

    def _record(self, change: PlanChange, batch: int) -> None:
        self.history.record(batch, change.time, change.reason, change.before, change.after, change.gain)
        self._awaited = MOST_AWAITED

    def _judge(self) -> None:
        """Compare the plans before and after the last change again, once some batches have run under the new one."""
        change = self.history.settled()
        if change is None:
            return
        query = self.plan.query
        try:
            costing = Costing(query, self._monitor.snapshot().statistics)
        except PlanningError:
            return  # A figure is not known yet.
        before, after = (costing.cost(Plan.of(query, plan)) for plan in (change.before, change.after))
        if before:
            self.history.confirm(1 - after / before)

    def _give_up(self, running: Plan, time: float, batch: int) -> bool:
        """Whether to stop waiting for the plan asked for, and to accept the running one."""
        if self._awaited > 1:
            self._awaited -= 1
            return False
        waited = self._awaited == 1
        reason = "the plan asked for has not arrived" if waited else "as the checkpoint has it"
        self.set_plan(running, time, batch, reason)
        self._awaited = 0
        return True
