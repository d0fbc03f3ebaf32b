"""Adds up what the shards of a query report, and derives the statistics that planning and `explain` use."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from braid.adapt.observation import StreamSeen
from braid.model.duration import UNITS
from braid.model.explain import conditions_at
from braid.model.plan import Plan, Written
from braid.model.query import Query
from braid.model.statistics import Prefix, Statistics, Subject
from braid.model.window import FOREVER
from braid.runtime.fanouts import JoinKey, fanouts_of, tree_fanouts
from braid.runtime.filling import Filling
from braid.runtime.report import JoinReport, ShardReport
from braid.runtime.routing import Router


@dataclass
class StreamTotals:
    """The rows of one stream in all shards. A row that was copied to several shards counts once.

    `population` is how many rows the window holds. `first`, `earlier` and `newest` are event times: the newest time in
    the first batch that had any, before the last one, and so far. `rows_since_first` entered the window in later
    batches than the first: the rows that are not late and pass the selections on their stream.
    """

    rows: float = 0.0
    late: float = 0.0
    size: float = 0.0
    population: float = 0.0
    first: int = -FOREVER
    earlier: int = -FOREVER
    newest: int = -FOREVER
    rows_since_first: float = 0.0
    received_since_first: float = 0.0

    @property
    def rate(self) -> float | None:
        """Rows that entered the window per second of event time; None until time has moved on from `first`."""
        return self._per_second(self.rows_since_first)

    @property
    def received_rate(self) -> float | None:
        """The same, of all rows that came."""
        return self._per_second(self.received_since_first)

    def _per_second(self, rows: float) -> float | None:
        if self.first == -FOREVER or self.newest <= self.first:
            return None
        return rows / ((self.newest - self.first) / UNITS["second"])


@dataclass
class JoinTotals:
    """How often a window was probed, how many matches that had, and how many pairs of rows that compared."""

    probes: float = 0.0
    matches: float = 0.0
    pairs: float = 0.0


@dataclass
class Totals:
    """Everything that shards have reported since this program started the query."""

    query: Query
    router: Router
    streams: dict[str, StreamTotals] = field(default_factory=dict)
    joins: dict[tuple[tuple[str, ...], str], JoinTotals] = field(default_factory=dict)
    """By the streams joined so far, and the stream whose window they probe."""
    fanouts: dict[Prefix, float] = field(default_factory=dict)
    """As the last batch in which the head had rows makes expect them in the next one: a total would not show changes.

    Those of earlier plans are dropped. With parts there are none: rows of one stream go along several orders.
    """
    plan: Written | None = None
    """The plan of the last batch."""

    def _growth(self, head: str, bound: frozenset[str]) -> float:
        """How many times as many combinations new rows of a head will make in the next batch, as windows are filling.

        In a batch, a row sees the new rows of streams before its own. Windows that count rows are taken to be full.
        """
        order, growth = self.query.aliases, 1.0
        lives = self.query.source(head).window.lifetime
        for alias in bound - {head}:
            total, length = self.streams[alias], self.query.source(alias).window.lifetime
            if lives is not None and length is not None and -FOREVER < total.earlier < total.newest:
                # Rows of the first batch began about one batch before its newest row.
                first = total.first - (total.newest - total.earlier)
                filling = Filling(first, total.earlier, total.newest)
                growth *= filling.growth(lives, length, sees_new=order.index(alias) < order.index(head))
        return growth

    def add(self, reports: Sequence[ShardReport]) -> None:
        """Add the reports of all shards on one batch."""
        for alias in self.query.aliases:
            self._add_stream(alias, [report.observation.streams[alias] for report in reports])
        for report in reports:
            for join in report.joins:
                self._add_join(join)
        if reports:
            if reports[0].plan != self.plan:
                self.plan, self.fanouts = reports[0].plan, {}
            self.fanouts |= self._fanouts_in(Plan.of(self.query, reports[0].plan), reports)

    def _fanouts_in(self, plan: Plan, reports: Sequence[ShardReport]) -> dict[Prefix, float]:
        """The fan-outs along a plan in one batch."""
        if plan.parts:
            return {}
        copies, joins = self.router.copies, dict[JoinKey, tuple[float, float]]()
        for report in reports:
            for join in report.joins:
                probes, matches = joins.get((join.bound, join.probed), (0.0, 0.0))
                probes += join.probes / copies(join.bound)
                matches += join.matches / copies((*join.bound, *join.probed))
                joins[join.bound, join.probed] = probes, matches
        rows = {
            alias: sum(report.observation.streams[alias].entered for report in reports) / copies([alias])
            for alias in self.query.aliases
        }
        fanouts = fanouts_of(joins, rows) if plan.tree is None else tree_fanouts(joins, rows)
        return {(head, bound): fanout * self._growth(head, bound) for (head, bound), fanout in fanouts.items()}

    def _add_stream(self, alias: str, by_shard: Sequence[StreamSeen]) -> None:
        copies = self.router.copies([alias])
        total = self.streams.setdefault(alias, StreamTotals())
        rows = sum(seen.timed for seen in by_shard) / copies
        newest = max((seen.newest for seen in by_shard if seen.newest is not None), default=-FOREVER)
        total.rows += rows
        total.late += sum(seen.late for seen in by_shard) / copies
        total.size += sum(seen.size for seen in by_shard) / copies
        total.population = sum(seen.held for seen in by_shard) / copies
        if total.first > -FOREVER:
            total.rows_since_first += sum(seen.entered for seen in by_shard) / copies
            total.received_since_first += rows
        elif newest > -FOREVER:
            total.first = newest
        total.earlier, total.newest = total.newest, max(total.newest, newest)

    def _add_join(self, join: JoinReport) -> None:
        if join.stream is None:
            return  # How many combinations were kept is not known here.
        total = self.joins.setdefault((join.bound, join.stream), JoinTotals())
        probes = join.probes / self.router.copies(join.bound)
        total.probes += probes
        total.matches += join.matches / self.router.copies((*join.bound, join.stream))
        total.pairs += probes * self.streams[join.stream].population

    def statistics(self) -> Statistics:
        """The statistics so far. Predicates of a window that was never probed are unknown."""
        return Statistics(
            rates={alias: total.rate for alias, total in self.streams.items() if total.rate is not None},
            sizes={alias: total.size / total.rows for alias, total in self.streams.items() if total.rows},
            populations={alias: total.population for alias, total in self.streams.items()},
            selectivities=dict(self._selectivities()),
            fanouts=self.fanouts,
        )

    def _selectivities(self) -> Iterable[tuple[Subject, float]]:
        """The selectivity of each predicate that is the only one of a join, and of each pair of streams joined first.

        Several joins may tell the selectivity of the same subject; the one that compared most pairs is used.
        """
        best: dict[Subject, JoinTotals] = {}
        for (bound, stream), total in self.joins.items():
            if not total.pairs:
                continue
            conditions = conditions_at(self.query, bound, stream)
            subjects: list[Subject] = [str(conditions[0])] if len(conditions) == 1 else []
            if len(bound) == 1:
                subjects.append(frozenset((*bound, stream)))
            for subject in subjects:
                if subject not in best or best[subject].pairs < total.pairs:
                    best[subject] = total
        # The population is measured once per batch, so a window may match more rows than were counted as pairs.
        return ((subject, min(1.0, total.matches / total.pairs)) for subject, total in best.items())
