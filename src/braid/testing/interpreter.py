"""What the site programs of a deployment yield, by definition: every instruction on all rows there ever are.

No windows slide here and nothing arrives: a stream is the list of all its rows. Of the parts of a combination the last
one, in order of start, stream and row, triggers it, so that a probe matches only what is before its head.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from braid.model.advertisement import Advertisement
from braid.model.expressions.expression import Call, Column, Expression, Literal
from braid.model.graph import AttributeClass
from braid.model.partitions import RangePartition, ValuePartition
from braid.model.predicate import Predicate
from braid.model.program import Emit, Filter, Guard, Join, Narrow, Project, Reuse, Ship, SiteProgram, Union, reads
from braid.model.query import Output, Query
from braid.model.window import FOREVER, Now, Range, Unbounded, Window
from braid.planning.deployment import Deployment
from braid.planning.stream_names import separator

COMPARISONS = {
    "equal": operator.eq,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
}
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Combination:
    """One row of each of some streams, which of its rows that is, and when all of them are alive."""

    rows: Mapping[str, Row]
    starts: Mapping[str, int]
    numbers: Mapping[str, int]
    end: int

    @property
    def start(self) -> int:
        return max(self.starts.values())

    @cached_property
    def last(self) -> tuple[int, str, int]:
        """The part that came last."""
        return max((self.starts[name], name, self.numbers[name]) for name in self.rows)

    def value(self, expression: Expression) -> Any:
        if isinstance(expression, Literal):
            return expression.value
        if isinstance(expression, Column):
            assert expression.source is not None
            return self.rows[expression.source][expression.name]
        assert isinstance(expression, Call)
        return COMPARISONS[expression.function](*map(self.value, expression.arguments))

    def satisfies(self, predicates: Iterable[Predicate], keys: Iterable[AttributeClass] = ()) -> bool:
        agreeing = all(len(set(self._values(tied))) == 1 for tied in keys)
        return agreeing and all(self.value(predicate.expression) for predicate in predicates)

    def passes(self, guard: Guard) -> bool:
        assert (guard.since, guard.until) == (-FOREVER, FOREVER)
        part = guard.partitions
        assert part is None or isinstance(part, ValuePartition | RangePartition)
        return part is None or part.covers(self._values(part.attribute_class)[0])

    def _values(self, tied: AttributeClass) -> list[Any]:
        return [self.value(expression) for owner, expression in tied.members if owner in self.rows]

    def with_(self, other: Combination) -> Combination:
        return Combination(
            {**self.rows, **other.rows},
            {**self.starts, **other.starts},
            {**self.numbers, **other.numbers},
            min(self.end, other.end),
        )

    def renamed(self, names: Mapping[str, str]) -> Combination:
        def under(given: Mapping[str, Any]) -> dict[str, Any]:
            return {names[name]: value for name, value in given.items()}

        return Combination(under(self.rows), under(self.starts), under(self.numbers), self.end)

    def narrowed(self, windows: Iterable[tuple[str, Window]]) -> Combination:
        return replace(self, end=min([self.end, *(end_of(self.starts[name], window) for name, window in windows)]))


def end_of(start: int, window: Window) -> int:
    assert isinstance(window, Now | Unbounded) or (isinstance(window, Range) and window.slide is None)
    return FOREVER if isinstance(window, Unbounded) else start + (window.length if isinstance(window, Range) else 1)


class Interpreter:
    """`streams` have the rows of each stream, with their times in microseconds as `ts`; `origins` the site of each.

    What another deployment has made is taken from it where it is reused. `weakened` are filters that others have had
    weakened, to let everything through.
    """

    def __init__(
        self,
        deployment: Deployment,
        streams: Mapping[str, list[Row]],
        others: Iterable[Interpreter] = (),
        weakened: Iterable[Predicate] = (),
    ) -> None:
        self._deployment = deployment
        self._programs: Mapping[str, SiteProgram] = deployment.programs
        self._query: Query = deployment.query
        problem = deployment.solution.problem
        sites = (problem.topology.names[origin] for origin in problem.origins)
        self._origins = dict(zip(problem.streams, sites, strict=True))
        self._streams, self._others, self._weakened = streams, list(others), list(weakened)
        self._found: dict[tuple[str, str], list[Combination]] = {}

    def results(self) -> list[tuple[Any, ...]]:
        """The rows that come out, wherever that is."""
        found: list[tuple[Any, ...]] = []
        for site, program in self._programs.items():
            for emit in (step for step in program.instructions if isinstance(step, Emit)):
                (project,) = (s for s in program.instructions if isinstance(s, Project) and s.result == emit.stream)
                outputs = [output.expression for output in project.outputs if isinstance(output, Output)]
                found += [tuple(map(row.value, outputs)) for row in self.rows(site, project.stream)]
        return sorted(found)

    def rows(self, site: str, name: str) -> list[Combination]:
        """All rows of a stream at a site, behind what its program does with them there."""
        if (site, name) not in self._found:
            rows = self._raw(site, name)
            for step in self._programs[site].instructions if site in self._programs else ():
                if isinstance(step, Filter) and step.stream == name:
                    weakened = step.predicate in self._weakened
                    rows = [row for row in rows if weakened or row.satisfies([step.predicate])]
                elif isinstance(step, Narrow) and step.stream == name:
                    rows = [row for row in (row.narrowed(step.windows) for row in rows) if row.start < row.end]
            self._found[site, name] = rows
        return self._found[site, name]

    def _raw(self, site: str, name: str) -> list[Combination]:
        program = self._programs.get(site)
        for step in program.instructions if program is not None else ():
            if isinstance(step, Union) and step.result == name:
                return [row for part in step.streams for row in self.rows(site, part)]
            if isinstance(step, Join) and step.result == name:
                return list(self._join(site, step))
            if isinstance(step, Reuse) and step.result == name:
                return self._reused(step)
        if self._origins.get(name) == site:
            return self._base(name)
        return [
            row
            for other, sending in self._programs.items()
            for step in sending.instructions
            if isinstance(step, Ship) and step.site == site and name in reads(step)
            for row in self.rows(other, name)
            if row.passes(step.guard)
        ]

    def _reused(self, step: Reuse) -> list[Combination]:
        # Who advertises the same has the same rows.
        owner = next(other for other in self._others if other.advertises(step.advertisement))
        query, names = step.advertisement.query, dict(step.names)
        made = separator(owner._query, "+").join(query.aliases)
        return [row.renamed(names) for row in owner.rows(step.advertisement.site, made)]

    def advertises(self, wanted: Advertisement) -> bool:
        return any((found.query, found.site) == (wanted.query, wanted.site) for found in self._deployment.advertised)

    def _base(self, alias: str) -> list[Combination]:
        source = self._query.source(alias)
        return [
            Combination({alias: row}, {alias: row["ts"]}, {alias: number}, end_of(row["ts"], source.window))
            for number, row in enumerate(self._streams[source.stream])
        ]

    def _join(self, site: str, join: Join) -> Iterable[Combination]:
        window = self.rows(site, join.stream)
        for head in self.rows(site, join.probe):
            if head.passes(join.guard):
                for row in window:
                    both = head.with_(row)
                    alive = row.last < head.last and both.start < both.end
                    if alive and both.satisfies(join.predicates, join.keys):
                        yield both
