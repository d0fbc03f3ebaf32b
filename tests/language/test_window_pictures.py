"""The pictures of windows in the reference of the query language are what the engine does."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import braid
from braid.engine.input.lifetime import lifetimes
from braid.engine.input.row_counter import RowCounter
from braid.language import parse
from braid.model.window import FOREVER

REFERENCE = Path(__file__).parents[2] / "docs" / "query-language.md"
LAST_SECOND = 12
LABEL = 14
"""The width of the texts before the time line, on which a second takes three characters."""

PICTURES = {
    "[RANGE 5 SECONDS]": [(2, ""), (4, ""), (7, "")],
    "[RANGE 5 SECONDS SLIDE 4 SECONDS]": [(3, ""), (4, ""), (5, "")],
    "[ROWS 2]": [(1, ""), (3, ""), (4, ""), (8, "")],
    "[PARTITION BY k ROWS 1]": [(1, "x"), (3, "y"), (4, "x"), (8, "x")],
    "[TUMBLE 5 SECONDS]": [(2, ""), (4, ""), (5, "")],
    "[NOW]": [(2, ""), (7, "")],
    "[UNBOUNDED]": [(2, ""), (7, "")],
}
"""For each window some rows: their times in seconds, and their keys `k`."""


def picture(window_text: str, rows: list[tuple[int, str]]) -> str:
    """A picture of the lifetimes that a window gives to rows."""
    axis = "".join(f"{second:<3}" for second in range(LAST_SECOND + 1)).rstrip()
    lines = [window_text, f"{'second':<{LABEL}}{axis}"]
    window = parse(f"SELECT * FROM s {window_text}").sources[0].window
    times = np.array([second * 1_000_000 for second, _ in rows])
    starts, ends = lifetimes(times, window)
    if window.row_limit is not None:
        keys = pa.record_batch({"k": [key for _, key in rows]})
        ends = RowCounter(window.row_limit, window.partition_by).close(keys, times).new_ends
    for (second, key), start, end in zip(rows, starts, ends, strict=True):
        label = f"row at {second}{', ' + key if key else ''}"
        lines.append(f"{label:<{LABEL}}{' ' * (3 * int(start // 1_000_000))}{_bar(int(start), int(end))}")
    return "\n".join(lines)


def _bar(start: int, end: int) -> str:
    """A lifetime: [ where it starts, ) where it ends, > if it does not, | if it is a moment."""
    if end == start + 1:
        return "|"
    last = min(end, (LAST_SECOND + 1) * 1_000_000)
    length = 3 * (last - start) // 1_000_000 - 1
    return f"[{'=' * length}{'>' if end == FOREVER else ')'}"


@pytest.mark.parametrize("window", PICTURES)
def test_the_reference_shows_what_a_window_does(window: str) -> None:
    assert picture(window, PICTURES[window]) in REFERENCE.read_text()


def joined(window: str, first: float, second: float, moment: str = "[NOW]") -> bool:
    """Whether a row at the second `first`, in this window, joins another row at the second `second`."""
    tables = {
        name: pa.table({"ts": pa.array([int(time * 1_000_000)], pa.timestamp("us"))})
        for name, time in (("a", first), ("b", second))
    }
    return bool(braid.run(f"SELECT a.ts AS a, b.ts AS b FROM a {window}, b {moment}", tables).num_rows)


def test_the_start_of_a_lifetime_belongs_to_it_and_the_end_does_not() -> None:
    assert joined("[RANGE 5 SECONDS]", 2, 2) and joined("[RANGE 5 SECONDS]", 2, 6.999_999)
    assert not joined("[RANGE 5 SECONDS]", 2, 7)


def test_a_row_on_a_boundary_of_the_slide_starts_there() -> None:
    slide = "[RANGE 5 SECONDS SLIDE 4 SECONDS]"
    assert joined(slide, 4, 4) and not joined(slide, 4.000_001, 4)
    assert joined(slide, 4.000_001, 8) and not joined(slide, 4, 9)


def test_rows_of_one_time_are_counted_in_the_order_of_their_columns() -> None:
    """The first of two rows is ended by the second at the same time: it is never alive."""
    times = pa.array([3, 3], pa.timestamp("s"))
    tables = {
        "a": pa.table({"ts": times, "m": [5, 5], "n": [2, None]}),
        "b": pa.table({"ts": times.slice(0, 1)}),
    }
    result = braid.run("SELECT a.n FROM a [ROWS 1], b [NOW]", tables)
    assert result.to_pydict() == {"n": [2]}
