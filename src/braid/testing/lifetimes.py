"""Lifetimes in SQL: the start and the end that a window gives to each row of a stream."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from sqlglot import exp

from braid.model.window import FOREVER, Now, Range, Rows, Tumble, Unbounded, Until, Window
from braid.testing.relation import TIME, ordering

START = "start "
END = "end "
"""The columns for start and end. Their names end in a blank so that they differ from all columns of streams."""


def lifetimes_sql(relation: str, window: Window, columns: Sequence[str]) -> str:
    """A SELECT of all columns of a relation, with START and END added; `columns` are those of the stream."""
    start, end = _lifetime(window, columns)
    return (
        f"SELECT *, {end} AS {quote(END)} FROM ("
        f"SELECT *, {start} AS {quote(START)} FROM {relation} WHERE {quote(TIME)} IS NOT NULL)"
    )


def _lifetime(window: Window, columns: Sequence[str]) -> tuple[str, str]:
    """The SQL expressions for start and end."""
    time, start = quote(TIME), quote(START)
    match window:
        case Range():
            return _rounded_up(time, window.slide or 1), _capped(f"{start}::HUGEINT + {window.length}")
        case Now():
            return time, _capped(f"{start}::HUGEINT + 1")
        case Until():
            return time, f"coalesce(epoch_us({quote(window.end_column)}), {FOREVER})"
        case Tumble():
            # A remainder has the sign of the dividend, so this is right for times before 1970 too.
            within = f"(({time} % {window.length} + {window.length}) % {window.length})"
            return time, _capped(f"{time}::HUGEINT + {window.length} - {within}")
        case Unbounded():
            return time, str(FOREVER)
        case Rows():
            return time, f"coalesce({_following(window, columns)}, {FOREVER})"
    assert_never(window)


def _following(window: Rows, columns: Sequence[str]) -> str:
    """The event time of the row that ends a row's lifetime: the row `window.count` rows later in the partition."""
    order = ", ".join([quote(TIME), *(f"{quote(ordering(column))} ASC NULLS FIRST" for column in columns)])
    by = ", ".join(quote(ordering(column)) for column in window.partition_by)
    partition = f"PARTITION BY {by} " if by else ""
    return f"lead({quote(TIME)}, {min(window.count, FOREVER)}) OVER ({partition}ORDER BY {order})"


def _rounded_up(time: str, slide: int) -> str:
    # A remainder has the sign of the dividend, so this is right for times before 1970 too.
    return _capped(f"{time}::HUGEINT + ({slide} - {time} % {slide}) % {slide}")


def _capped(moment: str) -> str:
    return f"least({moment}, {FOREVER})::BIGINT"


def quote(name: str) -> str:
    """A name in quotes, for DuckDB."""
    return exp.to_identifier(name, quoted=True).sql(dialect="duckdb")
