"""What happens to rows of a stream before they enter its window: they are screened, keyed and brought into order."""

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

FINEST_ORDER = 11
"""Rows are brought into at most 2 to this many groups: more would cost more than it saves."""

FEWEST_ORDERED = 64


class Admission:
    """Turns rows of a source into rows for its window, with the columns that are read after it (`payload`).

    `columns` tells at which place of the payload a column is kept, and `key_places` where the values of a key are,
    if its words alone do not tell them apart. `scales` are those of the bands the source is part of, by number.
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
        bands = {number: scale.band for number, scale in self._scales.items()}
        self._screen = Screen(source, selections, {**keys, **bands})
        self._bits = bits
        self._payload = list(dict.fromkeys(payload))
        for column in self._payload:
            if has_union(self._screen.type_of_column(column)):
                raise StreamError(
                    f"column '{column}' is a union or holds one, which cannot be kept; select something else of it"
                )
        self.columns = {column: place for place, column in enumerate(self._payload)}
        self.exact = frozenset(number for number, owned in keys.items() if is_exact(owned.type))
        self._kept_keys: list[int] = []
        self.key_places = {
            number: self._key_place(number, owned.key(source.alias), owned.type)
            for number, owned in keys.items()
            if number not in self.exact
        }

    def _key_place(self, number: int, key: object, kind: pa.DataType) -> int:
        if isinstance(key, Column) and key in self.columns and self._screen.type_of_column(key) == kind:
            return self.columns[key]
        self._kept_keys.append(number)
        return len(self._payload) + len(self._kept_keys) - 1

    @property
    def kinds(self) -> list[pa.DataType]:
        """The types of the columns kept."""
        kept = [self._screen.type_of_column(column) for column in self._payload]
        return kept + [self._screen.keys[number].type for number in self._kept_keys]

    @property
    def columns_read(self) -> set[str]:
        """The columns of the input that are looked at."""
        return self._screen.columns_read() | {column.name for column in self._payload}

    def admit(self, rows: pa.RecordBatch, starts: Words, ends: Words) -> tuple[KeyedRows, Words]:
        """The rows that may ever join, ready for the window, and where in the input each of them stood.

        They come out in the order of their index buckets.
        """
        values = self._screen.values(rows)
        kept = self._screen.passing(rows, values, starts < ends)
        columns = [rows.column(column.name) for column in self._payload]
        if len(kept) < rows.num_rows:
            places = pa.array(kept)
            values = {number: value.take(places) for number, value in values.items()}
            columns = [column.take(places) for column in columns]
            starts, ends = starts[kept], ends[kept]
        columns += [values[number] for number in self._kept_keys]
        payload = pa.RecordBatch.from_arrays(columns, [str(place) for place in range(len(columns))])
        words = {number: self._words(number, value) for number, value in values.items()}
        admitted = KeyedRows(starts, ends, words, payload)
        if not words or len(kept) < FEWEST_ORDERED:
            return admitted, kept
        number = next(iter(words))
        keys = words[number] >> self._scales[number].grain if number in self._scales else words[number]
        order = bucket_order(keys, min(FINEST_ORDER, len(kept).bit_length() - 4))
        return admitted.take(order), kept[order]

    def _words(self, number: int, values: pa.Array) -> Words:
        if number in self._scales:
            return self._scales[number].words(self._alias, values)
        words = key_words(values)
        if number not in self.exact and self._bits < FULL_HASH:
            words = words & np.int64((1 << self._bits) - 1)
        return words
