"""Compare tables as multisets of rows: the same rows, each as often, in any order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from braid.testing.encoding import combine_codes, encode, gather_rows, plain_type

SHOWN_ROWS = 10
"""The most different rows that a report shows of each table."""


@dataclass(frozen=True)
class Difference:
    """The rows that one table has more often than the other: each distinct row once, and how many more there are."""

    left_rows: pa.Table
    left_counts: tuple[int, ...]
    right_rows: pa.Table
    right_counts: tuple[int, ...]

    def __bool__(self) -> bool:
        return bool(self.left_counts or self.right_counts)

    def report(self, left: str = "left", right: str = "right") -> str:
        """The difference as readable text; empty if the tables have the same rows."""
        lines = [
            _report(f"only in {left}", self.left_rows, self.left_counts),
            _report(f"only in {right}", self.right_rows, self.right_counts),
        ]
        return "\n".join(line for line in lines if line)


def compare_rows(left: pa.Table, right: pa.Table) -> Difference:
    """The difference of two tables as multisets of rows; columns are matched by position.

    Null equals null, NaN equals NaN, -0.0 equals 0.0. Numbers, strings and times are compared by value, even if their
    types differ in width or encoding. Columns that cannot be compared raise an AssertionError.
    """
    if left.num_columns != right.num_columns:
        raise AssertionError(f"columns differ: {left.column_names} against {right.column_names}")
    if left.num_columns == 0:
        return _surplus(left, right, np.zeros(left.num_rows + right.num_rows, np.int64))
    codes = [encode(_stacked(left, right, position)) for position in range(left.num_columns)]
    return _surplus(left, right, combine_codes(codes))


def assert_same_rows(actual: pa.Table, expected: pa.Table, *, types: bool = True, message: str = "") -> None:
    """Fail with a readable report unless both tables have the same columns and the same rows, in any order.

    With `types=False`, columns may differ in type as long as their values are the same.
    """
    problems = []
    if actual.column_names != expected.column_names:
        problems.append(f"columns differ: {actual.column_names}, expected {expected.column_names}")
    elif types and actual.schema.types != expected.schema.types:
        problems += [
            f"column '{field.name}' is {field.type}, expected {expected_type}"
            for field, expected_type in zip(actual.schema, expected.schema.types, strict=True)
            if field.type != expected_type
        ]
    if actual.num_columns == expected.num_columns:
        difference = compare_rows(actual, expected)
        if difference:
            problems.append(f"{actual.num_rows} rows, expected {expected.num_rows}")
            problems.append(difference.report("actual", "expected"))
    if problems:
        raise AssertionError("\n".join([*problems, message] if message else problems))


def _stacked(left: pa.Table, right: pa.Table, position: int) -> pa.Array:
    """A column of the left table followed by that of the right table, in a common type."""
    columns = [left.column(position), right.column(position)]
    if columns[0].type != columns[1].type:
        name = left.column_names[position]
        columns = [column.cast(plain_type(column.type)) for column in columns]
        if any(pa.types.is_decimal(column.type) for column in columns):
            columns = [_widened(column) for column in columns]
        try:
            schemas = [pa.schema([pa.field("column", column.type)]) for column in columns]
            common = pa.unify_schemas(schemas, promote_options="permissive").field(0).type
            columns = [column.cast(common) for column in columns]
        # Arrow raises these for two types without a common type, and for casts that it does not support.
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
            raise AssertionError(f"column '{name}' cannot be compared: {error}") from None
    chunks = [chunk for column in columns for chunk in column.chunks]
    return pa.chunked_array(chunks, columns[0].type).combine_chunks()


def _widened(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Integers as decimals, so that they have a common type with decimals."""
    return column.cast(pa.decimal128(20, 0)) if pa.types.is_integer(column.type) else column


def _surplus(left: pa.Table, right: pa.Table, codes: np.ndarray) -> Difference:
    """The difference, from the codes of the left rows followed by those of the right: equal rows have equal codes."""
    left_codes, right_codes = codes[: left.num_rows], codes[left.num_rows :]
    distinct = int(codes.max(initial=-1)) + 1
    surplus = np.bincount(left_codes, minlength=distinct) - np.bincount(right_codes, minlength=distinct)
    if not surplus.any():
        return Difference(left.slice(0, 0), (), right.slice(0, 0), ())
    more_left, left_counts = _examples(left_codes, surplus)
    more_right, right_counts = _examples(right_codes, -surplus)
    return Difference(gather_rows(left, more_left), left_counts, gather_rows(right, more_right), right_counts)


def _examples(codes: np.ndarray, surplus: np.ndarray) -> tuple[pa.Array, tuple[int, ...]]:
    """The first row for each code with a surplus, in the order of the table, and the surplus of each."""
    distinct, first_rows = np.unique(codes, return_index=True)
    chosen = surplus[distinct] > 0
    order = np.argsort(first_rows[chosen])
    return pa.array(first_rows[chosen][order]), tuple(surplus[distinct[chosen][order]].tolist())


def _report(title: str, rows: pa.Table, counts: tuple[int, ...]) -> str:
    if not counts:
        return ""
    lines = [f"{title}: {sum(counts)} rows ({len(counts)} different)"]
    for row, count in enumerate(counts[:SHOWN_ROWS]):
        values = (f"{name}={_value(rows.column(i)[row])}" for i, name in enumerate(rows.column_names))
        lines.append(f"  {count} x {', '.join(values)}")
    if len(counts) > SHOWN_ROWS:
        lines.append("  ..")
    return "\n".join(lines)


def _value(scalar: pa.Scalar) -> str:
    if pa.types.is_string(plain_type(scalar.type)):
        return repr(scalar.as_py())
    try:
        return str(scalar)
    except ValueError:
        # Nanoseconds have no Python value; Arrow prints an array of them, over several lines.
        return " ".join(str(pa.array([scalar], scalar.type)).split())
