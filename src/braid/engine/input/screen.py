"""Which rows of a source can be part of a result, and the values of their keys."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from braid.engine.arrays.columns import Flags
from braid.engine.arrays.jit import Words
from braid.engine.kernels.expression import Compiled, compile_expression
from braid.model.band import Band
from braid.model.expressions.expression import Cast, Column, Expression
from braid.model.expressions.typing import type_of
from braid.model.graph import AttributeClass
from braid.model.predicate import Predicate
from braid.model.query import Source


class Screen:
    """Evaluates the selections and the keys of one source. Keys are cast to the types in which they are compared.

    `keys` are the attribute classes and bands of the source, by number.
    """

    def __init__(
        self, source: Source, selections: Iterable[Predicate], keys: Mapping[int, AttributeClass | Band]
    ) -> None:
        self._schema = source.declared.schema
        self._selections = [self._compile(predicate.expression) for predicate in selections]
        self.keys = {
            key_number: self._compile_as(class_or_band.key(source.alias), class_or_band.type)
            for key_number, class_or_band in keys.items()
        }

    def type_of_column(self, column: Column) -> pa.DataType:
        return self._schema.field(column.name).type

    def columns_read(self) -> set[str]:
        expressions = [*self._selections, *self.keys.values()]
        return {column.name for expression in expressions for column in expression.columns}

    def values(self, rows: pa.RecordBatch) -> dict[int, pa.Array]:
        """The key of each row in each attribute class and band."""
        return {key_number: _evaluate(key, rows) for key_number, key in self.keys.items()}

    def passing(self, rows: pa.RecordBatch, values: Mapping[int, pa.Array], alive: Flags) -> Words:
        """The positions of rows that are alive, satisfy the selections, and have no null in the keys `values`."""
        conditions = [_evaluate(selection, rows) for selection in self._selections]
        conditions += [pc.is_valid(key) for key in values.values() if key.null_count]
        for condition in conditions:
            alive = alive & condition.fill_null(False).to_numpy(zero_copy_only=False)
        return np.flatnonzero(alive)

    def _compile_as(self, expression: Expression, type_: pa.DataType) -> Compiled:
        has_type = type_of(expression, self.type_of_column) == type_
        return self._compile(expression if has_type else Cast(expression, type_))

    def _compile(self, expression: Expression) -> Compiled:
        return compile_expression(expression, self.type_of_column)


def _evaluate(compiled: Compiled, rows: pa.RecordBatch) -> pa.Array:
    return compiled({column: rows.column(column.name) for column in compiled.columns}, rows.num_rows)
