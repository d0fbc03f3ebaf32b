"""What the site programs of a deployment yield, by definition: each instruction applied to all rows of its stream.

Nothing arrives and no window slides here: a stream is the list of all its rows, and `Interpreter.rows` follows a stream
back through the programs to the rows it is made of. The last row of a combination, in order of start, stream and row
number, triggers the combination. So a probe matches only rows that come before its head, and each combination is
found once.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from braid.model.advertisement import Advertisement
from braid.model.expressions.expression import Call, Cast, Column, Expression, Literal
from braid.model.graph import AttributeClass
from braid.model.partitions import RangePartition, ValuePartition
from braid.model.predicate import Predicate
from braid.model.program import (
    Emit,
    Filter,
    Guard,
    Instruction,
    Join,
    Narrow,
    Project,
    Reuse,
    Ship,
    SiteProgram,
    Union,
    Update,
)
from braid.model.query import Output, Query
from braid.model.window import FOREVER, Window
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
    """One row of each of some streams, with its start and its row number. `end` is when the first of them expires."""

    rows: Mapping[str, Row]
    starts: Mapping[str, int]
    numbers: Mapping[str, int]
    end: int

    @property
    def start(self) -> int:
        return max(self.starts.values())

    @cached_property
    def last(self) -> tuple[int, str, int]:
        """The row that came last: its start, its stream and its number."""
        return max((self.starts[stream], stream, self.numbers[stream]) for stream in self.rows)

    def value(self, expression: Expression) -> Any:
        if isinstance(expression, Literal):
            return expression.value
        if isinstance(expression, Column):
            assert expression.source is not None
            return self.rows[expression.source][expression.name]
        if isinstance(expression, Cast):
            return self.value(expression.operand)  # The keys of a class are compared as one type, which they have here.
        assert isinstance(expression, Call)
        values = [self.value(argument) for argument in expression.arguments]
        return None if None in values else COMPARISONS[expression.function](*values)

    def satisfies(self, predicates: Iterable[Predicate], keys: Iterable[AttributeClass] = ()) -> bool:
        equal_keys = all(_are_equal(self._key_values(key)) for key in keys)
        return equal_keys and all(self.value(predicate.expression) for predicate in predicates)

    def passes(self, guard: Guard) -> bool:
        assert (guard.since, guard.until) == (-FOREVER, FOREVER)
        partition = guard.partitions
        assert partition is None or isinstance(partition, ValuePartition | RangePartition)
        return partition is None or partition.covers(self._key_values(partition.attribute_class)[0])

    def _key_values(self, key: AttributeClass) -> list[Any]:
        return [self.value(expression) for stream, expression in key.members if stream in self.rows]

    def with_(self, other: Combination) -> Combination:
        return Combination(
            {**self.rows, **other.rows},
            {**self.starts, **other.starts},
            {**self.numbers, **other.numbers},
            min(self.end, other.end),
        )

    def renamed(self, names: Mapping[str, str]) -> Combination:
        def under_new_names(by_stream: Mapping[str, Any]) -> dict[str, Any]:
            return {names[stream]: value for stream, value in by_stream.items()}

        return Combination(
            under_new_names(self.rows), under_new_names(self.starts), under_new_names(self.numbers), self.end
        )

    def narrowed(self, windows: Iterable[tuple[str, Window]]) -> Combination:
        ends = [end_of(self.starts[stream], window) for stream, window in windows]
        return replace(self, end=min([self.end, *ends]))


def _are_equal(values: Iterable[Any]) -> bool:
    """Whether keys are equal; an unknown one is equal to none."""
    different = set(values)
    return len(different) == 1 and None not in different


def end_of(start: int, window: Window) -> int:
    """When a row that starts at this time leaves its window."""
    assert window.lifetime is not None
    assert window.slide is None
    return FOREVER if window.lifetime == FOREVER else start + window.lifetime


class Interpreter:
    """Runs the site programs of one deployment.

    `streams` holds the rows of each stream, with their event times in microseconds as `ts`. `others` are the
    interpreters of the deployments whose derived streams this one reuses. The filters in `weakened` let every row
    through, as they do once another deployment has had them weakened.
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
        self._rows: dict[tuple[str, str], list[Combination]] = {}

    def results(self) -> list[tuple[Any, ...]]:
        """The result rows of the query, from all sites that emit some, sorted."""
        results: list[tuple[Any, ...]] = []
        for site, project in self._emitted_streams():
            outputs = [output.expression for output in project.outputs if isinstance(output, Output)]
            results += [tuple(map(row.value, outputs)) for row in self.rows(site, project.stream)]
        return sorted(results)

    def emitted(self) -> list[Combination]:
        """The combinations that the result rows are made of, from all sites that emit some."""
        return [row for site, project in self._emitted_streams() for row in self.rows(site, project.stream)]

    def _emitted_streams(self) -> Iterator[tuple[str, Project]]:
        """Each projection whose result is emitted, with its site."""
        for site, program in self._programs.items():
            for emit in program.all_of(Emit):
                (project,) = (project for project in program.all_of(Project) if project.result == emit.stream)
                yield site, project

    def shipped(self) -> list[Combination]:
        """Every row that one site ships to another."""
        shipped: list[Combination] = []
        for site, program in self._programs.items():
            for ship in program.all_of(Ship):
                shipped += [row for row in self.rows(site, ship.stream) if row.passes(ship.guard)]
        return shipped

    def rows(self, site: str, stream: str) -> list[Combination]:
        """All rows of a stream at a site, after the filters and narrowed windows that the site applies to them."""
        if (site, stream) not in self._rows:
            rows = self._unfiltered(site, stream)
            for instruction in self._instructions(site):
                if isinstance(instruction, Filter) and instruction.stream == stream:
                    weakened = instruction.predicate in self._weakened
                    rows = [row for row in rows if weakened or row.satisfies([instruction.predicate])]
                elif isinstance(instruction, Narrow) and instruction.stream == stream:
                    rows = [row for row in (row.narrowed(instruction.windows) for row in rows) if row.start < row.end]
            self._rows[site, stream] = rows
        return self._rows[site, stream]

    def _instructions(self, site: str) -> tuple[Instruction, ...]:
        return self._programs[site].instructions if site in self._programs else ()

    def _unfiltered(self, site: str, stream: str) -> list[Combination]:
        for instruction in self._instructions(site):
            if isinstance(instruction, Union) and instruction.result == stream:
                return [row for united in instruction.streams for row in self.rows(site, united)]
            if isinstance(instruction, Join) and instruction.result == stream:
                return list(self._join(site, instruction))
            if isinstance(instruction, Reuse) and instruction.result == stream:
                return self._reused(instruction)
        if self._origins.get(stream) == site:
            return self._base(stream)
        return self._arriving(site, stream)

    def _arriving(self, site: str, stream: str) -> list[Combination]:
        """The rows of a stream that other sites ship to this one."""
        arriving: list[Combination] = []
        for sender, program in self._programs.items():
            for ship in program.all_of(Ship):
                if (ship.stream, ship.site) == (stream, site):
                    arriving += [row for row in self.rows(sender, stream) if row.passes(ship.guard)]
        return arriving

    def _reused(self, reuse: Reuse) -> list[Combination]:
        # Deployments that advertise the same join at the same site have the same rows, so the first one will do.
        owner = next(other for other in self._others if other.advertises(reuse.advertisement))
        joined = separator(owner._query, "+").join(reuse.advertisement.query.aliases)
        names = dict(reuse.names)
        return [row.renamed(names) for row in owner.rows(reuse.advertisement.site, joined)]

    def advertises(self, wanted: Advertisement) -> bool:
        return any((offer.query, offer.site) == (wanted.query, wanted.site) for offer in self._deployment.advertised)

    def _base(self, alias: str) -> list[Combination]:
        source = self._query.source(alias)
        return [
            Combination({alias: row}, {alias: row["ts"]}, {alias: row_number}, end_of(row["ts"], source.window))
            for row_number, row in enumerate(self._streams[source.stream])
        ]

    def _join(self, site: str, join: Join) -> Iterator[Combination]:
        assert Update(join.stream) in self._instructions(site), "a stream that is probed has a window"
        window = self.rows(site, join.stream)
        for head in self.rows(site, join.probe):
            if not head.passes(join.guard):
                continue
            for row in window:
                both = head.with_(row)
                alive = row.last < head.last and both.start < both.end
                if alive and both.satisfies(join.predicates, join.keys):
                    yield both
