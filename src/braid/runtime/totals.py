"""What the shards of a query have counted since it was started, and the statistics that follow from it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from braid.adapt.observation import StreamSeen
from braid.model.duration import UNITS
from braid.model.explain import conditions_at
from braid.model.query import Query
from braid.model.statistics import Statistics, Subject
from braid.model.window import FOREVER
from braid.runtime.observing import JoinKey
from braid.runtime.report import JoinReport, ShardReport
from braid.runtime.routing import Router


@dataclass
class StreamTotals:
    """Rows of one stream in all shards; a row that was copied to several counts once. Times are event times."""

    rows: float = 0.0
    late: float = 0.0
    size: float = 0.0
    population: float = 0.0
    first: int = -FOREVER
    newest: int = -FOREVER
    rows_since_first: float = 0.0

    @property
    def rate(self) -> float | None:
        """Rows per second of event time; unknown until the stream has moved on from where it was first seen."""
        passed = self.newest - self.first
        return self.rows_since_first / (passed / UNITS["second"]) if self.first > -FOREVER and passed > 0 else None


@dataclass
class JoinTotals:
    """How often a window was probed, what was found, and how many pairs of rows that compared."""

    probes: float = 0.0
    matches: float = 0.0
    pairs: float = 0.0


@dataclass
class Totals:
    """Everything counted since this program started the query."""

    query: Query
    router: Router
    streams: dict[str, StreamTotals] = field(default_factory=dict)
    joins: dict[JoinKey, JoinTotals] = field(default_factory=dict)

    def add(self, reports: Sequence[ShardReport]) -> None:
        """Add what all shards report of one batch."""
        for alias in self.query.aliases:
            self._add_stream(alias, [report.observation.streams[alias] for report in reports])
        for report in reports:
            for join in report.joins:
                self._add_join(join)

    def _add_stream(self, alias: str, parts: Sequence[StreamSeen]) -> None:
        copies = self.router.copies([alias])
        total = self.streams.setdefault(alias, StreamTotals())
        rows = sum(part.timed for part in parts) / copies
        newest = max((part.newest for part in parts if part.newest is not None), default=-FOREVER)
        total.rows += rows
        total.late += sum(part.late for part in parts) / copies
        total.size += sum(part.size for part in parts) / copies
        total.population = sum(part.held for part in parts) / copies
        if total.first > -FOREVER:
            total.rows_since_first += rows
        elif newest > -FOREVER:
            total.first = newest
        total.newest = max(total.newest, newest)

    def _add_join(self, join: JoinReport) -> None:
        total = self.joins.setdefault((join.bound, join.stream), JoinTotals())
        distinct = join.probes / self.router.copies(join.bound)
        total.probes += distinct
        total.matches += join.matches / self.router.copies((*join.bound, join.stream))
        total.pairs += distinct * self.streams[join.stream].population

    def statistics(self) -> Statistics:
        """What is known by now; a window that was never probed tells nothing of its predicates."""
        return Statistics(
            rates={alias: total.rate for alias, total in self.streams.items() if total.rate is not None},
            sizes={alias: total.size / total.rows for alias, total in self.streams.items() if total.rows},
            populations={alias: total.population for alias, total in self.streams.items()},
            selectivities=dict(self._selectivities()),
        )

    def _selectivities(self) -> Iterable[tuple[Subject, float]]:
        """Of each predicate that is alone at some step, and of the pairs of streams that are joined first.

        One that was seen at several steps is known best where most pairs were compared.
        """
        found: dict[Subject, JoinTotals] = {}
        for (bound, stream), total in self.joins.items():
            conditions = conditions_at(self.query, bound, stream)
            subjects: list[Subject] = [str(conditions[0])] if len(conditions) == 1 else []
            if len(bound) == 1:
                subjects.append(frozenset((*bound, stream)))
            for subject in subjects if total.pairs else ():
                if subject not in found or found[subject].pairs < total.pairs:
                    found[subject] = total
        # The rows of a batch that come after a window was counted may add matches that no pair was counted for.
        return ((subject, min(1.0, total.matches / total.pairs)) for subject, total in found.items())
