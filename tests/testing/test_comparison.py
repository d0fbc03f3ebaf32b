"""Comparison of tables as multisets of rows."""

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from braid.testing import assert_same_rows, compare_rows

NAN = float("nan")


def shuffled(table: pa.Table, order: list[int]) -> pa.Table:
    return pa.concat_tables([table.slice(row, 1) for row in order])


COLUMNS = {
    "integer": pa.array([1, None, 3, 1]),
    "double": pa.array([NAN, None, 0.5, NAN]),
    "half": pa.array([NAN, None, 0.5, NAN], pa.float16()),
    "text": pa.array(["a", None, "", "a"]),
    "large text": pa.array(["a", None, "", "a"], pa.large_string()),
    "text view": pa.array(["a", None, "", "a"], pa.string_view()),
    "dictionary": pa.array(["a", None, "", "a"]).dictionary_encode(),
    "binary": pa.array([b"a", None, b"\x00", b"a"]),
    "decimal": pa.array([Decimal("1.50"), None, Decimal("2.00"), Decimal("1.50")]),
    "wide decimal": pa.array([Decimal(1), None, Decimal(2), Decimal(1)], pa.decimal256(60, 2)),
    "bool": pa.array([True, None, False, True]),
    "nanoseconds": pa.array([1, None, 3, 1], pa.timestamp("ns")),
    "duration": pa.array([1, None, 3, 1], pa.duration("ns")),
    "null": pa.nulls(4),
    "list": pa.array([[1, None], None, [], [1, None]]),
    "nested list": pa.array([[[NAN], []], None, [None], [[NAN], []]]),
    "list of nanoseconds": pa.array([[1], None, [], [1]], pa.list_(pa.timestamp("ns"))),
    "fixed list": pa.array([[1.0, NAN], None, [2.0, None], [1.0, NAN]], pa.list_(pa.float64(), 2)),
    "list view": pa.array([[1], None, [], [1]], pa.list_view(pa.int64())),
    "struct": pa.array([{"x": 1, "y": [NAN]}, None, {"x": None, "y": None}, {"x": 1, "y": [NAN]}]),
    "map": pa.array([[("k", 1)], None, [("k", None)], [("k", 1)]], pa.map_(pa.string(), pa.int64())),
    "run ends": pa.RunEndEncodedArray.from_arrays([1, 2, 3, 4], [1, None, 3, 1]),
}


@pytest.mark.parametrize("name", COLUMNS)
class TestEveryType:
    def test_order_does_not_matter(self, name: str) -> None:
        table = pa.table({"x": COLUMNS[name]})
        assert_same_rows(shuffled(table, [3, 1, 0, 2]), table)

    def test_each_row_must_occur_equally_often(self, name: str) -> None:
        table = pa.table({"x": COLUMNS[name]})
        if name == "null":
            table = table.slice(0, 2)
            with pytest.raises(AssertionError, match="only in actual: 1 rows"):
                assert_same_rows(shuffled(table, [0, 1, 0]), table)
            return
        with pytest.raises(AssertionError, match=r"(?s)only in actual: 1 rows.*only in expected: 1 rows"):
            assert_same_rows(shuffled(table, [0, 1, 2, 2]), table)

    def test_slices(self, name: str) -> None:
        table = pa.table({"x": COLUMNS[name]})
        assert_same_rows(table.slice(1, 2), shuffled(table, [2, 1]))


def test_rows_are_compared_as_a_whole() -> None:
    left, right = pa.table({"x": [1, 2], "y": ["a", "b"]}), pa.table({"x": [1, 2], "y": ["b", "a"]})
    difference = compare_rows(left, right)
    assert difference.left_counts == (1, 1)
    assert difference.right_rows.to_pylist() == [{"x": 1, "y": "b"}, {"x": 2, "y": "a"}]


def test_zeros_of_both_signs_are_equal_and_neither_is_null() -> None:
    assert_same_rows(pa.table({"x": [0.0]}), pa.table({"x": [-0.0]}))
    assert compare_rows(pa.table({"x": [0.0]}), pa.table({"x": pa.array([None], pa.float64())}))


