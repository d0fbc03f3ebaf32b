"""The whole adaptation loop of one query: takes an observation of each batch, and returns plan changes.

The controller proposes plans by what they may cost. A new order of probe sequences, or a new access path, is then on
trial: in every batch the engines divide the new rows between the old and the new order, and leave the new one as soon
as it wastes work (see `engine/join/trial.py`). Here the counts of all shards are added up, and each head keeps the
order that cost less.
"""

from __future__ import annotations

from braid.adapt.controller import Controller, PlanChange, Policy
from braid.adapt.dividing import Dividing, work_per_row
from braid.adapt.history import History, RecordedChange, Verdict
from braid.adapt.monitor import Monitor, Snapshot
from braid.adapt.observation import Observation
from braid.adapt.trial import OrderTrial
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
        self._change: PlanChange | None = None  # The last change, until there is a verdict on it.
        self._trial: OrderTrial
        self._tried: tuple[Plan | None, Plan] | None = None  # The plans of the last trial that is over.
        self.history = History()

    @property
    def plan(self) -> Plan:
        """The plan that runs, or the one that was last asked for."""
        return self._controller.plan

    @property
    def against(self) -> Plan | None:
        """The earlier plan, while the plan is on trial."""
        return None if self._change is None else self._change.against

    @property
    def pinned(self) -> bool:
        return self._controller.pinned

    def snapshot(self) -> Snapshot:
        return self._monitor.snapshot()

    def observe(
        self,
        observation: Observation,
        time: float,
        batch: int,
        running: Plan | None = None,
        against: Plan | None = None,
    ) -> PlanChange | None:
        """Take in a batch that ran under a plan (by default the one last asked for), and decide on a plan change.

        `against` is the plan that the running one was on trial against, if it was. While an earlier plan change has not
        taken effect or is on trial, there is no new one.
        """
        self._monitor.observe(observation, time)
        arrived = running is None or running == self.plan
        rows = observation.rows(self.plan.query.aliases)
        if rows:
            self.history.count(observation.work / rows, arrived)
        if running is not None and not arrived and not self._give_up(running, time, batch):
            return None
        if arrived:
            self._awaited = 0
        if self._change is None and against is not None and (against, self.plan) != self._tried:
            self._resume(against, time, batch)
        if self._change is not None:
            if self._change.against is None:
                return self._judge_tree(self._change)
            return self._judge_orders(observation)
        self.history.measure_batches()
        snapshot = self._monitor.snapshot()
        change = self._controller.decide(snapshot.cautious, time, snapshot.cells)
        if change is not None:
            self._begin(change, batch)
        return change

    def set_plan(self, plan: Plan, time: float, batch: int, reason: str) -> None:
        """Change to a plan that the user asks for."""
        if self._change is not None:
            self._end(self._change.after if plan == self._change.after else self._change.before)
        if plan != self.plan:
            self.history.record(RecordedChange(batch, time, reason, self.plan.written, plan.written, "asked for"))
        self._controller.set_plan(plan, time)
        self._awaited = MOST_AWAITED

    def pin(self) -> None:
        """Keep the plan, whatever is observed."""
        self._controller.pinned = True

    def unpin(self) -> None:
        """Decide on plan changes again, unless `adapt` is False."""
        self._controller.pinned = not self._adapt

    def _begin(self, change: PlanChange, batch: int) -> None:
        snapshot = self._monitor.snapshot()
        plans = change.before, change.after
        before, after = (work_per_row(plan, change.heads, snapshot.cautious, snapshot.cells) for plan in plans)
        predicted = 1 - after / before if before and after is not None else None
        written = change.before.written, change.after.written
        self.history.record(RecordedChange(batch, change.time, change.reason, *written, "trial", predicted, before))
        self._change, self._trial = change, OrderTrial(change)
        self._awaited = MOST_AWAITED

    def _resume(self, against: Plan, time: float, batch: int) -> None:
        """Go on with a trial that the checkpoint has."""
        self._change = PlanChange(time, against, self.plan, "as the checkpoint has it", against)
        self._trial = OrderTrial(self._change)
        written = against.written, self.plan.written
        self.history.record(RecordedChange(batch, time, self._change.reason, *written, "trial"))

    def _judge_orders(self, observation: Observation) -> PlanChange | None:
        """Keep the new orders that cost less than the old ones, once enough rows have gone along both."""
        trial = self._trial
        trial.add(observation.trials)
        self.history.measure_trial(trial.seen)
        if not trial.is_over:
            return None
        self._controller.fail(trial.orders(failed=True))
        self._controller.succeed(trial.orders(failed=False))
        return self._end(trial.kept, trial.failed)

    def _judge_tree(self, change: PlanChange) -> PlanChange | None:
        """Compare the trees before and after a change again, once some batches have run under the new one."""
        if not self.history.settled:
            return None
        snapshot = self._monitor.snapshot()
        try:
            dividing = Dividing(self.plan.query, snapshot.statistics, snapshot.cells)
            before, after = dividing.cost(change.before), dividing.cost(change.after)
        except PlanningError:
            return None  # A figure is not known yet.
        self.history.measure_batches()
        saves = before is None or after is None or after <= before
        return self._end(change.after if saves else change.before)

    def _end(self, plan: Plan, taken_back: tuple[str, ...] = ()) -> PlanChange | None:
        """End a trial. Returns the change to the plan that was kept, if shards must do anything about it."""
        change, self._change = self._change, None
        assert change is not None
        self._tried = change.against, change.after
        verdict: Verdict = "taken back" if plan == change.before else "kept"
        self.history.judge(verdict, plan, taken_back)
        self._controller.set_plan(plan, change.time)
        if plan == change.after and change.against is None:
            return None
        self._awaited = MOST_AWAITED
        return PlanChange(change.time, change.after, plan, f"the trial is over: {verdict}")

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
