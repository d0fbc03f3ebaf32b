"""Windows: how long a row of a stream stays alive. Event time is counted in whole microseconds.

Every kind of window has the same attributes, so that most code need not distinguish the kinds:

- `lifetime`: for how many microseconds a row stays alive; None if the window alone does not tell;
- `slide`: lifetimes start at multiples of this many microseconds; None if a lifetime starts at the row's event time;
- `counts_rows`: whether later rows, not time, end a row's lifetime: then `row_limit` is how many;
- `partition_by`: the columns by which a window that counts rows counts them separately;
- `end_column`: the column that holds the end of a row's lifetime; None if no column does;
- `ends_at`: lifetimes end at the next multiple of this many microseconds; None if they do not;
- `with_columns(rename)`: the same window over columns of other names.

So mypy finds what is missing when a kind is added. Code that must still distinguish the kinds matches on them and ends
with `assert_never`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from braid.errors import ModelError
from braid.model.checks import check, check_each, check_name
from braid.model.duration import duration_text

FOREVER = 2**63 - 1
"""The end of a lifetime that never ends."""

LONGEST = 2**61
"""The longest window in microseconds (about 73,000 years), so that the end of a lifetime does not overflow."""


@dataclass(frozen=True, slots=True)
class Range:
    """A row is alive for `length` microseconds from its event time or, with `slide`, from the next multiple of that."""

    length: int
    slide: int | None = None
    counts_rows: ClassVar[bool] = False
    row_limit: ClassVar[int | None] = None
    partition_by: ClassVar[tuple[str, ...]] = ()
    end_column: ClassVar[str | None] = None
    ends_at: ClassVar[int | None] = None

    def __post_init__(self) -> None:
        check(self.length, int, "the length of a window")
        if self.slide is not None:
            check(self.slide, int, "the slide of a window")
        if not 0 < self.length <= LONGEST:
            raise ModelError(f"a window lasts from 1 microsecond to {LONGEST} microseconds, not {self.length}")
        if self.slide is not None and not 0 < self.slide <= LONGEST:
            raise ModelError(f"a slide lasts from 1 microsecond to {LONGEST} microseconds, not {self.slide}")

    @property
    def lifetime(self) -> int:
        return self.length

    def with_columns(self, rename: Callable[[str], str]) -> Range:
        return self

    def __str__(self) -> str:
        slide = "" if self.slide is None else f" SLIDE {duration_text(self.slide)}"
        return f"[RANGE {duration_text(self.length)}{slide}]"


@dataclass(frozen=True, slots=True)
class Rows:
    """A row is alive until `count` more rows have arrived in its stream or, with `partition_by`, in its partition."""

    count: int
    partition_by: tuple[str, ...] = ()
    counts_rows: ClassVar[bool] = True
    lifetime: ClassVar[int | None] = None
    slide: ClassVar[int | None] = None
    end_column: ClassVar[str | None] = None
    ends_at: ClassVar[int | None] = None

    def __post_init__(self) -> None:
        check(self.count, int, "the rows of a window")
        if self.count < 1:
            raise ModelError(f"a window holds at least 1 row, not {self.count}")
        check_each(self.partition_by, str, "the columns to partition by")
        for column in self.partition_by:
            check_name(column, "a column to partition by")

    @property
    def row_limit(self) -> int:
        return self.count

    def with_columns(self, rename: Callable[[str], str]) -> Rows:
        return Rows(self.count, tuple(map(rename, self.partition_by)))

    def __str__(self) -> str:
        by = f"PARTITION BY {', '.join(map(_quoted, self.partition_by))} " if self.partition_by else ""
        return f"[{by}ROWS {self.count}]"


def _quoted(name: str) -> str:
    """A column as it is written between the brackets."""
    plain = name.isidentifier() and name.upper() not in ("BY", "PARTITION", "ROWS", "UNTIL")
    return name if plain else f"`{name.replace('`', '``')}`"


@dataclass(frozen=True, slots=True)
class Now:
    """A row is alive at its own event time only."""

    counts_rows: ClassVar[bool] = False
    row_limit: ClassVar[int | None] = None
    partition_by: ClassVar[tuple[str, ...]] = ()
    lifetime: ClassVar[int] = 1
    slide: ClassVar[int | None] = None
    end_column: ClassVar[str | None] = None
    ends_at: ClassVar[int | None] = None

    def with_columns(self, rename: Callable[[str], str]) -> Now:
        return self

    def __str__(self) -> str:
        return "[NOW]"


@dataclass(frozen=True, slots=True)
class Unbounded:
    """A row is alive forever from its event time on."""

    counts_rows: ClassVar[bool] = False
    row_limit: ClassVar[int | None] = None
    partition_by: ClassVar[tuple[str, ...]] = ()
    lifetime: ClassVar[int] = FOREVER
    slide: ClassVar[int | None] = None
    end_column: ClassVar[str | None] = None
    ends_at: ClassVar[int | None] = None

    def with_columns(self, rename: Callable[[str], str]) -> Unbounded:
        return self

    def __str__(self) -> str:
        return "[UNBOUNDED]"


@dataclass(frozen=True, slots=True)
class Until:
    """Alive from its timestamp up to the time in a column of its own; for ever where that is null."""

    end_column: str
    ends_at: ClassVar[int | None] = None
    counts_rows: ClassVar[bool] = False
    row_limit: ClassVar[int | None] = None
    partition_by: ClassVar[tuple[str, ...]] = ()
    lifetime: ClassVar[int | None] = None
    slide: ClassVar[int | None] = None

    def __post_init__(self) -> None:
        check_name(self.end_column, "the column that ends a window")

    def with_columns(self, rename: Callable[[str], str]) -> Until:
        return Until(rename(self.end_column))

    def __str__(self) -> str:
        return f"[UNTIL {_quoted(self.end_column)}]"


@dataclass(frozen=True, slots=True)
class Tumble:
    """A row is alive from its event time to the next multiple of `length` microseconds, where the next window begins.

    So rows of one tumbling window are alive together, and rows of different ones never.
    """

    length: int
    counts_rows: ClassVar[bool] = False
    row_limit: ClassVar[int | None] = None
    partition_by: ClassVar[tuple[str, ...]] = ()
    lifetime: ClassVar[int | None] = None
    slide: ClassVar[int | None] = None
    end_column: ClassVar[str | None] = None

    def __post_init__(self) -> None:
        check(self.length, int, "the length of a window")
        if not 0 < self.length <= LONGEST:
            raise ModelError(f"a window lasts from 1 microsecond to {LONGEST} microseconds, not {self.length}")

    @property
    def ends_at(self) -> int:
        return self.length

    def with_columns(self, rename: Callable[[str], str]) -> Tumble:
        return self

    def __str__(self) -> str:
        return f"[TUMBLE {duration_text(self.length)}]"


Window = Range | Rows | Now | Unbounded | Until | Tumble
