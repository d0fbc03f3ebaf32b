"""A query on Spark, as `Session.sql` returns it: its DataFrame, its plan and its figures."""

from __future__ import annotations

import logging
import threading
from collections import Counter, deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Any

from braid.adapt.adaptation import Adaptation
from braid.adapt.controller import Policy
from braid.adapt.monitor import Snapshot
from braid.errors import PlanError
from braid.hosts.spark.driver.control import Control
from braid.hosts.spark.driver.notebook import RecordedChanges, query_html
from braid.hosts.spark.driver.progress import DROPPED, dropped_rows, progress_of, rows_by_stream
from braid.model.plan import Plan, Written
from braid.model.statistics import Statistics
from braid.model.stream import Branch, Stream
from braid.runtime.adapting import observe_reports
from braid.runtime.idleness import IdleTracker
from braid.runtime.query_spec import QuerySpec
from braid.runtime.report import ShardReport
from braid.runtime.routing import CopyWatch
from braid.runtime.silent_streams import SILENT_BATCHES, SilenceWatch, waited_for
from braid.runtime.spread_controller import SpreadController, evenness, spread_text
from braid.runtime.spread_table import SpreadTable
from braid.runtime.totals import Totals
from braid.runtime.watermarks import branch_key

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

logger = logging.getLogger(__name__)

MOST_NEWS = 100
"""The most micro-batches kept for `take_news`: more than come between two calls, few enough if it is never called."""


