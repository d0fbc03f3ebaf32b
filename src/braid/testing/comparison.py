"""Are two tables the same rows, each as often, in whatever order? If not: which rows are the matter."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from braid.testing.encoding import combine_codes, encode, gather_rows, plain_type

SHOWN_ROWS = 10


@dataclass(frozen=True)
class Difference:
    """The rows that one table has more often than the other, once each, and how much more often."""

    left_rows: pa.Table
    left_counts: tuple[int, ...]
    right_rows: pa.Table
    right_counts: tuple[int, ...]

    def __bool__(self) -> bool:
        return bool(self.left_counts or self.right_counts)

    def report(self, left: str = "left", right: str = "right") -> str:
        """The difference for people, empty if there is none."""
        parts = [
            _report(f"only in {left}", self.left_rows, self.left_counts),
            _report(f"only in {right}", self.right_rows, self.right_counts),
        ]
        return "\n".join(part for part in parts if part)


def compare_rows(left: pa.Table, right: pa.Table) -> Difference:
    """How two tables differ as multisets of rows; columns are matched by position.

    Nulls equal nulls, NaN equals NaN, -0.0 equals 0.0. Numbers, texts and times are compared by value even if
    their types differ in width or encoding; columns that cannot be compared at all are an AssertionError.
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
            f"column '{name}' is {found}, expected {wanted}"
            for name, found, wanted in zip(actual.column_names, actual.schema.types, expected.schema.types, strict=True)
            if found != wanted
        ]
    if actual.num_columns == expected.num_columns:
        difference = compare_rows(actual, expected)
        if difference:
            problems.append(f"{actual.num_rows} rows, expected {expected.num_rows}")
            problems.append(difference.report("actual", "expected"))
    if problems:
        raise AssertionError("\n".join([*problems, message] if message else problems))


def _stacked(left: pa.Table, right: pa.Table, position: int) -> pa.Array:
    """A column of both tables, one under the other, in a type that holds both."""
    columns = [left.column(position), right.column(position)]
    if columns[0].type != columns[1].type:
        name = left.column_names[position]
        columns = [column.cast(plain_type(column.type)) for column in columns]
        if any(pa.types.is_decimal(column.type) for column in columns):
            columns = [_widened(column) for column in columns]
        try:
            fields = [pa.schema([pa.field("column", column.type)]) for column in columns]
            common = pa.unify_schemas(fields, promote_options="permissive").field(0).type
            columns = [column.cast(common) for column in columns]
        # What Arrow raises for two types that have no common one, or that it cannot cast.
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as problem:
            raise AssertionError(f"column '{name}' cannot be compared: {problem}") from None
    chunks = [chunk for column in columns for chunk in column.chunks]
    return pa.chunked_array(chunks, columns[0].type).combine_chunks()


def _widened(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Integers as decimals, which hold them all."""
    return column.cast(pa.decimal128(20, 0)) if pa.types.is_integer(column.type) else column


def _surplus(left: pa.Table, right: pa.Table, codes: np.ndarray) -> Difference:
    kinds = int(codes.max(initial=-1)) + 1
    counts = np.bincount(codes[: left.num_rows], minlength=kinds)
    counts -= np.bincount(codes[left.num_rows :], minlength=kinds)
    if not counts.any():
        return Difference(left.slice(0, 0), (), right.slice(0, 0), ())
    more_left, left_counts = _examples(codes[: left.num_rows], counts)
    more_right, right_counts = _examples(codes[left.num_rows :], -counts)
    return Difference(gather_rows(left, more_left), left_counts, gather_rows(right, more_right), right_counts)


def _examples(codes: np.ndarray, surplus: np.ndarray) -> tuple[pa.Array, tuple[int, ...]]:
    """The first row of each kind that there is too much of, in the order of the table."""
    kinds, first = np.unique(codes, return_index=True)
    chosen = surplus[kinds] > 0
    order = np.argsort(first[chosen])
    return pa.array(first[chosen][order]), tuple(surplus[kinds[chosen][order]].tolist())


def _report(title: str, rows: pa.Table, counts: tuple[int, ...]) -> str:
    if not counts:
        return ""
    lines = [f"{title}: {sum(counts)} rows ({len(counts)} different)"]
    for number, count in enumerate(counts[:SHOWN_ROWS]):
        values = (f"{name}={_value(rows.column(i)[number])}" for i, name in enumerate(rows.column_names))
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
        # Nanoseconds have no Python value; Arrow can still print them, over several lines.
        return " ".join(str(pa.array([scalar], scalar.type)).split())
