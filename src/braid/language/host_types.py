"""What binding asks a host about expressions that the host computes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import pyarrow as pa

from braid.model.expressions.expression import HostExpression
from braid.model.expressions.types import TypeMismatch


class HostTypes(Protocol):
    """The types of a host's expressions."""

    def type_of(self, expression: HostExpression, types: Sequence[pa.DataType]) -> pa.DataType:
        """The type of an expression whose operands are bound and have these types.

        `TypeMismatch` says why the host cannot compute it.
        """


class RecordedTypes:
    """Asks a host, and keeps the types that it gives. Within one SELECT, the text of an expression says its type."""

    def __init__(self, host: HostTypes) -> None:
        self._host = host
        self.given: dict[str, pa.DataType] = {}
        """By the text of each expression."""

    def type_of(self, expression: HostExpression, types: Sequence[pa.DataType]) -> pa.DataType:
        type_ = self._host.type_of(expression, types)
        self.given[expression.sql(str)] = type_
        return type_


class StoredTypes:
    """The types that a host has given before, by the text of each expression."""

    def __init__(self, types: Mapping[str, pa.DataType]) -> None:
        self._types = types

    def type_of(self, expression: HostExpression, types: Sequence[pa.DataType]) -> pa.DataType:
        try:
            return self._types[expression.sql(str)]
        except KeyError:
            raise TypeMismatch(f"the type of {expression} was not stored", expression) from None
