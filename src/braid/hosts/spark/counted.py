"""What the buckets of a query have counted, added up in the driver, and the statistics that follow from it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from braid.engine.routing import Router
from braid.engine.site import Counts, Site
from braid.model.explain import conditions_at
from braid.model.plan import Plan
from braid.model.program import Join, Union
from braid.model.query import Query
from braid.model.statistics import Statistics, Subject
from braid.model.window import FOREVER, UNITS

JoinKey = tuple[tuple[str, ...], str]
"""The streams joined so far, in order, and the stream they probe."""


def counts_of_joins(site: Site, counts: Counts) -> dict[JoinKey, tuple[int, int]]:
    """Probes and matches in the windows of streams, by what is joined with what.

    Names of derived streams mean nothing outside the site.
    """
    members: dict[str, tuple[str, ...]] = {alias: (alias,) for alias in counts.streams}
    for step in site.program.instructions:
        if isinstance(step, Join):
            members[step.result] = (*members[step.probe], *members[step.stream])
        elif isinstance(step, Union):
            members[step.result] = members[step.streams[0]]
    return {
        (members[join.probe], join.stream): (join.probes, join.matches)
        for join in counts.joins
        if join.stream in counts.streams
    }


@dataclass
class StreamTotals:
    """Rows of a source in all buckets, copies among them counted once. Times are event times."""

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
class Counted:
    """Everything counted since this program started the query."""

    query: Query
    router: Router
    streams: dict[str, StreamTotals] = field(default_factory=dict)
    joins: dict[JoinKey, JoinTotals] = field(default_factory=dict)

    def add(self, reports: Sequence[Mapping[str, Any]]) -> None:
        """What all buckets report of one micro-batch."""
        for alias in self.query.aliases:
            copies = self.router.copies([alias])
            parts = [report["streams"][alias] for report in reports]
            total = self.streams.setdefault(alias, StreamTotals())
            rows = sum(part["rows"] for part in parts) / copies
            newest = max(part["newest"] for part in parts)
            total.rows += rows
            total.late += sum(part["late"] for part in parts) / copies
            total.size += sum(part["bytes"] for part in parts) / copies
            total.population = sum(part["window"] for part in parts) / copies
            if total.first > -FOREVER:
                total.rows_since_first += rows
            elif newest > -FOREVER:
                total.first = newest
            total.newest = max(total.newest, newest)
        for report in reports:
            for bound, stream, probes, matches in report["joins"]:
                self._add_join(tuple(bound), stream, probes, matches)

    def _add_join(self, bound: tuple[str, ...], stream: str, probes: int, matches: int) -> None:
        total = self.joins.setdefault((bound, stream), JoinTotals())
        distinct = probes / self.router.copies(bound)
        total.probes += distinct
        total.matches += matches / self.router.copies((*bound, stream))
        total.pairs += distinct * self.streams[stream].population

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
        plan = Plan.of(self.query, None)
        found: dict[Subject, JoinTotals] = {}
        for (bound, stream), total in self.joins.items():
            conditions = conditions_at(plan, list(bound), stream)
            subjects: list[Subject] = [str(conditions[0])] if len(conditions) == 1 else []
            if len(bound) == 1:
                subjects.append(frozenset((*bound, stream)))
            for subject in subjects if total.pairs else ():
                if subject not in found or found[subject].pairs < total.pairs:
                    found[subject] = total
        # The rows of a batch that come after a window was counted may add matches that no pair was counted for.
        return ((subject, min(1.0, total.matches / total.pairs)) for subject, total in found.items())
