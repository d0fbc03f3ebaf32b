"""Payloads return the values that were written, by id, however rows came in and however rings wrap around."""

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from braid.engine.arrays.payload import Payload

COLUMNS = {
    "int64": pa.array(range(40), pa.int64()),
    "int8 with nulls": pa.array([None if number % 3 == 0 else number for number in range(40)], pa.int8()),
    "timestamp": pa.array(range(40), pa.timestamp("ms")),
    "float": pa.array([number / 2 for number in range(40)], pa.float32()),
    "boolean": pa.array([None if number % 7 == 0 else number % 2 == 0 for number in range(40)]),
    "string": pa.array([None if number % 5 == 0 else str(number) for number in range(40)]),
    "binary": pa.array([bytes([number]) * number for number in range(40)], pa.large_binary()),
    "decimal": pa.array([Decimal(number) for number in range(40)], pa.decimal128(20, 2)),
    "list": pa.array([[number] * (number % 3) for number in range(40)]),
    "struct": pa.array([{"x": number, "y": str(number)} for number in range(40)]),
    "dictionary": pa.array([str(number % 4) for number in range(40)]).dictionary_encode(),
    "null": pa.nulls(40),
}


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("sizes", [[40], [1] * 40, [3, 30, 7]], ids=str)
def test_values_are_read_by_id(name: str, sizes: list[int]) -> None:
    column = COLUMNS[name]
    rows = pa.RecordBatch.from_arrays([column], ["0"])
    payload = Payload([column.type], capacity=64)
    first = 0
    for size in sizes:
        payload.append(rows.slice(first, size), 1_000 + first)
        first += size
    ids = np.array([1_039, 1_000, 1_017, 1_017, 1_003])
    values = payload.take(0, ids)
    assert values.type == column.type
    assert values.to_pylist() == [column[int(row_id - 1_000)].as_py() for row_id in ids]


@pytest.mark.parametrize("name", COLUMNS)
def test_values_survive_a_ring_that_wraps_around_and_grows(name: str) -> None:
    column = COLUMNS[name]
    rows = pa.RecordBatch.from_arrays([column], ["0"])
    payload = Payload([column.type], capacity=16)
    payload.append(rows.slice(0, 12), 0)
    payload.forget(8)
    payload.append(rows.slice(12, 10), 12)
    payload.resize(64, 8, 22)
    payload.append(rows.slice(22, 18), 22)
    values = payload.take(0, np.arange(8, 40))
    assert values.to_pylist() == column.slice(8).to_pylist()


def test_all_columns_of_some_rows_and_of_no_rows() -> None:
    rows = pa.RecordBatch.from_arrays(list(COLUMNS.values()), list(COLUMNS))
    payload = Payload([column.type for column in COLUMNS.values()], capacity=64)
    payload.append(rows, 0)
    assert payload.rows(np.arange(40)).to_pydict() == {
        str(position): column.to_pylist() for position, column in enumerate(COLUMNS.values())
    }
    assert payload.rows(np.empty(0, np.int64)).num_rows == 0


def test_texts_survive_when_the_heap_is_compacted_and_grows() -> None:
    payload = Payload([pa.string()], capacity=1024)
    texts = [f"{number:>{1 + number % 50}}" for number in range(20_000)]
    for first in range(0, 20_000, 100):
        payload.append(pa.record_batch({"0": texts[first : first + 100]}), first)
        payload.forget(max(0, first - 500))
    assert payload.take(0, np.arange(19_400, 20_000)).to_pylist() == texts[19_400:]
    payload.forget(20_000)
    payload.append(pa.record_batch({"0": ["x" * 100_000, ""]}), 20_000)
    assert payload.take(0, np.array([20_001, 20_000])).to_pylist() == ["", "x" * 100_000]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_binary(), pa.decimal128(30, 2)], ids=str)
def test_comparing_values_of_two_payloads(kind: pa.DataType) -> None:
    words = ["1", "12", "13", "2"]
    ours, theirs = Payload([kind], 16), Payload([kind], 16)
    ours.append(pa.record_batch({"0": pa.array(words).cast(kind)}), 0)
    theirs.append(pa.record_batch({"0": pa.array(words[::-1]).cast(kind)}), 100)
    same = ours.equals(0, np.array([0, 0, 1, 1]), theirs, 0, np.array([103, 100, 102, 101]))
    assert same.tolist() == [True, False, True, False]


def test_rows_have_texts_in_a_type_with_64_bit_offsets() -> None:
    """An array of an ordinary type holds at most two gigabytes of texts; a heap may hold more."""
    payload = Payload([pa.string()], capacity=64)
    payload.append(pa.RecordBatch.from_arrays([COLUMNS["string"]], ["0"]), 0)
    assert payload.rows(np.arange(40)).schema.types == [pa.large_string()]
