"""Joins batches of rows with a table that does not change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from braid.engine.arrays.jit import Words
from braid.engine.kernels.expression import Columns, ColumnType, Compiled, compile_expression
from braid.engine.keys.hashing import combine_words, key_words
from braid.model.expressions.expression import Call, Cast, Column, Expression, columns_of, sources_of
from braid.model.expressions.types import equality_type
from braid.model.expressions.typing import type_of
from braid.model.fixed_join import JoinKind
from braid.model.row_query import TableJoin

MOST_PAIRS = 1 << 20
"""The most pairs of rows that are compared at once."""


@dataclass(frozen=True)
class Frame:
    """Rows of several relations side by side: columns of one length."""

    columns: Mapping[Column, pa.Array]
    length: int

    def take(self, positions: pa.Array) -> Frame:
        return Frame({column: values.take(positions) for column, values in self.columns.items()}, len(positions))


class TableJoiner:
    """Joins frames with the rows of a table, which are indexed once by the equalities of the join."""

    def __init__(self, join: TableJoin, table: pa.RecordBatch, column_type: ColumnType) -> None:
        self._kind = join.kind
        fields = zip(table.schema.names, table.columns, strict=True)
        self._table = Frame({Column(join.alias, name): values for name, values in fields}, table.num_rows)
        self._conditions = [compile_expression(predicate.expression, column_type) for predicate in join.predicates]
        keys = [_key_pair(predicate.expression, join.alias, column_type) for predicate in join.predicates]
        self._keys = [key for key in keys if key is not None]
        words, valid = _words([key for _, key in self._keys], self._table)
        rows = np.flatnonzero(valid)
        self._order = rows[np.argsort(words[rows], kind="stable")]
        self._words = words[self._order]

    def join(self, rows: Frame) -> Frame:
        """The rows with their partners in the table, in the order of the rows."""
        pieces = [self._partners(rows, first, last) for first, last in self._slices(rows.length)]
        left, right = (np.concatenate(side) for side in zip(*pieces, strict=True))
        has_partner = np.zeros(rows.length, bool)
        has_partner[left] = True
        if self._kind is JoinKind.SEMI or self._kind is JoinKind.ANTI:
            return rows.take(pa.array(np.flatnonzero(has_partner == (self._kind is JoinKind.SEMI))))
        alone = np.flatnonzero(~has_partner) if self._kind is JoinKind.LEFT else np.empty(0, np.int64)
        partners = pa.concat_arrays([pa.array(right, pa.int64()), pa.nulls(len(alone), pa.int64())])
        joined = rows.take(pa.array(np.concatenate([left, alone]), pa.int64()))
        return Frame({**joined.columns, **self._table.take(partners).columns}, joined.length)

    def _slices(self, length: int) -> list[tuple[int, int]]:
        """Ranges of rows that make few enough pairs, if every pair must be compared."""
        step = max(length, 1) if self._keys else max(1, MOST_PAIRS // max(1, self._table.length))
        return [(first, min(first + step, length)) for first in range(0, max(length, 1), step)]

    def _partners(self, rows: Frame, first: int, last: int) -> tuple[Words, Words]:
        """The positions of joined rows, and of their partners in the table."""
        left, right = self._candidates(rows, first, last)
        if not len(left) or not self._conditions:
            return left, right
        matches = np.full(len(left), True)
        for condition in self._conditions:
            values = condition(self._columns(condition, rows, left, right), len(left))
            matches &= pc.fill_null(values, False).to_numpy(zero_copy_only=False).astype(bool)
        return left[matches], right[matches]

    def _columns(self, condition: Compiled, rows: Frame, left: Words, right: Words) -> Columns:
        columns = {}
        for column in condition.columns:
            of_table = column in self._table.columns
            frame, positions = (self._table, right) if of_table else (rows, left)
            columns[column] = frame.columns[column].take(pa.array(positions))
        return columns

    def _candidates(self, rows: Frame, first: int, last: int) -> tuple[Words, Words]:
        """Pairs with equal words, which need not be equal; without an equality, all pairs."""
        if not self._keys:
            return np.repeat(np.arange(first, last), self._table.length), np.tile(
                np.arange(self._table.length), last - first
            )
        words, valid = _words([key for key, _ in self._keys], rows)
        begin = np.searchsorted(self._words, words, side="left")
        counts = np.where(valid, np.searchsorted(self._words, words, side="right") - begin, 0)
        left = np.repeat(np.arange(rows.length), counts)
        within = np.arange(len(left)) - np.repeat(np.cumsum(counts) - counts, counts)
        return left, self._order[np.repeat(begin, counts) + within]


def _key_pair(expression: Expression, alias: str, column_type: ColumnType) -> tuple[Compiled, Compiled] | None:
    """The two sides of an equality between the rows so far and the table, in the type in which they are compared."""
    if not (isinstance(expression, Call) and expression.function == "equal"):
        return None
    left, right = expression.arguments
    if sources_of(left) == {alias}:
        left, right = right, left
    if sources_of(right) != {alias} or alias in sources_of(left) or not any(columns_of(left)):
        return None
    kind = equality_type(type_of(left, column_type), type_of(right, column_type))

    def compiled(side: Expression) -> Compiled:
        return compile_expression(side if type_of(side, column_type) == kind else Cast(side, kind), column_type)

    return compiled(left), compiled(right)


def _words(keys: Sequence[Compiled], rows: Frame) -> tuple[Words, np.ndarray[tuple[int], np.dtype[np.bool_]]]:
    """A word for the keys of each row, and whether none of the keys is null."""
    words = []
    valid = np.full(rows.length, True)
    for key in keys:
        values = key({column: rows.columns[column] for column in key.columns}, rows.length)
        words.append(key_words(values))
        valid &= values.is_valid().to_numpy(zero_copy_only=False)
    return combine_words(words) if words else np.zeros(rows.length, np.int64), valid
