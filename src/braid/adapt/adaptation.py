"""The whole adaptation loop of one query: takes an observation of each batch, and returns plan changes.

The controller proposes plans by what they may cost. A new order of probe sequences, or a new access path, is then on
trial: in every batch the engines divide the new rows between the old and the new order, and leave the new one as soon
as it wastes work (see `engine/join/trial.py`). Here the counts of all shards are added up, and each head keeps the
order that cost less. A new tree takes all rows at once. It is taken back if they cost more than by the old tree.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace

from braid.adapt.controller import Controller, PlanChange, Policy
from braid.adapt.dividing import work_per_row
from braid.adapt.expectation import UNKNOWN, Expectation
from braid.adapt.history import SETTLING, History, RecordedChange, Verdict
from braid.adapt.monitor import Monitor, Snapshot
from braid.adapt.observation import Observation
from braid.adapt.tree_trial import BatchSeen, TreeTrial
from braid.adapt.trial import OrderTrial
from braid.errors import PlanError
from braid.model.checks import check
from braid.model.plan import Plan

RESUMED = "as the checkpoint has it"
"""The reason of a plan that the checkpoint has, and not the program."""

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
        self._trial: OrderTrial | TreeTrial
        self._recent: deque[BatchSeen] = deque(maxlen=SETTLING)  # The last batches, if the plan is a tree.
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
        expected: Expectation = UNKNOWN,
    ) -> PlanChange | None:
        """Take in a batch that ran under a plan (by default the one last asked for), and decide on a plan change.

        `against` is the plan that the running one was on trial against, if it was, and `expected` what was expected of
        that trial. While an earlier plan change has not taken effect or is on trial, there is no new one.
        """
        self._monitor.observe(observation, time)
        arrived = running is None or running == self.plan
        seen = self._seen(observation)
        if seen.rows:
            self.history.count(seen.work / seen.rows, arrived)
        if running is not None and not arrived and not self._give_up(running, time, batch, seen):
            return None
        if arrived:
            self._awaited = 0
        if self._change is None and against is not None and (against, self.plan) != self._tried:
            self._resume(PlanChange(time, against, self.plan, RESUMED, against, expected=expected), batch)
        if self._change is not None:
            return self._judge(observation, seen)
        self.history.measure_batches()
        if self.plan.keeps_combinations:
            self._recent.append(seen)
        if not observation.is_sampled or self.pinned:
            return None  # Nothing is known that was not known before.
        snapshot = self._monitor.snapshot()
        change = self._controller.decide(snapshot.cautious, time, snapshot.cells)
        return None if change is None else self._begin(change, batch)

    def _seen(self, observation: Observation) -> BatchSeen:
        rows, work = observation.rows(self.plan.query.aliases), observation.work - observation.completion
        return BatchSeen(rows, work, self._monitor.snapshot() if self.plan.keeps_combinations else None)

    def set_plan(self, plan: Plan, time: float, batch: int, reason: str) -> None:
        """Change to a plan that the user asks for."""
        if self._change is not None:
            self._end(self._change.after if plan == self._change.after else self._change.before)
        if plan != self.plan:
            verdict: Verdict = "resumed" if reason == RESUMED else "asked for"
            self.history.record(RecordedChange(batch, time, reason, self.plan.written, plan.written, verdict))
        self._controller.set_plan(plan, time)
        self._awaited = MOST_AWAITED

    def pin(self) -> None:
        """Keep the plan, whatever is observed."""
        self._controller.pinned = True

    def unpin(self) -> None:
        """Decide on plan changes again, unless `adapt` is False."""
        self._controller.pinned = not self._adapt

    def _begin(self, change: PlanChange, batch: int) -> PlanChange:
        """Begin a trial. Returns the change with what is expected of it."""
        snapshot = self._monitor.snapshot()
        plans = change.before, change.after
        before, after = (work_per_row(plan, change.heads, snapshot.cautious, snapshot.cells) for plan in plans)
        predicted = 1 - after / before if before and after is not None else None
        self._change = replace(change, expected=Expectation(predicted, before))
        self._record(self._change, batch)
        self._awaited = MOST_AWAITED
        return self._change

    def _resume(self, change: PlanChange, batch: int) -> None:
        """Go on with a trial that the checkpoint has."""
        self._change = change
        self._record(change, batch)

    def _record(self, change: PlanChange, batch: int) -> None:
        plans, expected = (change.before.written, change.after.written), change.expected
        figures = expected.predicted, expected.work_before
        self.history.record(RecordedChange(batch, change.time, change.reason, *plans, "trial", *figures))
        self._trial = TreeTrial(change, self._recent) if change.is_of_trees else OrderTrial(change)
        self._recent.clear()

    def _judge(self, observation: Observation, seen: BatchSeen) -> PlanChange | None:
        """Take in a batch under trial. Once enough rows have shown what they cost, keep what cost less."""
        trial = self._trial
        if isinstance(trial, TreeTrial):
            trial.add(seen)
        else:
            trial.add(observation.trials)
        self._measure()
        if not trial.is_over:
            return None
        self._controller.fail(trial.failures(self._monitor.snapshot()))
        self._controller.succeed(trial.successes)
        return self._end(trial.kept_plan, trial.failed)

    def _measure(self) -> None:
        """Note in the history what the trial has measured so far."""
        work = self._trial.work
        if work is not None:
            self.history.measure_trial(work.before, work.after)

    def _end(self, plan: Plan, taken_back: tuple[str, ...] = ()) -> PlanChange:
        """End a trial. Returns the change to the plan that was kept, which is not on trial any more."""
        change, self._change = self._change, None
        assert change is not None
        self._tried = change.against, change.after
        verdict: Verdict = "taken back" if plan == change.before else "kept"
        if self._trial.work is None:
            verdict = "not judged"
        self.history.judge(verdict, plan, taken_back)
        self._controller.set_plan(plan, change.time)
        self._awaited = MOST_AWAITED
        return PlanChange(change.time, change.after, plan, f"the trial is over: {verdict}")

    def _give_up(self, running: Plan, time: float, batch: int, seen: BatchSeen) -> bool:
        """Whether to stop waiting for the plan asked for, and to accept the running one."""
        if self._awaited > 1:
            self._awaited -= 1
            if self._change is not None and isinstance(self._trial, TreeTrial):
                self._trial.wait(seen)
            return False
        reason = "the plan asked for has not arrived" if self._awaited == 1 else RESUMED
        self.set_plan(running, time, batch, reason)
        self._awaited = 0
        return True
