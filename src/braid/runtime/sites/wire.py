"""Streams on their way between joins: which columns a row carries, and how its lifetime follows from them.

A base row carries its own columns, its event time among them, and its lifetime is what its window makes of that time. A
derived row carries columns of its parts, and when each part started. Its lifetime is that of its parts together: from
the latest of their starts to the earliest of their ends. Lifetimes themselves do not travel: a window of time has the
same length for every row, so that starts tell ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from braid.engine.arrays.jit import Words
from braid.engine.input.lifetime import event_times, lifetimes
from braid.errors import PlanError
from braid.model.expressions.expression import Column, columns_of
from braid.model.expressions.types import INSTANT
from braid.model.query import Query
from braid.model.window import FOREVER


@dataclass(frozen=True)
class WireStream:
    """A stream of a query as it travels; `parts` are the streams it joins, by alias, in order.

    `started` are the parts whose starts its rows carry. `at_origin` is a base stream where it starts, before the
    conditions on it alone are checked. `with_all` keeps every column of its parts, for other queries.
    """

    query: Query
    name: str
    parts: tuple[str, ...]
    started: tuple[str, ...] = ()
    at_origin: bool = False
    with_all: bool = False

    @property
    def is_base(self) -> bool:
        return not self.started

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """The columns of its parts that are still needed, in the order of the query's streams and their schemas."""
        needed = set(self._needed())
        return tuple(
            Column(alias, name)
            for alias in self.query.aliases
            if alias in self.parts
            for name in self.query.source(alias).declared.schema.names
            if self.with_all or Column(alias, name) in needed
        )

    def _needed(self) -> Iterator[Column]:
        parts = frozenset(self.parts)
        if self.is_base:
            source = self.query.source(self.name)
            yield Column(self.name, source.declared.time)
            if source.window.counts_rows:
                # Rows of the same event time are counted in the order of all their columns.
                yield from (Column(self.name, column) for column in source.declared.schema.names)
        if self.at_origin:
            for selection in self.query.graph.selections_of(self.name):
                yield from columns_of(selection.expression)
        yield from columns_needed_outside(self.query, parts)

    @cached_property
    def field_names(self) -> dict[Column, str]:
        """What the columns are called on the wire: columns of a base stream keep their names."""
        if self.is_base:
            return {column: column.name for column in self.columns}
        names = _distinct(f"{column.source}.{column.name}" for column in self.columns)
        return dict(zip(self.columns, names, strict=True))

    @cached_property
    def start_names(self) -> dict[str, str]:
        """What the columns with the starts of parts are called."""
        taken = set(self.field_names.values())
        return dict(zip(self.started, _distinct((f"start of {alias}" for alias in self.started), taken), strict=True))

    @cached_property
    def schema(self) -> pa.Schema:
        fields = [pa.field(name, self.type_of(column)) for column, name in self.field_names.items()]
        return pa.schema([*fields, *(pa.field(name, INSTANT) for name in self.start_names.values())])

    def type_of(self, column: Column) -> pa.DataType:
        return self.query.source(column.source or "").declared.schema.field(column.name).type

    def lifetimes(self, rows: pa.RecordBatch) -> tuple[Words, Words]:
        """When rows start and end."""
        if self.is_base:
            source = self.query.source(self.name)
            return lifetimes(event_times(rows.column(source.declared.time)), source.window)
        starts = np.full(rows.num_rows, -FOREVER)
        ends = np.full(rows.num_rows, FOREVER)
        for alias, name in self.start_names.items():
            part_starts = event_times(rows.column(name))
            lifetime = self.query.source(alias).window.lifetime
            if lifetime is None:
                raise PlanError(f"rows of '{alias}' end when others come, so that they cannot travel in '{self.name}'")
            starts = np.maximum(starts, part_starts)
            if lifetime < FOREVER:
                ends = np.minimum(ends, np.where(part_starts > FOREVER - lifetime, FOREVER, part_starts + lifetime))
        return starts, ends


def columns_needed_outside(query: Query, parts: frozenset[str]) -> Iterator[Column]:
    """The columns of some joined streams that the rest of the query reads: results, and conditions on others too."""
    read = [column for expression in query.selected for column in columns_of(expression)]
    for tied in query.graph.classes:
        if tied.sources & parts and tied.sources - parts:
            alias = next(alias for alias in query.aliases if alias in tied.sources & parts)
            read += columns_of(tied.key(alias))
    for residual in query.graph.residuals:
        if residual.sources - parts:
            read += columns_of(residual.expression)
    return (column for column in read if column.source in parts)


def _distinct(names: Iterable[str], taken: Iterable[str] = ()) -> list[str]:
    """Names, with primes added until no two are the same."""
    used = set(taken)
    distinct = []
    for name in names:
        while name in used:
            name += "'"
        used.add(name)
        distinct.append(name)
    return distinct
