"""Rows joined with tables, and rows in several windows, batch by batch."""

import numpy as np
import pyarrow as pa
import pytest

import braid
from braid.model.window_function import WindowFunction
from braid.runtime import table_join
from braid.runtime.row_view import with_windows
from braid.testing import assert_same_rows, oracle

TIME = pa.timestamp("us")


def test_a_row_is_in_every_window_that_contains_its_time() -> None:
    schema = pa.schema([("ts", TIME), ("window_start", TIME), ("window_end", TIME)])
    rows = pa.record_batch({"ts": pa.array([7, 10, -1, None], TIME)})
    windowed = with_windows(rows, "ts", WindowFunction("ts", 5, 2), schema)
    values = [column.cast(pa.int64()).to_pylist() for column in windowed.columns]
    assert list(zip(*values, strict=True)) == [
        (7, 6, 11),
        (7, 4, 9),
        (10, 10, 15),
        (10, 8, 13),
        (10, 6, 11),
        (-1, -2, 3),
        (-1, -4, 1),
        (None, None, None),
    ]


@pytest.mark.parametrize("kind", ["JOIN", "LEFT JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN"])
@pytest.mark.parametrize(
    "condition", ["t.k = s.k", "t.k < s.k", "t.f = s.f AND t.name <> s.name", "t.f <=> s.f", "t.k = 1"]
)
def test_table_joins_equal_those_of_the_oracle(kind: str, condition: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Values of other types on both sides, nulls, NaN, both zeros; without an equality, few pairs at a time."""
    monkeypatch.setattr(table_join, "MOST_PAIRS", 10)
    floats = [0.0, -0.0, float("nan"), None, 1.5, float("inf")]
    generator = np.random.default_rng(len(condition))

    def some(values: list[object], count: int, type_: pa.DataType) -> pa.Array:
        return pa.array([values[index] for index in generator.integers(0, len(values), count)], type_)

    stream = pa.table(
        {
            "ts": pa.array(np.sort(generator.integers(0, 1000, 40)), TIME),
            "k": some([1, 2, 3, None], 40, pa.int32()),
            "f": some(floats, 40, pa.float32()),
            "name": some(["p", "q", None], 40, pa.string()).dictionary_encode(),
            "n": np.arange(40),
        }
    )
    table = pa.table(
        {
            "k": some([1, 2, 4, None], 9, pa.int64()),
            "f": some(floats, 9, pa.float64()),
            "name": some(["p", "q", None], 9, pa.large_string()),
        }
    )
    columns = "s.n, t.name" if kind in ("JOIN", "LEFT JOIN") else "s.n, s.name"
    text = f"SELECT {columns} FROM s [NOW] {kind} t ON {condition}"
    expected = oracle(text, {"s": stream}, tables={"t": table})
    result = braid.run(text, {"s": stream}, tables={"t": table}, batch_rows=7, lateness="1 second")
    assert_same_rows(result, expected)
    assert result.schema.field(1).type == (table if "t.name" in columns else stream).schema.field("name").type
