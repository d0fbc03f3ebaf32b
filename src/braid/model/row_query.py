"""What becomes of each row of a stream before a query reads it: joined with tables, filtered, and projected."""

from __future__ import annotations

from dataclasses import dataclass

from braid.model.fixed_join import JoinKind
from braid.model.output import Output
from braid.model.predicate import Predicate
from braid.model.stream import Stream
from braid.model.table import Table


@dataclass(frozen=True)
class TableJoin:
    """A join of the rows so far with a table."""

    kind: JoinKind
    alias: str
    table: Table
    predicates: tuple[Predicate, ...]


@dataclass(frozen=True)
class RowQuery:
    """A SELECT over one stream and any number of tables. `result` is the stream that it makes."""

    stream: Stream
    alias: str
    joins: tuple[TableJoin, ...]
    filters: tuple[Predicate, ...]
    outputs: tuple[Output, ...]
    result: Stream
