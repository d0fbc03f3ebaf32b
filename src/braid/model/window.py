"""Windows: how long a row of a stream stays alive. Event time is counted in whole microseconds.

Every kind of window has the same attributes, so that most code need not distinguish the kinds:

- `lifetime`: for how many microseconds a row stays alive; FOREVER if that is unknown when the row arrives;
- `slide`: lifetimes start at multiples of this many microseconds; None if a lifetime starts at the row's event time;
- `counts_rows`: whether later rows, not time, end a row's lifetime.

Code that must distinguish the kinds matches on them and ends with `assert_never`, so that mypy finds it when a kind is
added.
"""

from __future__ import annotations

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

    def __str__(self) -> str:
        slide = "" if self.slide is None else f" SLIDE {duration_text(self.slide)}"
        return f"[RANGE {duration_text(self.length)}{slide}]"


@dataclass(frozen=True, slots=True)
class Rows:
    """A row is alive until `count` more rows have arrived in its stream or, with `partition_by`, in its partition."""

    count: int
    partition_by: tuple[str, ...] = ()
    counts_rows: ClassVar[bool] = True
    lifetime: ClassVar[int] = FOREVER
    slide: ClassVar[int | None] = None

    def __post_init__(self) -> None:
        check(self.count, int, "the rows of a window")
        if self.count < 1:
            raise ModelError(f"a window holds at least 1 row, not {self.count}")
        check_each(self.partition_by, str, "the columns to partition by")
        for column in self.partition_by:
            check_name(column, "a column to partition by")

    def __str__(self) -> str:
        names = (f"`{name.replace('`', '``')}`" if _needs_quotes(name) else name for name in self.partition_by)
        by = f"PARTITION BY {', '.join(names)} " if self.partition_by else ""
        return f"[{by}ROWS {self.count}]"


def _needs_quotes(name: str) -> bool:
    return not name.isidentifier() or name.upper() in ("BY", "PARTITION", "ROWS")


@dataclass(frozen=True, slots=True)
class Now:
    """A row is alive at its own event time only."""

    counts_rows: ClassVar[bool] = False
    lifetime: ClassVar[int] = 1
    slide: ClassVar[int | None] = None

    def __str__(self) -> str:
        return "[NOW]"


@dataclass(frozen=True, slots=True)
class Unbounded:
    """A row is alive forever from its event time on."""

    counts_rows: ClassVar[bool] = False
    lifetime: ClassVar[int] = FOREVER
    slide: ClassVar[int | None] = None

    def __str__(self) -> str:
        return "[UNBOUNDED]"


Window = Range | Rows | Now | Unbounded
