"""The table that expressions are evaluated on, and the checks that hold for every expression."""

import math
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from braid import Stream
from braid.engine.kernels.expression import Compiled, compile_expression
from braid.language import parse
from braid.model.expressions.expression import Column
from braid.model.query import Output

NAN, INFINITY = float("nan"), float("inf")
NOON = datetime(2024, 1, 31, 12, 34, 56, 789012)
BEFORE = datetime(1969, 12, 31, 23, 59, 59, 500000)
LEAP = datetime(2024, 2, 29)

TABLE = pa.record_batch(
    {
        "ts": pa.array([NOON, BEFORE, None, LEAP], pa.timestamp("us")),
        "tz": pa.array([NOON, BEFORE, None, LEAP], pa.timestamp("ns", "America/New_York")),
        "i": pa.array([1, -7, None, 2**31 - 1], pa.int32()),
        "j": pa.array([2, 3, 0, -1], pa.int32()),
        "l": pa.array([2**63 - 1, -(2**63), None, 5], pa.int64()),
        "b": pa.array([127, -128, None, 3], pa.int8()),
        "u": pa.array([2**64 - 1, 0, None, 5], pa.uint64()),
        "f": pa.array([1.5, NAN, None, -0.0]),
        "g": pa.array([0.0, NAN, 1.0, INFINITY]),
        "h": pa.array([0.1, NAN, None, -2.5], pa.float32()),
        "d": pa.array([Decimal("1.25"), Decimal("-3.50"), None, Decimal("99999999.99")], pa.decimal128(10, 2)),
        "e": pa.array([Decimal("0.5"), Decimal("2.0"), Decimal(1), Decimal(0)], pa.decimal128(38, 10)),
        "s": pa.array(["abc", "Straße", None, " 12 "]),
        "p": pa.array(["a%", "%ß_", None, "_12%"]),
        "v": pa.array(["x", "y", "x", None]).dictionary_encode(),
        "w": pa.array(["a", "b", "c", None], pa.string_view()),
        "q": pa.array([True, False, None, True]),
        "day": pa.array([date(2024, 1, 31), date(1969, 12, 31), None, date(2024, 2, 29)]),
        "z": pa.array([b"ab", b"\xff", None, b""]),
        "k": pa.array([[1], None, [], [2]]),
        "n": pa.nulls(4),
        "du": pa.array([5, -5, None, 10**6], pa.duration("ns")),
    }
)
STREAMS = {"t": Stream("t", TABLE.schema, "ts")}


def column_type(column: Column) -> pa.DataType:
    return TABLE.schema.field(column.name).type


def compiled(text: str) -> Compiled:
    output = parse(f"SELECT {text} AS x FROM t [NOW]", STREAMS).outputs[0]
    assert isinstance(output, Output)
    return compile_expression(output.expression, column_type)


def run(text: str) -> pa.Array:
    """The values of an expression on `TABLE`, after checks that hold for every expression."""
    expression = compiled(text)
    columns = {column: TABLE.column(column.name) for column in expression.columns}
    result = expression(columns, 4)
    assert result.type == expression.type
    assert len(result) == 4
    result.validate(full=True)
    # The values must not depend on how rows are batched, not even if a batch is empty.
    pieces = [
        expression({column: values.slice(start, size) for column, values in columns.items()}, size)
        for start, size in ((0, 1), (1, 0), (1, 3))
    ]
    assert all(piece.type == expression.type for piece in pieces)
    assert str(pa.concat_arrays(pieces)) == str(result), "values depend on how rows are batched"
    return result


def is_identical(left: Any, right: Any) -> bool:
    """Equality of values and types in which NaN equals NaN, and -0.0 does not equal 0.0."""
    if isinstance(left, float) and isinstance(right, float):
        return (math.isnan(left) and math.isnan(right)) or (
            left == right and math.copysign(1, left) == math.copysign(1, right)
        )
    return type(left) is type(right) and left == right


def assert_values(text: str, expected: list[Any]) -> None:
    """An expression has these values in the rows of `TABLE`."""
    values = run(text).to_pylist()
    assert all(map(is_identical, values, expected)), values
    assert len(values) == len(expected)