def test_null_and_nan_differ() -> None:
    assert compare_rows(pa.table({"x": [NAN]}), pa.table({"x": pa.array([None], pa.float64())}))


def test_lists_with_the_same_elements_but_other_bounds_differ() -> None:
    left, right = pa.array([[1, 2], [3]]), pa.array([[1], [2, 3]])
    assert compare_rows(pa.table({"x": left}), pa.table({"x": right}))


def test_values_under_a_null_struct_are_ignored() -> None:
    hidden = pa.StructArray.from_arrays([pa.array([7])], ["x"], mask=pa.array([True]))
    assert_same_rows(pa.table({"s": hidden}), pa.table({"s": pa.array([None], pa.struct({"x": pa.int64()}))}))


def test_the_report_is_readable() -> None:
    left = pa.table({"id": [*range(12), 5], "name": [*"abcdefghijkl", "f"]})
    right = pa.table({"id": [5, 99], "name": ["f", None]})
    assert compare_rows(left, right).report("engine", "oracle").splitlines() == [
        "only in engine: 12 rows (12 different)",
        "  1 x id=0, name='a'",
        "  1 x id=1, name='b'",
        "  1 x id=2, name='c'",
        "  1 x id=3, name='d'",
        "  1 x id=4, name='e'",
        "  1 x id=5, name='f'",
        "  1 x id=6, name='g'",
        "  1 x id=7, name='h'",
        "  1 x id=8, name='i'",
        "  1 x id=9, name='j'",
        "  ..",
        "only in oracle: 1 rows (1 different)",
        "  1 x id=99, name=None",
    ]


def test_names_and_types_must_be_equal() -> None:
    with pytest.raises(AssertionError, match=r"columns differ: \['a'\], expected \['b'\]"):
        assert_same_rows(pa.table({"a": [1]}), pa.table({"b": [1]}))
    with pytest.raises(AssertionError, match="column 'a' is int32, expected int64"):
        assert_same_rows(pa.table({"a": pa.array([1], pa.int32())}), pa.table({"a": [1]}))
    with pytest.raises(AssertionError, match="columns differ"):
        assert_same_rows(pa.table({"a": [1], "b": [1]}), pa.table({"a": [1]}))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (pa.array([1], pa.int8()), pa.array([1], pa.int64())),
        (pa.array([0.5], pa.float32()), pa.array([0.5])),
        (pa.array(["a"]), pa.array(["a"], pa.large_string()).dictionary_encode()),
        (pa.array([Decimal("1.5")]), pa.array([Decimal("1.500")])),
        (pa.array([1], pa.timestamp("s")), pa.array([1_000_000], pa.timestamp("us"))),
        (pa.nulls(1), pa.array([None], pa.int32())),
    ],
)
def test_values_of_different_types_can_be_compared(left: pa.Array, right: pa.Array) -> None:
    assert_same_rows(pa.table({"a": left}), pa.table({"a": right}), types=False)


def test_columns_that_cannot_be_compared_differ() -> None:
    with pytest.raises(AssertionError, match="column 'a' cannot be compared"):
        assert_same_rows(pa.table({"a": ["1"]}), pa.table({"a": [1]}), types=False)


def test_tables_without_rows_or_columns() -> None:
    empty = pa.table({"a": pa.array([], pa.int64())})
    assert_same_rows(empty, empty.slice(0, 0))
    assert_same_rows(pa.table({}), pa.table({}))
    with pytest.raises(AssertionError, match="0 rows, expected 1"):
        assert_same_rows(empty, pa.table({"a": [1]}))


def test_many_different_values_in_many_columns() -> None:
    """So many that codes combined without renumbering would overflow 64 bits."""
    generator = np.random.default_rng(0)
    table = pa.table({str(column): generator.random(50_000) for column in range(6)})
    order = pa.array(generator.permutation(50_000))
    assert_same_rows(table.take(order), table)
    changed = table.set_column(5, "5", pa.array(np.append(table.column("5").to_numpy()[:-1], -1.0)))
    assert sum(compare_rows(changed, table).left_counts) == 1
