"""A query on Spark: its DataFrame, its plan and what it reports."""

from __future__ import annotations

import json
import logging
import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Any

from braid.adapt.adaptation import Adaptation
from braid.adapt.controller import Policy
from braid.adapt.history import Change
from braid.adapt.monitor import Snapshot
from braid.adapt.observation import Observation
from braid.errors import PlanError
from braid.hosts.spark.control import Control
from braid.hosts.spark.counted import Counted
from braid.hosts.spark.job import Job
from braid.hosts.spark.silence import Heard, Silence
from braid.model.plan import Plan, Written
from braid.model.statistics import Statistics

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

logger = logging.getLogger(__name__)

TIMES = ("join_seconds", "watch_seconds", "store_seconds", "seconds")
"""What the slowest bucket spent on the join, on statistics, on waiting for the state store, and in all."""

MOST_NEWS = 100
"""Reports kept for whoever takes them: many more than come between two looks, few enough if nobody ever looks."""


class SparkQuery:
    """What `Session.sql` returns. `dataframe` is an ordinary DataFrame; start it like any other."""

    def __init__(
        self, name: str, job: Job, control: Control, adapt: bool | Policy = True, idle: float | None = None
    ) -> None:
        self.name = name
        self.dataframe: DataFrame
        self._job = job
        self._control = control
        self._adaptation = Adaptation(Plan.of(job.query, job.plan), adapt)
        self._turn = threading.RLock()
        self._time = 0.0
        self._reports: list[dict[str, Any]] = []
        self._batch: int | None = None
        self._totals: dict[str, int] = {}
        self._news: deque[dict[str, Any]] = deque(maxlen=MOST_NEWS)
        self._counted = Counted(job.query, job.router)
        self._idle = idle
        self._silences: dict[str, Silence] = {}

    @property
    def plan(self) -> Plan:
        """The plan that runs, or has been asked for."""
        return self._adaptation.plan

    @property
    def streams(self) -> tuple[str, ...]:
        """The names of the streams that it is over, each once."""
        return tuple(stream.name for stream in self._job.streams)

    def explain(self) -> str:
        """The plan that runs: order, predicates at each step, rows to expect."""
        return self.plan.explain(self.statistics())

    def replan(self, plan: Written) -> None:
        """Probe in another order from the next micro-batch on; the state stays, the results stay the same.

        A query that adapts goes on to do so: it may leave this plan too, once another one costs less.
        """
        with self._turn:
            wanted = Plan.of(self._job.query, plan)
            if wanted == self.plan and self._batch is not None:
                raise PlanError("the query runs this plan already; there is nothing to change")
            self._adaptation.unpin()
            self._ask_for(wanted, "replan")

    def pin(self, plan: Written | None = None) -> None:
        """Go on with this plan, by default the one that runs, whatever it costs, until `replan` or `unpin`."""
        with self._turn:
            wanted = self.plan if plan is None else Plan.of(self._job.query, plan)
            self._adaptation.pin()
            # Before the first report the checkpoint may have another plan than is known here.
            if wanted != self.plan or (plan is not None and self._batch is None):
                self._ask_for(wanted, "pin")

    def unpin(self) -> None:
        """Let the query choose its plan again, if it was made to adapt."""
        with self._turn:
            self._adaptation.unpin()

    def history(self) -> tuple[Change, ...]:
        """Every change of plan: when, why, from what to what, what it was expected to save and what it did save."""
        with self._turn:
            return self._adaptation.history.changes

    def snapshot(self) -> Snapshot:
        """What is known of the streams of late: rates, sizes, windows, lateness, shares of matches, join keys."""
        with self._turn:
            return self._counted_once(self._adaptation.snapshot())

    def _counted_once(self, found: Snapshot) -> Snapshot:
        """Work is done for every copy of a row, and so the controller sees it; people mean the row."""
        copies = self._job.router.copies
        streams = {alias: figures.shared_by(copies([alias])) for alias, figures in found.streams.items()}
        # Of the keys of copies the same is estimated.
        shares = {
            ends: share if ends in found.estimated else share * prod(copies([end]) for end in ends) / copies(ends)
            for ends, share in found.shares.items()
        }
        return replace(found, streams=streams, shares=shares)

    def _ask_for(self, plan: Plan, why: str) -> None:
        self._control.send(plan)
        self._adaptation.set_plan(plan, self._time, -1 if self._batch is None else self._batch, why)

    def progress(self) -> dict[str, Any] | None:
        """What the operator did in the last micro-batch that reported; None before the first."""
        with self._turn:
            return None if self._batch is None else self._progress()

    def take_news(self) -> list[dict[str, Any]]:
        """The `progress` of every micro-batch that reported since the last call, at most the last `MOST_NEWS`."""
        with self._turn:
            news = list(self._news)
            self._news.clear()
            return news

    def _progress(self) -> dict[str, Any]:
        summed = {
            name: sum(report[name] for report in self._reports)
            for name in ("rows_out", "state_rows", "state_bytes", "segments", "waiting")
        }
        caches = [report["cache"] for report in self._reports]
        return {
            "batch": self._batch,
            "rows_in": self._rows_in(),
            **summed,
            "late": self._of_rows("late"),
            "untimed": self._of_streams("untimed"),
            "rejected_messages": max(report["rejected_messages"] for report in self._reports),
            **{name: max(report[name] for report in self._reports) for name in TIMES},
            "cache": {outcome: caches.count(outcome) for outcome in dict.fromkeys(caches)},
            "plan": self._reports[0]["plan"],
            "total": dict(self._totals),
        }

    def _of_streams(self, figure: str) -> dict[str, int]:
        """A figure of each stream in the last micro-batch, all buckets together."""
        return {
            source.alias: sum(report["streams"][source.alias][figure] for report in self._reports)
            for source in self._job.query.inputs
        }

    def _of_rows(self, figure: str) -> dict[str, int]:
        """The same of rows that buckets have got, one that went to several counted once."""
        copies = self._job.router.copies
        return {alias: total // copies([alias]) for alias, total in self._of_streams(figure).items()}

    def _rows_in(self) -> int:
        return sum(self._of_rows("rows").values())

    def statistics(self) -> Statistics:
        """What the operator has counted since the query was started here, as planning and `explain` take it.

        Rates are of rows that pass the conditions on their stream alone, per second of event time. What nothing has
        been counted for is unknown.
        """
        with self._turn:
            return self._counted.statistics()

    def receive(self, batch: int, reports: Sequence[str], started: float) -> None:
        """What the buckets reported of a micro-batch that started at some time, in seconds."""
        if not reports:
            return
        with self._turn:
            self._reports = [json.loads(report) for report in reports]
            self._batch, self._time = batch, started
            self._counted.add(self._reports)
            given, found = self._rows_in(), sum(report["rows_out"] for report in self._reports)
            for name, rows in (("rows_in", given), ("rows_out", found)):
                self._totals[name] = self._totals.get(name, 0) + rows
            self._news.append(self._progress())
            self._adapt(batch, started)

    @property
    def passes_silent(self) -> bool:
        """Whether streams may be silent for too long."""
        return self._idle is not None

    def pass_silent(self, run: str, report: str, checkpoint: str, started: float) -> None:
        """Let nobody wait for streams that have been silent for too long in a run, by a report of any bucket.

        Each run hears for itself: another one has begun at another time, and perhaps on another checkpoint.
        """
        if self._idle is None:
            return
        streams = {source.alias: source.declared for source in self._job.query.inputs}
        heard = {
            # Every bucket hears of every stream.
            streams[alias].name: Heard(figures["heard"], figures["watermark"])
            for alias, figures in json.loads(report)["streams"].items()
        }
        with self._turn:
            passed = self._silences.setdefault(run, Silence(self._idle)).passed(heard, started)
        if passed:
            lateness = {stream.name: stream.lateness for stream in streams.values()}
            reached = {name: watermark + lateness[name] for name, watermark in passed.items()}
            self._control.pass_silent(reached, checkpoint)

    def end_run(self, run: str) -> None:
        """What only a run has to know goes with it."""
        with self._turn:
            self._silences.pop(run, None)

    def _adapt(self, batch: int, started: float) -> None:
        """Look at what was reported, and ask for another plan if it is worth it."""
        plans = [Plan.of(self._job.query, report["plan"]) for report in self._reports]
        running = next((plan for plan in plans if plan != self.plan), self.plan)
        seen = Observation.merged(Observation.from_json(report["seen"]) for report in self._reports)
        instruction = self._adaptation.observe(seen, started, batch, running)
        if instruction is not None:
            logger.info("query %s changes its plan after batch %d: %s", self.name, batch, instruction.reason)
            self._control.send(instruction.after)
