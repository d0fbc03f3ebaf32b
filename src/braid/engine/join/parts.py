"""Which part of the keys each row belongs to, for plans that have a separate order for each part."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from braid.engine.arrays.jit import Words
from braid.engine.input.inlet import Inlet
from braid.engine.join.combinations import Base, Combinations, heads, rows_with
from braid.engine.join.partitions import check_partition, covered
from braid.model.graph import AttributeClass
from braid.model.partitions import Partitioning
from braid.model.window import FOREVER


@dataclass(frozen=True, slots=True)
class Share:
    """The keys that a lane is for: those of one partition or, with `others`, all keys but those of some partitions."""

    partitions: tuple[Partitioning, ...] = ()
    others: bool = True

    ALL: ClassVar[Share]

    def includes(self, other: Share) -> bool:
        """Whether a join state of this share certainly holds all combinations of another share."""
        return self in (Share.ALL, other)


Share.ALL = Share()


class KeyParts:
    """Tells the parts of an attribute class apart. Rows of part 0 are in no partition, those of part n in the nth."""

    def __init__(
        self,
        partitions: Sequence[Partitioning],
        class_numbers: Mapping[AttributeClass, int],
        inlets: Mapping[str, Inlet],
    ) -> None:
        for partition in partitions:
            check_partition(partition)
        self._partitions = partitions
        self._attribute_class = partitions[0].attribute_class
        self._class_number = class_numbers[self._attribute_class]
        self._inlets = inlets

    def key_stream(self, streams: Iterable[str]) -> str | None:
        """The first of some streams that has a key; None if none of them has."""
        return next((stream for stream in streams if stream in self._attribute_class.sources), None)

    def of_rows(self, stream: str, ids: Words) -> Words:
        """The part of each of these rows of a stream that has a key."""
        inlet = self._inlets[stream]
        position = inlet.admission.key_positions.get(self._class_number)
        words = inlet.window.words(self._class_number, ids)
        values = None if position is None else inlet.window.payload.take(position, ids)
        parts = np.zeros(len(ids), np.int64)
        for part, partition in enumerate(self._partitions, 1):
            parts[covered(partition, words, values)] = part
        return parts

    def within(self, rows: Combinations, stream: str, part: int) -> Combinations:
        """The combinations that belong to a part, by the key of one of their streams."""
        if not len(rows):
            return rows
        _, ids = rows.rows_of(stream)
        inside = self.of_rows(stream, ids) == part
        return rows if inside.all() else rows.take(np.flatnonzero(inside))


class NewRows:
    """The new rows of a step, by the part they belong to: those of each stream from the id in `first_new` on."""

    def __init__(self, bases: Mapping[str, Base], first_new: Mapping[str, int], parts: KeyParts | None) -> None:
        self._bases = bases
        self.first = first_new
        self._parts: dict[str, Words] = {}
        """The part of each new row, of the streams that have the key."""
        if parts is None:
            return
        for stream, base in bases.items():
            if parts.key_stream([stream]) is not None:
                self._parts[stream] = parts.of_rows(stream, np.arange(first_new[stream], base.window.next_id))

    def of_part(self, stream: str, part: int, most: int) -> Iterable[Combinations]:
        """The new rows of a stream that belong to a part, in pieces of at most `most` rows, before any join.

        All rows of a stream without a key belong to every part.
        """
        base, first = self._bases[stream], self.first[stream]
        if stream not in self._parts:
            for begin in range(first, base.window.next_id, most):
                yield heads(base, begin, min(begin + most, base.window.next_id))
            return
        ids = first + np.flatnonzero(self._parts[stream] == part)
        for begin in range(0, len(ids), most):
            yield rows_with(base, ids[begin : begin + most], -FOREVER)

    def chosen(self, stream: str, part: int, ids: Words) -> Combinations:
        """The new rows of a stream with these ids that belong to a part, before any join."""
        if stream in self._parts:
            ids = ids[self._parts[stream][ids - self.first[stream]] == part]
        return rows_with(self._bases[stream], ids, -FOREVER)
