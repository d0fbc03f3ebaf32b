"""Lifetimes in SQL: each row of a stream with the start and the end that its window gives it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from sqlglot import exp

from braid.model.window import FOREVER, Now, Range, Rows, Unbounded, Window
from braid.testing.relation import TIME, ordering

START = "start "
END = "end "
"""The columns that are added; their names have a blank at the end, as no column of a stream has."""


def lifetimes_sql(relation: str, window: Window, columns: Sequence[str]) -> str:
    """A SELECT of everything in a relation of a stream that has these columns, with START and END added."""
    start, end = _lifetime(window, columns)
    return (
        f"SELECT *, {end} AS {quote(END)} FROM ("
        f"SELECT *, {start} AS {quote(START)} FROM {relation} WHERE {quote(TIME)} IS NOT NULL)"
    )


def _lifetime(window: Window, columns: Sequence[str]) -> tuple[str, str]:
    time, start = quote(TIME), quote(START)
    match window:
        case Range():
            return _rounded_up(time, window.slide or 1), _capped(f"{start}::HUGEINT + {window.length}")
        case Now():
            return time, _capped(f"{start}::HUGEINT + 1")
        case Unbounded():
            return time, str(FOREVER)
        case Rows():
            return time, f"coalesce({_following(window, columns)}, {FOREVER})"
    assert_never(window)


def _following(window: Rows, columns: Sequence[str]) -> str:
    """The event time of the row that ends a row's lifetime: so many rows later, in its partition."""
    order = ", ".join([quote(TIME), *(f"{quote(ordering(column))} ASC NULLS FIRST" for column in columns)])
    by = ", ".join(quote(ordering(column)) for column in window.partition_by)
    partition = f"PARTITION BY {by} " if by else ""
    return f"lead({quote(TIME)}, {min(window.count, FOREVER)}) OVER ({partition}ORDER BY {order})"


def _rounded_up(time: str, slide: int) -> str:
    # The remainder has the sign of the dividend, so this is right before 1970 too.
    return _capped(f"{time}::HUGEINT + ({slide} - {time} % {slide}) % {slide}")


def _capped(moment: str) -> str:
    return f"least({moment}, {FOREVER})::BIGINT"


def quote(name: str) -> str:
    """A name as DuckDB reads it whatever its letters are."""
    return exp.to_identifier(name, quoted=True).sql(dialect="duckdb")