class SparkQuery:
    """What `Session.sql` returns. `dataframe` is an ordinary DataFrame; start it like any other.

    The listener calls `receive`, `pass_idle` and `end_run` from a thread of its own; a lock keeps them apart from the
    calls of the program.
    """

    def __init__(
        self,
        name: str,
        spec: QuerySpec,
        control: Control,
        adapt: bool | Policy = True,
        idle_timeout: float | None = None,
    ) -> None:
        self.name = name
        self.text = spec.text
        """The query as it was written."""
        self.streams = tuple(stream.name for stream in spec.streams)
        """The names of the declared streams that the query reads, without duplicates."""
        self.tables: tuple[str, ...] = ()
        """The names of the tables that the query reads."""
        self.inner: tuple[SparkQuery, ...] = ()
        """The queries of SELECTs in FROM, which run as parts of this one."""
        self.refreshed: tuple[DataFrame, ...] = ()
        """The tables whose files are listed anew after each micro-batch."""
        self.dataframe: DataFrame
        self._spec = spec
        self._control = control
        self._adaptation = Adaptation(Plan.of(spec.query, spec.plan), adapt)
        self._lock = threading.RLock()
        # The last micro-batch that reported: its number, its start in seconds and the reports of its shards.
        self._batch: int | None = None
        self._started = 0.0
        self._reports: list[ShardReport] = []
        # All micro-batches since the query was started by this program.
        self._rows = {"rows_in": 0, "rows_joined": 0, "rows_out": 0}
        self._dropped = {name: Counter[str]() for name in DROPPED}
        self._groups: int | None = None
        """The rows of the last micro-batch's groups; None if the query does not group."""
        self._totals = Totals(spec.query, spec.router)
        self._news: deque[dict[str, Any]] = deque(maxlen=MOST_NEWS)
        waited = waited_for(spec.query) if idle_timeout is None and not spec.watermarked else frozenset()
        self._silence = SilenceWatch(_keys_of(spec, waited))
        self._copies = CopyWatch(spec.query, spec.router)
        self._spreading = SpreadController(spec.narrow, spec.router)
        self._spreads = adapt is not False
        self._route_by: Callable[[SpreadTable], None] | None = None
        """Tells the running query to route by a table; None before it is started."""
        self._sent: list[SpreadTable] = []
        """Tables that were sent to the checkpoint and are not known to be there."""
        self._ungrouped = 0
        """The results of the join since the last batch that completed groups."""
        self._idle_timeout = idle_timeout
        self._idle_trackers: dict[str, IdleTracker] = {}
        """By run: each run has started at another time, and perhaps on another checkpoint."""

    @property
    def plan(self) -> Plan:
        """The plan that runs, or that was asked for and runs from the next micro-batch on."""
        return self._adaptation.plan

    @property
    def fingerprint(self) -> dict[str, Any]:
        """What the query means; a checkpoint of a query with another fingerprint is refused."""
        return self._spec.fingerprint

    def __repr__(self) -> str:
        return f"<query {self.name} over {', '.join(self.streams)}>"

    def _repr_html_(self) -> str:
        return query_html(self.name, self.text, self.plan, self.progress())

    def explain(self) -> str:
        """The plan as text: the probe order, the predicates at each step, and the rows to expect."""
        parts = [self.plan.explain(self.statistics())]
        with self._lock:
            if len(self._reports) > 1:
                even = evenness(self._reports)
                figures = f"{even['rows']} times the mean of rows and {even['work']} times that of work"
                parts.append(f"the largest of {len(self._reports)} shards had {figures}")
            if self._spreading.table.keys:
                parts.append(spread_text(self._spreading.table))
        return "\n".join(parts)

    def replan(self, plan: Written) -> None:
        """Probe in another order from the next micro-batch on; the state and the results stay the same.

        A query that adapts may change to yet another plan, once that one costs less.
        """
        with self._lock:
            wanted = Plan.of(self._spec.query, plan)
            if wanted == self.plan and self._batch is not None and self._adaptation.against is None:
                raise PlanError("the query runs this plan already; there is nothing to change")
            self._adaptation.unpin()
            self._ask_for(wanted, "replan")

    def pin(self, plan: Written | None = None) -> None:
        """Stay with a plan, by default the one that runs, until `replan` or `unpin`; adaptation pauses."""
        with self._lock:
            wanted = self.plan if plan is None else Plan.of(self._spec.query, plan)
            self._adaptation.pin()
            # Before the first report the query may be running another plan, which its checkpoint has.
            unsettled = self._adaptation.against is not None or (plan is not None and self._batch is None)
            if wanted != self.plan or unsettled:
                self._ask_for(wanted, "pin")

    def unpin(self) -> None:
        """Let the query change its plan by itself again, if its session adapts."""
        with self._lock:
            self._adaptation.unpin()

    def rescale(self, checkpoint: str, *, target: str | None = None) -> str:
        """Divide the state of an old checkpoint among the shards of this query, which does not run on it yet.

        The new checkpoint is `target`, a directory that does not exist. By default it takes the place of the old one,
        which is kept beside it. Returns the path of the new checkpoint.
        """
        from braid.hosts.spark.driver.rescaling import rescale_for

        return rescale_for(self.dataframe.sparkSession, checkpoint, self.fingerprint, target=target, say=logger.info)

    def history(self) -> RecordedChanges:
        """Every plan change: when and why, the plans before and after, the work predicted and measured, the verdict."""
        with self._lock:
            return RecordedChanges(self._adaptation.history.changes)

    def snapshot(self) -> Snapshot:
        """Recent figures of the streams: rates, sizes, windows, lateness, shares of matches, join keys."""
        with self._lock:
            return self._count_copies_once(self._adaptation.snapshot())

    def statistics(self) -> Statistics:
        """Statistics since this program started the query, in the form that planning and `explain` use.

        Rates count rows that pass the selections on their stream, per second of event time. Statistics that nothing
        was counted for are missing.
        """
        with self._lock:
            return self._totals.statistics()

    def progress(self) -> dict[str, Any] | None:
        """The figures of the last micro-batch that reported; None before the first."""
        with self._lock:
            return None if self._batch is None else self._progress(self._batch)

    def _progress(self, batch: int) -> dict[str, Any]:
        total = {**self._rows, **{name: dict(counts) for name, counts in self._dropped.items()}}
        return progress_of(batch, self._reports, self._spec, self._groups, total)

    def _warn_of_silence(self) -> None:
        """Warn of streams that bring nothing while results wait for them, once of each."""
        waiting = sum(report.waiting for report in self._reports) + self._ungrouped
        for key in self._silence.update(self._reports[0].progress, waiting):
            logger.warning(
                "stream '%s' has brought no rows in the last %d micro-batches, and %s results wait for it; if it may "
                "stay silent, start the query with idle_timeout=.. (on a new checkpoint), and results go on without it",
                _streams_by_key(self._spec)[key].name,
                SILENT_BATCHES,
                f"{waiting:,}",
            )

    def _warn_of_copies(self, rows: Mapping[str, int]) -> None:
        """Warn if fewer rows would be copied between shards had the rates of the streams been declared."""
        excess = self._copies.update(rows)
        if excess is not None:
            rates = ", ".join(f"{stream}: {count:,}" for stream, count in self._copies.rows_of_streams().items())
            logger.warning(
                "the shards get %.1f times the rows that they would get if the query knew how fast its streams are; "
                "declare them with rate=.. (on a new checkpoint); rows so far: %s",
                excess,
                rates,
            )

    def take_news(self) -> list[dict[str, Any]]:
        """The `progress` of every micro-batch that reported since the last call, at most the last `MOST_NEWS`."""
        with self._lock:
            news = list(self._news)
            self._news.clear()
            return news

    def start_run(self, table: SpreadTable, route_by: Callable[[SpreadTable], None]) -> None:
        """Note that a run has started on a checkpoint with this table of spread keys, and let it route by it."""
        route_by(table)
        with self._lock:
            self._control.withdraw_spread()
            self._spreading = SpreadController(self._spec.narrow, self._spec.router, table)
            self._route_by = route_by
            self._sent = []

    def _spread(self, checkpoint: Callable[[], str] | None) -> None:
        """Spread heavy keys: put a new table into the checkpoint first, and route by it when it is there."""
        if self._route_by is None or not self._spreads or checkpoint is None:
            return
        told = min(report.told for report in self._reports)
        stored = [table for table in self._sent if table.version <= told]
        if stored:
            self._route_by(stored[-1])
            self._sent = self._sent[len(stored) :]
        table = self._spreading.observe(self._reports)
        if table is not None:
            logger.info("query %s spreads heavy keys: %s", self.name, spread_text(table) or "none")
            self._control.spread(table, checkpoint())
            self._sent.append(table)

    def receive(
        self,
        batch: int,
        reports: Sequence[str],
        started: float,
        groups: int | None = None,
        checkpoint: Callable[[], str] | None = None,
    ) -> None:
        """Take the reports of all shards on a micro-batch, which started at `started` seconds.

        `groups` is the number of groups that it completed; None if the query does not group. `checkpoint` returns
        the identifier of the checkpoint; without it no key is spread.
        """
        for table in self.refreshed:
            table._jdf.queryExecution().analyzed().refresh()
        with self._lock:
            self._groups = groups
            self._rows["rows_out"] += groups or 0
            if not reports:
                return
            self._reports = [ShardReport.from_json(report) for report in reports]
            self._batch = batch
            self._started = started
            self._totals.add(self._reports)
            rows = rows_by_stream(self._reports, self._spec)
            self._rows["rows_in"] += sum(rows.values())
            joined = sum(report.rows_out for report in self._reports)
            self._rows["rows_joined"] += joined
            self._rows["rows_out"] += joined if groups is None else 0
            self._ungrouped = 0 if groups is None or groups else self._ungrouped + joined
            for name, counts in dropped_rows(self._reports, self._spec).items():
                self._dropped[name].update(counts)
            self._warn_of_silence()
            self._warn_of_copies(rows)
            self._news.append(self._progress(batch))
            self._spread(checkpoint)
            self._adapt(batch, started)

    @property
    def passes_idle(self) -> bool:
        """Whether the query has an idle timeout."""
        return self._idle_timeout is not None

    def pass_idle(self, run: str, report: str, checkpoint: str, started: float) -> None:
        """Look for idle streams in a run, and tell its shards not to wait for them.

        `report` is that of any shard on the last micro-batch: every shard gets a segment of every active stream.
        """
        if self._idle_timeout is None:
            return
        streams = _streams_by_key(self._spec)
        by_alias = ShardReport.from_json(report).progress
        progress = {stream.name: by_alias[key] for key, stream in streams.items()}
        with self._lock:
            tracker = self._idle_trackers.setdefault(run, IdleTracker(self._idle_timeout))
            moved = tracker.update(progress, started)
        if moved:
            # A message says which row a stream would have brought; the shards subtract its lateness again.
            lateness = {stream.name: stream.lateness for stream in streams.values()}
            reached = {name: watermark + lateness[name] for name, watermark in moved.items()}
            self._control.pass_idle(reached, checkpoint)

    def end_run(self, run: str) -> None:
        """Forget the idle streams of a run that has ended."""
        with self._lock:
            self._idle_trackers.pop(run, None)

    def _ask_for(self, plan: Plan, reason: str) -> None:
        self._control.send(plan)
        self._adaptation.set_plan(plan, self._started, -1 if self._batch is None else self._batch, reason)

    def _count_copies_once(self, snapshot: Snapshot) -> Snapshot:
        """A snapshot in which a row that was copied to several shards counts once.

        The controller counts every copy, because every copy is work.
        """
        copies = self._spec.router.copies
        streams = {alias: figures.shared_by(copies([alias])) for alias, figures in snapshot.streams.items()}
        shares = {}
        for ends, share in snapshot.shares.items():
            # Estimates from join keys do not depend on copies.
            correction = 1.0 if ends in snapshot.estimated else prod(copies([end]) for end in ends) / copies(ends)
            shares[ends] = share.scaled(correction)
        return replace(snapshot, streams=streams, shares=shares)

    def _adapt(self, batch: int, started: float) -> None:
        """Give the reports to the controller, and ask for another plan if it wants one."""
        change = observe_reports(self._adaptation, self._reports, started, batch)
        if change is not None:
            logger.info("query %s changes its plan after batch %d: %s", self.name, batch, change.reason)
            self._control.send(change.after, change.against, change.expected)


def _streams_by_key(spec: QuerySpec) -> dict[str, Stream | Branch]:
    """The streams that can be silent or idle on their own, by their names in reports: branches count one by one."""
    streams: dict[str, Stream | Branch] = {}
    for source in spec.query.inputs:
        for number, branch in enumerate(source.declared.branches):
            streams[branch_key(source.alias, number)] = branch
        if not source.declared.branches:
            streams[source.alias] = source.declared
    return streams


def _keys_of(spec: QuerySpec, aliases: Collection[str]) -> list[str]:
    """The names in reports of these streams, or of their branches."""
    keys: list[str] = []
    for source in spec.query.inputs:
        if source.alias in aliases:
            branches = range(len(source.declared.branches))
            keys += [branch_key(source.alias, number) for number in branches] or [source.alias]
    return keys
