"""What happens to rows of a stream before they enter its window: selection, lifetimes, keys."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from braid.engine.chain import bucket_order
from braid.engine.compiled import Words
from braid.engine.expression import Compiled, compile_expression
from braid.engine.hashing import FULL_HASH, is_exact, key_words
from braid.engine.window import Rows
from braid.errors import StreamError
from braid.model.expression import Cast, Column, Expression
from braid.model.predicate import Predicate
from braid.model.query import Source
from braid.model.typing import type_of

FINEST_ORDER = 11
"""Rows are brought into at most 2 to this many groups: more would cost more than it saves."""


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """How rows of a stream get their word in an attribute class; `place` is where the values are kept, if they are."""

    value: Compiled
    exact: bool
    place: int | None


class Intake:
    """Turns rows of a source into rows for its window. All conditions on the source alone are checked here."""

    def __init__(
        self,
        source: Source,
        selections: Iterable[Predicate],
        keys: Mapping[int, tuple[Expression, pa.DataType]],
        payload: Iterable[Column],
        bits: int = FULL_HASH,
    ) -> None:
        assert source.declaration is not None
        self._schema = source.declaration.schema
        self._alias = source.alias
        self._bits = bits
        self._selections = [self._compile(predicate.expression) for predicate in selections]
        self._payload = list(dict.fromkeys(payload))
        for column in self._payload:
            if pa.types.is_union(self._type_of_column(column)):
                raise StreamError(f"column '{column}' is a union, which cannot be kept; select something else of it")
        self._kept_keys: list[int] = []
        self.columns = {column: place for place, column in enumerate(self._payload)}
        self.keys = {number: self._key_column(number, *key) for number, key in keys.items()}

    @property
    def kinds(self) -> list[pa.DataType]:
        """The types of the columns kept."""
        kept = [self._type_of_column(column) for column in self._payload]
        return kept + [self.keys[number].value.type for number in self._kept_keys]

    @property
    def columns_read(self) -> set[str]:
        """The columns of the input that are looked at."""
        compiled = [*self._selections, *(key.value for key in self.keys.values())]
        return {column.name for reader in compiled for column in reader.columns} | {
            column.name for column in self._payload
        }

    def _key_column(self, number: int, expression: Expression, kind: pa.DataType) -> KeyColumn:
        own = type_of(expression, self._type_of_column)
        value = self._compile(expression if own == kind else Cast(expression, kind))
        if is_exact(kind):
            return KeyColumn(value, True, None)
        # Where hashes may collide the values are kept to be compared, unless the payload has them anyway.
        if isinstance(expression, Column) and own == kind and expression in self.columns:
            return KeyColumn(value, False, self.columns[expression])
        self._kept_keys.append(number)
        return KeyColumn(value, False, len(self._payload) + len(self._kept_keys) - 1)

    def _compile(self, expression: Expression) -> Compiled:
        return compile_expression(expression, self._type_of_column)

    def _type_of_column(self, column: Column) -> pa.DataType:
        return self._schema.field(column.name).type

    def admit(self, rows: pa.RecordBatch, starts: Words, ends: Words) -> tuple[Rows, Words]:
        """The rows that may ever join, ready for the window, and where in the input each of them stood.

        They come out in the order of their index buckets.
        """
        values = {number: self._evaluate(key.value, rows) for number, key in self.keys.items()}
        kept = self._passing(rows, starts < ends, values)
        columns = [rows.column(column.name) for column in self._payload]
        if len(kept) < rows.num_rows:
            places = pa.array(kept)
            values = {number: value.take(places) for number, value in values.items()}
            columns = [column.take(places) for column in columns]
            starts, ends = starts[kept], ends[kept]
        columns += [values[number] for number in self._kept_keys]
        payload = pa.RecordBatch.from_arrays(columns, [str(place) for place in range(len(columns))])
        words = {number: self._words(number, value) for number, value in values.items()}
        admitted = Rows(starts, ends, words, payload)
        if not words or len(kept) < 64:
            return admitted, kept
        order = bucket_order(next(iter(words.values())), min(FINEST_ORDER, len(kept).bit_length() - 4))
        return admitted.take(order), kept[order]

    def _passing(
        self, rows: pa.RecordBatch, alive: np.ndarray[Any, np.dtype[np.bool_]], keys: Mapping[int, pa.Array]
    ) -> Words:
        """Where the rows are that are ever alive, satisfy the selections and have no null among their keys."""
        conditions = [self._evaluate(selection, rows) for selection in self._selections]
        conditions += [pc.is_valid(key) for key in keys.values() if key.null_count]
        for condition in conditions:
            alive &= condition.fill_null(False).to_numpy(zero_copy_only=False)
        return np.flatnonzero(alive)

    def _words(self, number: int, values: pa.Array) -> Words:
        words = key_words(values)
        if not self.keys[number].exact and self._bits < FULL_HASH:
            words = words & np.int64((1 << self._bits) - 1)
        return words

    def _evaluate(self, compiled: Compiled, rows: pa.RecordBatch) -> pa.Array:
        return compiled({column: rows.column(column.name) for column in compiled.columns}, rows.num_rows)
