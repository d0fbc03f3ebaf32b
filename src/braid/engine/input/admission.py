"""Prepares rows of a stream for its window: screens them, computes their key words, and puts them in bucket order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import pyarrow as pa

from braid.engine.arrays.jit import Words
from braid.engine.input.screen import Screen
from braid.engine.keys.band_scale import BandScale
from braid.engine.keys.hashing import FULL_HASH, is_exact, key_words
from braid.engine.window.chain import bucket_order
from braid.engine.window.window_state import KeyedRows
from braid.errors import StreamError
from braid.model.expressions.expression import Column
from braid.model.expressions.types import has_union
from braid.model.graph import AttributeClass
from braid.model.predicate import Predicate
from braid.model.query import Source

MOST_ORDER_BITS = 11
"""Rows are ordered by at most this many bits of their bucket number; more bits would cost more than they save."""

FEWEST_ORDERED = 64
"""Batches with fewer rows than this are not put in bucket order."""


class Admission:
    """Turns rows of a source into rows for its window; `payload` are the columns that are read later.

    `columns` maps each of these columns to its position in the payload. `key_positions` maps attribute classes to the
    position of their values in the payload, if words alone do not tell these apart. `scales` are those of the source's
    bands, by number.
    """

    def __init__(
        self,
        source: Source,
        selections: Iterable[Predicate],
        keys: Mapping[int, AttributeClass],
        payload: Iterable[Column],
        bits: int = FULL_HASH,
        scales: Mapping[int, BandScale] | None = None,
    ) -> None:
        self._alias = source.alias
        self._scales = dict(scales or {})
        bands = {band_number: scale.band for band_number, scale in self._scales.items()}
        self._screen = Screen(source, selections, {**keys, **bands})
        self._bits = bits
        self._payload = list(dict.fromkeys(payload))
        for column in self._payload:
            if has_union(self._screen.type_of_column(column)):
                raise StreamError(
                    f"column '{column}' is a union or holds one, which cannot be kept; select something else of it"
                )
        self.columns = {column: position for position, column in enumerate(self._payload)}
        self.exact = frozenset(class_number for class_number, key_class in keys.items() if is_exact(key_class.type))
        self._payload_keys: list[int] = []
        """The attribute classes whose values are added to the payload, after its columns."""
        self.key_positions = {
            class_number: self._key_position(class_number, key_class.key(source.alias), key_class.type)
            for class_number, key_class in keys.items()
            if class_number not in self.exact
        }

    def _key_position(self, class_number: int, key: object, kind: pa.DataType) -> int:
        """The position of a key's values in the payload; they are added to it unless one of its columns has them."""
        if isinstance(key, Column) and key in self.columns and self._screen.type_of_column(key) == kind:
            return self.columns[key]
        self._payload_keys.append(class_number)
        return len(self._payload) + len(self._payload_keys) - 1

    @property
    def kinds(self) -> list[pa.DataType]:
        """The types of the payload."""
        columns = [self._screen.type_of_column(column) for column in self._payload]
        return columns + [self._screen.keys[class_number].type for class_number in self._payload_keys]

    @property
    def columns_read(self) -> set[str]:
        """The columns of the input that are read."""
        return self._screen.columns_read() | {column.name for column in self._payload}

    def admit(self, rows: pa.RecordBatch, starts: Words, ends: Words) -> tuple[KeyedRows, Words]:
        """The rows that can be part of a result, ready for the window, and the position of each in the input.

        They come in the order of their index buckets.
        """
        values = self._screen.values(rows)
        positions = self._screen.passing(rows, values, starts < ends)
        columns = [rows.column(column.name) for column in self._payload]
        if len(positions) < rows.num_rows:
            chosen = pa.array(positions)
            values = {key_number: value.take(chosen) for key_number, value in values.items()}
            columns = [column.take(chosen) for column in columns]
            starts, ends = starts[positions], ends[positions]
        columns += [values[class_number] for class_number in self._payload_keys]
        payload = pa.RecordBatch.from_arrays(columns, [str(position) for position in range(len(columns))])
        words = {key_number: self._words(key_number, value) for key_number, value in values.items()}
        admitted = KeyedRows(starts, ends, words, payload)
        if not words or len(positions) < FEWEST_ORDERED:
            return admitted, positions
        order = self._bucket_order(words)
        return admitted.take(order), positions[order]

    def _bucket_order(self, words: Mapping[int, Words]) -> Words:
        """The order of rows in the index on their first attribute class or band."""
        key_number, keys = next(iter(words.items()))
        if key_number in self._scales:
            keys = keys >> self._scales[key_number].grain
        return bucket_order(keys, min(MOST_ORDER_BITS, len(keys).bit_length() - 4))

    def _words(self, key_number: int, values: pa.Array) -> Words:
        if key_number in self._scales:
            return self._scales[key_number].words(self._alias, values)
        words = key_words(values)
        if key_number not in self.exact and self._bits < FULL_HASH:
            words = words & np.int64((1 << self._bits) - 1)
        return words
