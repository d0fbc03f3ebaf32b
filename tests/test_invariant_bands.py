"""Band joins equal the oracle: in every plan, for every type, and with many matches per row."""

from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import braid
from braid.engine.window import window_state as window
from braid.testing import assert_same_rows, oracle

KINDS: dict[str, tuple[pa.DataType, str]] = {
    "int8": (pa.int8(), "2"),
    "int32": (pa.int32(), "2"),
    "int64": (pa.int64(), "2"),
    "uint64": (pa.uint64(), "2.0"),
    "float": (pa.float32(), "2"),
    "double": (pa.float64(), "2.0e0"),
    "decimal": (pa.decimal128(22, 3), "2.5"),
    "timestamp": (pa.timestamp("s"), "INTERVAL 2 SECONDS"),
    "instant": (pa.timestamp("ms", "UTC"), "INTERVAL 0.002 SECONDS"),
    "duration": (pa.duration("ms"), "INTERVAL 0.002 SECONDS"),
}
CONDITIONS = {
    "around": "a.x BETWEEN b.x - {c} AND b.x + {c}",
    "above": "a.x BETWEEN b.x AND b.x + {c}",
    "difference": "a.x - {c} - b.x <= {c} AND b.x - (a.x - {c}) <= {c}",
    "mutual": "a.x <= b.x + {c} AND b.x <= a.x + {c}",
}


def rows(seed: int, kind: pa.DataType, count: int = 60) -> pa.Table:
    generator = np.random.default_rng(seed)
    is_null = generator.random(count) < 0.1
    numbers = generator.integers(5, 60, count)
    values = [None if null else int(number) for number, null in zip(numbers, is_null, strict=True)]
    times = np.sort(generator.integers(0, 20, count)) * 1_000_000
    return pa.table(
        {
            "ts": pa.array(times, pa.timestamp("us")),
            "x": pa.array(values).cast(kind),
            "k": generator.integers(0, 3, count),
            "id": np.arange(count),
        }
    )


@pytest.mark.parametrize(("kind", "condition"), list(product(KINDS, CONDITIONS)))
def test_a_band_between_two_streams(kind: str, condition: str) -> None:
    type_, constant = KINDS[kind]
    sources = "a [RANGE 6 SECONDS], b [RANGE 9 SECONDS SLIDE 2 SECONDS]"
    text = f"SELECT a.id, b.id FROM {sources} WHERE {CONDITIONS[condition].format(c=constant)}"
    streams = {name: rows(seed, type_) for seed, name in enumerate("ab")}
    expected = oracle(text, streams)
    assert expected.num_rows > 10
    for batch_rows in (None, 7):
        assert_same_rows(braid.run(text, streams, batch_rows=batch_rows), expected)


TREES: list[Any] = [None, (("a", "b"), "c"), ("a", ("b", "c")), (("a", "c"), "b"), ("a", "b", "c")]
THREE = {
    "a band beside a key": "a.k = b.k AND abs(a.x - b.x) <= 9 AND b.k = c.k AND b.x BETWEEN c.x - 9 AND c.x + 9",
    "a chain of bands": "abs(a.x - b.x) <= 1 AND abs(b.x - c.x) <= 2",
    "a triangle of bands": "abs(a.x - b.x) <= 2 AND abs(b.x - c.x) <= 2 AND a.x BETWEEN c.x - 1 AND c.x + 1",
    "a band and a key": "a.x - b.x BETWEEN 1 AND 3 AND b.k = c.k",
    "a stream in two bands": "abs(a.x - b.x) <= 2 AND abs(a.x - c.x) <= 2 AND b.k = c.k",
}
WINDOWS = {
    "times": ("[RANGE 5 SECONDS]", "[RANGE 4 SECONDS]", "[RANGE 6 SECONDS]"),
    "rows": ("[ROWS 9]", "[RANGE 6 SECONDS]", "[PARTITION BY k ROWS 3]"),
}


@pytest.mark.parametrize(("name", "windows"), list(product(THREE, WINDOWS)))
def test_join_trees_with_bands(name: str, windows: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window, "SMALLEST_CAPACITY", 2)  # Rows get new ids and indexes grow often.
    sources = ", ".join(f"{alias} {kind}" for alias, kind in zip("abc", WINDOWS[windows], strict=True))
    text = f"SELECT a.id, b.id, c.id FROM {sources} WHERE {THREE[name]}"
    streams = {alias: rows(seed + 7, pa.int64()) for seed, alias in enumerate("abc")}
    expected = oracle(text, streams)
    assert expected.num_rows > 10
    for number, tree in enumerate(TREES):
        switches = {2: TREES[(number + 1) % 5], 5: TREES[(number + 3) % 5]}
        for options in ({}, {"switches": switches}, {"switches": switches, "strategy": "parallel_track"}):
            actual = braid.run(text, streams, plan=tree, batch_rows=6, **options)  # type: ignore[arg-type]
            assert_same_rows(actual, expected, message=f"plan={tree}, {options}")


def test_more_matches_than_fit_one_chunk_of_the_kernel() -> None:
    generator = np.random.default_rng(3)
    streams = {
        name: pa.table({"ts": pa.array([0] * 400, pa.timestamp("us")), "x": generator.integers(-4, 4, 400)})
        for name in "ab"
    }
    result = braid.run("SELECT a.x, b.x FROM a [NOW], b [NOW] WHERE abs(a.x - b.x) <= 3", streams)
    values = [streams[name].column("x").to_numpy() for name in "ab"]
    assert result.num_rows == int((np.abs(values[0][:, None] - values[1]) <= 3).sum()) > 3 * 2**15


def test_not_exists_by_a_band() -> None:
    text = (
        "SELECT a.id FROM a [RANGE 5 SECONDS] WHERE NOT EXISTS "
        "(SELECT 1 FROM b [RANGE 2 SECONDS] WHERE abs(a.x - b.x) <= 4)"
    )
    streams = {name: rows(seed, pa.int64(), 200) for seed, name in enumerate("ab")}
    expected = oracle(text, streams)
    assert 0 < expected.num_rows < 200
    assert any(row in expected.column("id").to_pylist() for row in null_rows(streams["a"]))
    assert_same_rows(braid.run(text, streams, batch_rows=9), expected)


def null_rows(table: pa.Table) -> list[int]:
    return [row for row, value in enumerate(table.column("x").to_pylist()) if value is None]


def test_differences_of_extreme_integers_wrap_around() -> None:
    """DuckDB fails on overflow, so the oracle is of no use here. Java's arithmetic, which Spark uses, wraps around."""
    extremes = [-(2**63), 1 - 2**63, -(2**62), -1, 0, 1, 2**62, 2**63 - 2, 2**63 - 1]
    table = pa.table({"ts": pa.array([0] * len(extremes), pa.timestamp("us")), "x": extremes})
    result = braid.run(
        "SELECT a.x AS x, b.x AS y FROM s [NOW] AS a, s [NOW] AS b WHERE abs(a.x - b.x) <= 1", {"s": table}
    )
    pairs = product(extremes, extremes)
    expected = sorted((left, right) for left, right in pairs if java_absolute(left - right) <= 1)
    assert sorted(zip(*result.to_pydict().values(), strict=True)) == expected
    assert (-(2**63), 2**63 - 1) in expected
    assert (-(2**62), 2**62) in expected


def java_absolute(number: int) -> int:
    """The absolute value in 64 bits."""
    return wrapped(abs(wrapped(number)))


def wrapped(number: int) -> int:
    """An integer wrapped around to 64 bits."""
    return (number + 2**63) % 2**64 - 2**63
