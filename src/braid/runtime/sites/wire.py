"""Streams on their way between joins: which columns a row carries, and how its lifetime follows from them.

A base row carries its own columns, its event time among them, and its lifetime is what its window makes of that time. A
derived row carries columns of its parts, and when each part started. Its lifetime is that of its parts together: from
the latest of their starts to the earliest of their ends. Lifetimes themselves do not travel: a window of time has the
same length for every row, so that starts tell ends.

A stream enters a query where it starts, or where the query reads it from a channel of another deployment. There the
rows that do not belong to the query are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from braid.engine.arrays.jit import Words
from braid.engine.input.lifetime import event_times, lifetimes
from braid.errors import PlanError
from braid.model.expressions.expression import Column, columns_of
from braid.model.expressions.types import INSTANT
from braid.model.needed_columns import columns_needed_outside
from braid.model.predicate import Predicate
from braid.model.query import Query
from braid.model.statistics import Sized
from braid.model.window import FOREVER


@dataclass(frozen=True)
class Reading:
    """How a query reads a stream of another deployment: a derived one, or a base stream that no filter has seen yet.

    `names` has pairs of aliases, theirs and ours. `remaining` are the conditions of the query that the rows may not
    meet yet.
    """

    names: tuple[tuple[str, str], ...]
    remaining: tuple[Predicate, ...] = ()


@dataclass(frozen=True)
class WireStream:
    """A stream of a query as it travels; `parts` are the streams it joins, by alias, in order.

    `started` are the parts whose starts its rows carry. `at_origin` is a base stream where it starts, before the
    conditions on it alone are checked; `reused` is a stream as another deployment publishes it. Of both only rows count
    all of whose parts start at or after `since`. `kept` are columns that other queries may need. Rows of a
    base stream that have ended at `alive_at` are of no use to the plan that reads it.
    """

    query: Query
    name: str
    parts: tuple[str, ...]
    started: tuple[str, ...] = ()
    at_origin: bool = False
    reused: Reading | None = None
    since: int = -FOREVER
    kept: tuple[Column, ...] = ()
    alive_at: int = -FOREVER

    @property
    def is_base(self) -> bool:
        return not self.started

    @property
    def sized(self) -> Sized:
        """What statistics call it when they tell the size of its rows."""
        if self.is_base:
            return self.name
        parts = frozenset(self.parts)
        return parts if frozenset(self.started) == parts else (self.started[0], parts)

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """The columns of its parts that are still needed, in the order of the query's streams and their schemas."""
        needed = {*self.kept, *self._needed()}
        available: list[Column] = []
        for alias in self.query.aliases:
            if alias in self.parts:
                available += [Column(alias, name) for name in self.query.source(alias).declared.schema.names]
        return tuple(column for column in available if column in needed)

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
        if self.reused is not None:
            for condition in self.reused.remaining:
                yield from columns_of(condition.expression)
        yield from columns_needed_outside(self.query, parts)

    @cached_property
    def field_names(self) -> dict[Column, str]:
        """What the columns are called on the wire: columns of a base stream keep their names."""
        if self.is_base:
            return {column: column.name for column in self.columns}
        return {column: field_name(column) for column in self.columns}

    @cached_property
    def start_names(self) -> dict[str, str]:
        """What the columns with the starts of parts are called."""
        return {alias: start_name(alias) for alias in self.started}

    @cached_property
    def schema(self) -> pa.Schema:
        fields = [pa.field(name, self.type_of(column)) for column, name in self.field_names.items()]
        return pa.schema([*fields, *(pa.field(name, INSTANT) for name in self.start_names.values())])

    def type_of(self, column: Column) -> pa.DataType:
        return self.query.source(column.source or "").declared.schema.field(column.name).type

    @cached_property
    def _names_on_channel(self) -> list[str]:
        """What its columns are called on the channel that it is read from."""
        if self.reused is None or self.is_base:
            return list(self.schema.names)
        theirs = {ours: alias for alias, ours in self.reused.names}
        columns = (field_name(Column(theirs[column.source or ""], column.name)) for column in self.columns)
        return [*columns, *(start_name(theirs[alias]) for alias in self.started)]

    def received(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Rows of a channel, which may carry more, with the columns of this stream and under its names."""
        names = self._names_on_channel
        if rows.schema.names != names:
            rows = rows.select(names)
        return rows if names == self.schema.names else rows.rename_columns(self.schema.names)

    def entering(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The rows that belong to the query, where the stream enters it.

        Of a reused stream these are the rows whose parts are alive together also in windows that are shorter here. The
        engine would find no match for the others; they are left out before they are packed for its shards.
        """
        is_restricted = self.since > -FOREVER and self.at_origin
        if self.reused is None and not is_restricted and self.alive_at == -FOREVER:
            return rows
        starts, ends = self.lifetimes(rows)
        if self.is_base:
            belonging = (starts >= self.since) & (ends > self.alive_at)
        else:
            belonging = starts < ends
            for name in self.start_names.values():
                belonging &= event_times(rows.column(name)) >= self.since
        return rows if belonging.all() else rows.filter(pa.array(belonging))

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


def field_name(column: Column) -> str:
    """What a column of a derived stream is called on the wire: no two have the same name, whatever others there are.

    >>> field_name(Column("a.b", "c")), field_name(Column("a", "b.c"))
    ('a\\\\.b.c', 'a.b.c')
    """
    return f"{_plain(column.source or '')}.{column.name}"


def start_name(alias: str) -> str:
    """What the column with the start of a part is called; no other column has that name."""
    return f"start of {_plain(alias)}"


def _plain(alias: str) -> str:
    return alias.replace("\\", "\\\\").replace(".", "\\.")
