"""A query on Spark: its DataFrame, its plan and what it reports."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Any

from braid.adapt.adaptation import Adaptation
from braid.adapt.controller import Policy
from braid.adapt.history import RecordedChange
from braid.adapt.monitor import Snapshot
from braid.adapt.observation import Observation
from braid.errors import PlanError
from braid.hosts.spark.driver.control import Control
from braid.hosts.spark.driver.progress import progress_of, rows_in
from braid.model.plan import Plan, Written
from braid.model.statistics import Statistics
from braid.runtime.idleness import Heard, IdleTracker
from braid.runtime.query_spec import QuerySpec
from braid.runtime.report import ShardReport
from braid.runtime.totals import Totals

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

logger = logging.getLogger(__name__)

MOST_NEWS = 100
"""How many micro-batches `take_news` remembers: far more than come between two calls, few if nobody ever calls it."""


class SparkQuery:
    """What `Session.sql` returns. `dataframe` is an ordinary DataFrame; start it like any other."""

    def __init__(
        self, name: str, spec: QuerySpec, control: Control, adapt: bool | Policy = True, idle: float | None = None
    ) -> None:
        self.name = name
        self.dataframe: DataFrame
        self._spec = spec
        self._control = control
        self._adaptation = Adaptation(Plan.of(spec.query, spec.plan), adapt)
        self._turn = threading.RLock()
        self._time = 0.0
        self._reports: list[ShardReport] = []
        self._batch: int | None = None
        self._rows = {"rows_in": 0, "rows_out": 0}
        self._news: deque[dict[str, Any]] = deque(maxlen=MOST_NEWS)
        self._totals = Totals(spec.query, spec.router)
        self._idle = idle
        self._idle_trackers: dict[str, IdleTracker] = {}

    @property
    def plan(self) -> Plan:
        """The plan that runs, or has been asked for."""
        return self._adaptation.plan

    @property
    def streams(self) -> tuple[str, ...]:
        """The names of the streams that it reads, each once."""
        return tuple(stream.name for stream in self._spec.streams)

    def explain(self) -> str:
        """The plan that runs: order, predicates at each step, rows to expect."""
        return self.plan.explain(self.statistics())

    def replan(self, plan: Written) -> None:
        """Probe in another order from the next micro-batch on; the state and the results stay the same.

        A query that adapts may leave this plan too, once another one costs less.
        """
        with self._turn:
            wanted = Plan.of(self._spec.query, plan)
            if wanted == self.plan and self._batch is not None:
                raise PlanError("the query runs this plan already; there is nothing to change")
            self._adaptation.unpin()
            self._ask_for(wanted, "replan")

    def pin(self, plan: Written | None = None) -> None:
        """Go on with this plan, by default the one that runs, whatever it costs, until `replan` or `unpin`."""
        with self._turn:
            wanted = self.plan if plan is None else Plan.of(self._spec.query, plan)
            self._adaptation.pin()
            # Before the first report, the checkpoint may have another plan than is known here.
            if wanted != self.plan or (plan is not None and self._batch is None):
                self._ask_for(wanted, "pin")

    def unpin(self) -> None:
        """Let the query choose its plan again, if it was made to adapt."""
        with self._turn:
            self._adaptation.unpin()

    def history(self) -> tuple[RecordedChange, ...]:
        """Every plan change: when, why, from what to what, what it was expected to save and what it did save."""
        with self._turn:
            return self._adaptation.history.changes

    def snapshot(self) -> Snapshot:
        """What is known of the streams of late: rates, sizes, windows, lateness, shares of matches, join keys."""
        with self._turn:
            return self._count_copies_once(self._adaptation.snapshot())

    def statistics(self) -> Statistics:
        """What the operator has counted since the query was started here, as planning and `explain` take it.

        Rates are of rows that pass the conditions on their stream alone, per second of event time. What nothing has
        been counted for is unknown.
        """
        with self._turn:
            return self._totals.statistics()

    def progress(self) -> dict[str, Any] | None:
        """What the operator did in the last micro-batch that reported; None before the first."""
        with self._turn:
            return None if self._batch is None else progress_of(self._batch, self._reports, self._spec, self._rows)

    def take_news(self) -> list[dict[str, Any]]:
        """The `progress` of every micro-batch that reported since the last call, at most the last `MOST_NEWS`."""
        with self._turn:
            news = list(self._news)
            self._news.clear()
            return news

    def receive(self, batch: int, reports: Sequence[str], started: float) -> None:
        """Take what the shards reported of a micro-batch that started at some time, in seconds."""
        if not reports:
            return
        with self._turn:
            self._reports = [ShardReport.from_json(report) for report in reports]
            self._batch, self._time = batch, started
            self._totals.add(self._reports)
            self._rows["rows_in"] += rows_in(self._reports, self._spec)
            self._rows["rows_out"] += sum(report.rows_out for report in self._reports)
            self._news.append(progress_of(batch, self._reports, self._spec, self._rows))
            self._adapt(batch, started)

    @property
    def passes_idle(self) -> bool:
        """Whether streams that are idle for too long hold up no results."""
        return self._idle is not None

    def pass_idle(self, run: str, report: str, checkpoint: str, started: float) -> None:
        """Let no result wait for streams that have been idle for too long in a run, by the report of any shard.

        Each run tracks its own: another one has begun at another time, and perhaps on another checkpoint.
        """
        if self._idle is None:
            return
        streams = {source.alias: source.declared for source in self._spec.query.inputs}
        # One report is enough: every shard hears of every stream.
        heard = {
            streams[alias].name: Heard(progress.heard, progress.watermark)
            for alias, progress in ShardReport.from_json(report).progress.items()
        }
        with self._turn:
            passed = self._idle_trackers.setdefault(run, IdleTracker(self._idle)).passed(heard, started)
        if passed:
            lateness = {stream.name: stream.lateness for stream in streams.values()}
            reached = {name: watermark + lateness[name] for name, watermark in passed.items()}
            self._control.pass_idle(reached, checkpoint)

    def end_run(self, run: str) -> None:
        """Forget what only concerns a run that has ended."""
        with self._turn:
            self._idle_trackers.pop(run, None)

    def _ask_for(self, plan: Plan, why: str) -> None:
        self._control.send(plan)
        self._adaptation.set_plan(plan, self._time, -1 if self._batch is None else self._batch, why)

    def _count_copies_once(self, snapshot: Snapshot) -> Snapshot:
        """The controller sees the work of every copy of a row; people mean the row."""
        copies = self._spec.router.copies
        streams = {alias: figures.shared_by(copies([alias])) for alias, figures in snapshot.streams.items()}
        shares = {}
        for ends, share in snapshot.shares.items():
            # An estimate from keys is the same whether or not rows are copied.
            once = 1.0 if ends in snapshot.estimated else prod(copies([end]) for end in ends) / copies(ends)
            shares[ends] = share * once
        return replace(snapshot, streams=streams, shares=shares)

    def _adapt(self, batch: int, started: float) -> None:
        """Look at what was reported, and ask for another plan if it is worth it."""
        plans = [Plan.of(self._spec.query, report.plan) for report in self._reports]
        running = next((plan for plan in plans if plan != self.plan), self.plan)
        seen = Observation.merged(report.observation for report in self._reports)
        change = self._adaptation.observe(seen, started, batch, running)
        if change is not None:
            logger.info("query %s changes its plan after batch %d: %s", self.name, batch, change.reason)
            self._control.send(change.after)
