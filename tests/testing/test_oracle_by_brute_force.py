"""The oracle against the definition in plain Python, which tries all combinations one by one."""

import math
import random
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import pyarrow as pa
import pytest

from braid.model.window import Now, Range, Rows, Unbounded, Window
from braid.testing import assert_same_rows, oracle

Row = dict[str, Any]
Lifetime = tuple[float, float]

COLUMNS = {"ts": pa.timestamp("us"), "k": pa.string(), "v": pa.int64(), "w": pa.float64()}
WINDOWS: tuple[Window, ...] = (
    Range(1),
    Range(7),
    Range(5, 3),
    Range(2, 6),
    Rows(1),
    Rows(3),
    Rows(1, ("k",)),
    Rows(2, ("k",)),
    Rows(1, ("k", "v")),
    Now(),
    Unbounded(),
)


def lifetimes(window: Window, rows: Sequence[Row]) -> list[Lifetime | None]:
    """The start and end of each row; None for a row without a time."""
    if isinstance(window, Rows):
        return [lifetime_in_rows(window, rows, position) for position in range(len(rows))]
    return [None if row["ts"] is None else lifetime(window, row["ts"]) for row in rows]


def lifetime(window: Window, time: int) -> Lifetime:
    match window:
        case Range(length, None):
            return time, time + length
        case Range(length, int(slide)):
            start = math.ceil(time / slide) * slide
            return start, start + length
        case Now():
            return time, time + 1
        case _:
            return time, math.inf


def lifetime_in_rows(window: Rows, rows: Sequence[Row], position: int) -> Lifetime | None:
    row = rows[position]
    if row["ts"] is None:
        return None
    later = []
    for other_position, other in enumerate(rows):
        same_partition = all(rank_value(other[key]) == rank_value(row[key]) for key in window.partition_by)
        is_later = (rank(other), other_position) > (rank(row), position)
        if other["ts"] is not None and same_partition and is_later:
            later.append((rank(other), other_position))
    later.sort()
    if len(later) < window.count:
        return row["ts"], math.inf
    _, last_position = later[window.count - 1]
    return row["ts"], rows[last_position]["ts"]


def rank(row: Row) -> list[tuple[int, Any]]:
    """Rows are ordered by time, then by their columns in order."""
    return [rank_value(row["ts"]), *map(rank_value, row.values())]


def rank_value(value: Any) -> tuple[int, Any]:
    """Nulls come first, NaN comes last."""
    if value is None:
        return 0, 0
    return (2, 0) if isinstance(value, float) and math.isnan(value) else (1, value)


def brute_force(
    sources: Sequence[tuple[Window, Sequence[Row]]], condition: Callable[..., bool | None]
) -> list[tuple[Row, ...]]:
    """All combinations of rows that are alive together and satisfy the condition."""
    results = []
    streams = [list(zip(rows, lifetimes(window, rows), strict=True)) for window, rows in sources]
    for combination in product(*streams):
        rows = tuple(row for row, _ in combination)
        lives = [life for _, life in combination if life is not None]
        if len(lives) < len(rows) or not condition(*rows):
            continue
        if max(start for start, _ in lives) < min(end for _, end in lives):
            results.append(rows)
    return results


def equal(left: Any, right: Any) -> bool:
    return left is not None and right is not None and rank_value(left) == rank_value(right)


def less(left: Any, right: Any) -> bool:
    return left is not None and right is not None and rank_value(left) < rank_value(right)


def near(left: Any, right: Any) -> bool:
    return left is not None and right is not None and abs(left - right) <= 1


CONDITIONS: tuple[tuple[int, str, Callable[..., bool | None]], ...] = (
    (1, "TRUE", lambda a: True),
    (1, "a.v > 1", lambda a: a["v"] is not None and a["v"] > 1),
    (2, "TRUE", lambda a, b: True),
    (2, "a.k = b.k", lambda a, b: equal(a["k"], b["k"])),
    (2, "a.w = b.w", lambda a, b: equal(a["w"], b["w"])),
    (2, "a.w < b.w AND a.v <> 2", lambda a, b: less(a["w"], b["w"]) and a["v"] not in (None, 2)),
    (2, "a.v <=> b.v", lambda a, b: a["v"] == b["v"]),
    (3, "a.k = b.k AND b.v = c.v", lambda a, b, c: equal(a["k"], b["k"]) and equal(b["v"], c["v"])),
    (3, "abs(a.v - b.v) <= 1 AND b.k = c.k", lambda a, b, c: near(a["v"], b["v"]) and equal(b["k"], c["k"])),
    (
        3,
        "a.v + b.v = c.v",
        lambda a, b, c: None not in (a["v"], b["v"], c["v"]) and a["v"] + b["v"] == c["v"],
    ),
)


def random_rows(generator: random.Random, count: int) -> list[Row]:
    return [
        {
            "ts": generator.choice([None, *range(-8, 12), *range(-8, 12)]),
            "k": generator.choice([None, "a", "b"]),
            "v": generator.choice([None, 0, 1, 2, 3]),
            "w": generator.choice([None, 0.0, -1.5, math.inf, math.nan]),
        }
        for _ in range(count)
    ]


def as_table(rows: Sequence[Row]) -> pa.Table:
    return pa.table({name: pa.array([row[name] for row in rows], kind) for name, kind in COLUMNS.items()})


@pytest.mark.parametrize("seed", range(60))
def test_the_oracle_finds_the_same_combinations(seed: int) -> None:
    generator = random.Random(seed)
    count, condition, is_satisfied = CONDITIONS[seed % len(CONDITIONS)]
    aliases = "abc"[:count]
    windows = [generator.choice(WINDOWS) for _ in aliases]
    streams = {alias: random_rows(generator, generator.randint(0, 14)) for alias in aliases}
    expected = brute_force(list(zip(windows, streams.values(), strict=True)), is_satisfied)
    tables = ", ".join(f"{alias} {window}" for alias, window in zip(aliases, windows, strict=True))
    actual = oracle(f"SELECT * FROM {tables} WHERE {condition}", {a: as_table(r) for a, r in streams.items()})
    columns = [
        pa.array([rows[position][name] for rows in expected], kind)
        for position in range(count)
        for name, kind in COLUMNS.items()
    ]
    assert_same_rows(actual, pa.Table.from_arrays(columns, names=actual.column_names))


def test_the_windows_make_a_difference() -> None:
    """Most windows give a different number of combinations."""
    rows = random_rows(random.Random(1), 14)
    sizes = {str(window): len(brute_force([(window, rows), (Range(3), rows)], lambda a, b: True)) for window in WINDOWS}
    assert len(set(sizes.values())) >= 8, sizes
    assert min(sizes.values()) > 0
