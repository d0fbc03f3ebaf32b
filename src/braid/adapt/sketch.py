"""What the join keys of a stream look like: how many distinct ones, and which are frequent, in a few hundred bytes.

The sketches are Apache DataSketches'. They take one value at a time, so that not every row can be shown to them. How
many values are *distinct* cannot be told from a sample of rows, but from a sample of values: of many rows only those
are shown whose key hashes to one in 2, 4, 8, ..; each of these levels has a sketch of its own. Which values are
*frequent* is told by a sample of rows; where values are few, a sample of values may miss them, but that one does not.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from datasketches import PyLongsSerDe, frequent_items_error_type, frequent_items_sketch, hll_sketch, hll_union
from numpy.typing import NDArray

from braid.errors import ModelError

Words = NDArray[np.int64]

PRECISION = 10
"""Distinct counts are kept in 2 to this many registers: within some 3%."""

FREQUENT = 7
"""2 to this many counters for frequent values."""

MOST_SHOWN = 256
"""About so many values of a batch are shown to each sketch."""

MOST_SAMPLED = 64
"""So many rows of a batch are shown to the sketch of frequent values."""

ROWS = 255
"""Stands for the sample of rows where levels are numbered."""

FEWEST_SHOWN = 16
"""A sample of fewer distinct values than this says little about how many there are; the sample of rows says more."""

FEWEST_SEEN = 5
"""A value must have come so often in the sample of rows to be called frequent."""

_MIX = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(0xD6E8FEB86659FD93)


class KeySketch:
    """The keys of one stream in one attribute class, as 64-bit words; sketches of several shards can be merged."""

    def __init__(self) -> None:
        self._distinct: dict[int, Any] = {}
        self._frequent = frequent_items_sketch(FREQUENT)
        self._sampled = 0

    def feed(self, words: Words) -> None:
        """Take the keys of some rows in."""
        if not len(words):
            return
        level = (len(words) // MOST_SHOWN).bit_length()
        shown = words
        if level:
            mixed = words.view(np.uint64) * _MIX
            mixed += _SHIFT
            shown = words[np.flatnonzero(mixed < np.uint64(1 << (64 - level)))]
        self._show(level, shown.tolist())
        count = min(len(words), MOST_SAMPLED)
        sampled = words[np.arange(count) * len(words) // count].tolist()
        self._show(ROWS, sampled)
        self._sampled += count
        # Weights keep batches of different sizes comparable when they are merged.
        weight = max(1, round(len(words) / count))
        for word in sampled:
            self._frequent.update(word, weight)

    def _show(self, level: int, words: list[int]) -> None:
        sketch = hll_sketch(PRECISION)
        for word in words:
            sketch.update(word)
        self._union(level).update(sketch)

    def _union(self, level: int) -> Any:
        if level not in self._distinct:
            self._distinct[level] = hll_union(PRECISION)
        return self._distinct[level]

    def merge(self, other: KeySketch) -> None:
        """Take in what another has seen."""
        for level, union in other._distinct.items():
            self._union(level).update(union.get_result())
        self._frequent.merge(other._frequent)
        self._sampled += other._sampled

    @property
    def distinct(self) -> float | None:
        """How many different keys there have been; None before the first."""
        counts: dict[int, float] = {level: union.get_estimate() for level, union in self._distinct.items()}
        if not counts:
            return None
        scaled = (count * (1 << level) for level, count in counts.items() if level != ROWS and count > FEWEST_SHOWN)
        return max(counts.get(ROWS, 0.0), *scaled, 0.0)

    def frequent(self, share: float = 0.01) -> dict[int, float]:
        """The keys that make up at least so much of all rows, with their part of them, the most frequent first."""
        total = self._frequent.total_weight
        if not total:
            return {}
        share = max(share, FEWEST_SEEN / self._sampled)
        items = self._frequent.get_frequent_items(frequent_items_error_type.NO_FALSE_NEGATIVES, int(share * total))
        found = {int(item[0]): item[1] / total for item in items if item[1] >= share * total}
        return dict(sorted(found.items(), key=lambda entry: (-entry[1], entry[0])))

    def to_bytes(self) -> bytes:
        """Parts, each after its level and length: the distinct counts, how many rows were sampled, and of these the
        frequent values."""
        parts = [(level, union.get_result().serialize_compact()) for level, union in sorted(self._distinct.items())]
        parts.append((ROWS, self._sampled.to_bytes(8, "little") + self._frequent.serialize(PyLongsSerDe())))
        return b"".join(bytes([level]) + len(part).to_bytes(4, "little") + part for level, part in parts)

    @classmethod
    def from_bytes(cls, data: bytes) -> KeySketch:
        """The sketch that was written; anything else is a `ModelError`."""
        parts, place = [], 0
        while place + 5 <= len(data):
            end = place + 5 + int.from_bytes(data[place + 1 : place + 5], "little")
            parts.append((data[place], data[place + 5 : end]))
            place = end
        made = cls()
        try:
            if place != len(data) or not parts:
                raise ValueError("parts are missing")
            for level, part in parts[:-1]:
                made._union(level).update(hll_sketch.deserialize(part))
            made._sampled = int.from_bytes(parts[-1][1][:8], "little")
            made._frequent = frequent_items_sketch.deserialize(parts[-1][1][8:], PyLongsSerDe())
        except (ValueError, RuntimeError, IndexError, MemoryError) as problem:
            raise ModelError(f"{len(data)} bytes that should be a sketch of keys are none: {problem}") from problem
        return made


def estimate_share(left: KeySketch, right: KeySketch) -> float | None:
    """The share of pairs of rows whose keys are equal, if the rarer of both sets of keys lie within the other.

    Frequent keys are matched one by one, the others as if all were equally frequent. None if nothing is known.
    """
    if left.distinct is None or right.distinct is None:
        return None
    ours, theirs = left.frequent(), right.frequent()
    matched = sum(share * theirs[key] for key, share in ours.items() if key in theirs)
    rest = max(0.0, 1 - sum(ours.values())) * max(0.0, 1 - sum(theirs.values()))
    domain = max(1.0, left.distinct - len(ours), right.distinct - len(theirs))
    return min(1.0, matched + rest / domain)
