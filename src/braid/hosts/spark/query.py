"""A query on Spark: its DataFrame, its plan and what it reports."""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from braid.hosts.spark.counted import Counted
from braid.hosts.spark.job import Job
from braid.model.plan import Plan, Written
from braid.model.statistics import Statistics

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


TIMES = ("join_seconds", "store_seconds", "seconds")
"""What the slowest bucket spent on the join, on waiting for the state store, and in all."""


class SparkQuery:
    """What `Session.sql` returns. `dataframe` is an ordinary DataFrame; start it like any other."""

    def __init__(self, name: str, job: Job, control: Path) -> None:
        self.name = name
        self.dataframe: DataFrame
        self._job = job
        self._control = control
        self._plan = Plan.of(job.query, job.plan)
        self._reports: list[dict[str, Any]] = []
        self._batch: int | None = None
        self._totals: dict[str, int] = {}
        self._counted = Counted(job.query, job.router)

    @property
    def plan(self) -> Plan:
        """The plan that runs, or has been asked for."""
        return self._plan

    def explain(self) -> str:
        """The plan that runs: order, predicates at each step, rows to expect."""
        return self._plan.explain(self.statistics())

    def change_plan(self, plan: Written) -> None:
        """Probe in another order from the next micro-batch on; the state stays, the results stay the same."""
        self._plan = Plan.of(self._job.query, plan)
        message = json.dumps({"plan": self._plan.written})
        self._control.mkdir(parents=True, exist_ok=True)
        name = f"{secrets.token_hex(8)}.json"
        unfinished = self._control / f".{name}"
        unfinished.write_text(message + "\n")
        unfinished.rename(self._control / name)

    def progress(self) -> dict[str, Any] | None:
        """What the operator did in the last micro-batch that reported; None before the first."""
        if self._batch is None:
            return None
        summed = {
            name: sum(report[name] for report in self._reports)
            for name in ("rows_in", "rows_out", "state_rows", "state_bytes", "segments", "rejected_messages")
        }
        late = {
            alias: sum(report["streams"][alias]["late"] for report in self._reports)
            for alias in self._job.query.aliases
        }
        caches = [report["cache"] for report in self._reports]
        return {
            "batch": self._batch,
            **summed,
            "late": late,
            **{name: max(report[name] for report in self._reports) for name in TIMES},
            "cache": {outcome: caches.count(outcome) for outcome in dict.fromkeys(caches)},
            "total": dict(self._totals),
        }

    def statistics(self) -> Statistics:
        """What the operator has counted since the query was started here, as planning and `explain` take it.

        Rates are of rows that pass the conditions on their stream alone, per second of event time. What nothing has
        been counted for is unknown.
        """
        return self._counted.statistics()

    def receive(self, batch: int, reports: Sequence[str]) -> None:
        """What the buckets reported of a micro-batch."""
        if not reports:
            return
        self._reports = [json.loads(report) for report in reports]
        self._batch = batch
        self._counted.add(self._reports)
        for name in ("rows_in", "rows_out"):
            self._totals[name] = self._totals.get(name, 0) + sum(report[name] for report in self._reports)
