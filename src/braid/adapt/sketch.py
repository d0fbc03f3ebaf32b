"""Sketches of the join keys of a stream: how many are distinct, and which are frequent, in a few hundred bytes.

The sketches are Apache DataSketches. They take one value at a time, which is too slow for every row, so they get
samples. The number of *distinct* values cannot be estimated from a sample of rows, but from a sample of values: of a
large batch only the keys in a half, a quarter, an eighth, .. of all hash values are taken. Each of these levels has its
own sketch. *Frequent* values are counted on a sample of rows. If there are few distinct values, the sample of values
may miss them all; then the sample of rows gives the number of distinct values too.

A larger sample of rows is counted by hash class, and in order of their keys if keys have one: how the rows of a stream
are spread over the keys, whatever parts the keys are divided into.

Sketches know keys as 64-bit words. Where a word does not tell the key, as for texts, a sketch can also keep the keys
that it has sampled, as long as they are frequent.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
from datasketches import PyLongsSerDe, frequent_items_error_type, frequent_items_sketch, hll_sketch, hll_union
from numpy.typing import NDArray

from braid.adapt.key_values import keys_of, numbers_of, tells_keys
from braid.adapt.quantiles import Quantiles
from braid.errors import ModelError
from braid.model.key_json import keys_from_json, keys_to_json
from braid.model.partitions import hash_classes

Words = NDArray[np.int64]

PRECISION = 10
"""Distinct counts have 2 ** PRECISION registers, for an error of about 3%."""

FREQUENT = 7
"""Frequent values have 2 ** FREQUENT counters."""

MOST_SHOWN = 256
"""About the most values of a batch that the sketch of its level takes."""

MOST_SAMPLED = 64
"""The most rows of a batch that the sketch of frequent values takes."""

ROWS = 255
"""The level number that stands for the sample of rows."""

FEWEST_SHOWN = 16
"""A level with fewer distinct values is not used for the estimate; the sample of rows is more reliable."""

FEWEST_SEEN = 5
"""The least occurrences in the sample of rows that make a value frequent."""

MOST_SPREAD = 1_024
"""The most rows of a batch that are counted by hash class and in order."""

HASH_CLASSES = 64
"""The number of hash classes."""

CLASSES, ORDERED, NAMED = 254, 253, 252
"""The level numbers that stand for the rows by hash class, for the rows in order and for the keys of words."""

MOST_NAMED = 256
"""The most keys that are kept beside their words: more than can be frequent."""

LONGEST_NAMED = 200
"""Longer texts are not kept."""

_MIX = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(0xD6E8FEB86659FD93)


class KeySketch:
    """The keys of one stream in one attribute class, as 64-bit words; sketches of several shards can be merged."""

    def __init__(self) -> None:
        self._distinct: dict[int, Any] = {}
        self._frequent = frequent_items_sketch(FREQUENT)
        self._sampled = 0
        self.by_class: NDArray[np.float64] = np.zeros(HASH_CLASSES)
        """About how many rows have a key in each hash class."""
        self.spread_rows = 0
        """The rows that were counted for `by_class`, and for `ordered`."""
        self.ordered = Quantiles()
        """The keys in order, if their words have an order."""
        self._keys: dict[int, Any] = {}
        """The keys of sampled words that do not tell them."""

    def feed(self, words: Words, kind: pa.DataType | None = None, keys: pa.Array | None = None) -> None:
        """Add the keys of some rows, as words; `kind` is their type.

        With the `keys` themselves, the sketch can tell those that are frequent, also if words do not tell keys.
        """
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
        positions = np.arange(count) * len(words) // count
        sampled = words[positions].tolist()
        if keys is not None and not tells_keys(keys.type) and not pa.types.is_nested(keys.type):
            values = keys.take(pa.array(positions)).to_pylist()
            self._keys |= {word: key for word, key in zip(sampled, values, strict=True) if not _is_long(key)}
        self._show(ROWS, sampled)
        self._sampled += count
        # Each sampled row stands for several: the weights keep batches of different sizes comparable.
        weight = max(1, round(len(words) / count))
        for word in sampled:
            self._frequent.update(word, weight)
        self._spread(words, kind)

    def _spread(self, words: Words, kind: pa.DataType | None) -> None:
        count = min(len(words), MOST_SPREAD)
        sampled = words[np.arange(count) * len(words) // count]
        self.spread_rows += count
        classes = hash_classes(sampled, HASH_CLASSES)
        self.by_class += np.bincount(classes, minlength=HASH_CLASSES) * (len(words) / count)
        if kind is not None and tells_keys(kind):
            numbers = numbers_of(sampled, kind)
            self.ordered.add(numbers[np.isfinite(numbers)], float(len(words)))

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
        """Add the keys of another sketch."""
        for level, union in other._distinct.items():
            self._union(level).update(union.get_result())
        self._frequent.merge(other._frequent)
        self._sampled += other._sampled
        self.by_class += other.by_class
        self.spread_rows += other.spread_rows
        self.ordered.merge(other.ordered)
        self._keys |= other._keys
        self._keep_frequent()

    def _keep_frequent(self) -> None:
        """Forget keys that are not frequent if there are too many of them."""
        if len(self._keys) > MOST_NAMED:
            frequent = self.frequent(0.0)
            self._keys = {word: self._keys[word] for word in list(frequent)[:MOST_NAMED] if word in self._keys}

    def keys(self, kind: pa.DataType, words: Iterable[int]) -> dict[int, Any]:
        """The keys of some words, as far as they are known."""
        if not tells_keys(kind):
            return {word: self._keys[word] for word in words if word in self._keys}
        words = list(words)
        return dict(zip(words, keys_of(words, kind), strict=True))

    @property
    def sampled(self) -> int:
        """The rows that were looked at for frequent keys."""
        return self._sampled

    @property
    def distinct(self) -> float | None:
        """The estimated number of distinct keys; None before the first key."""
        counts: dict[int, float] = {level: union.get_estimate() for level, union in self._distinct.items()}
        if not counts:
            return None
        scaled = (count * (1 << level) for level, count in counts.items() if level != ROWS and count > FEWEST_SHOWN)
        return max(counts.get(ROWS, 0.0), *scaled, 0.0)

    def frequent(self, share: float = 0.01) -> dict[int, float]:
        """The keys with at least this share of all rows, and their shares, the most frequent first."""
        total = self._frequent.total_weight
        if not total:
            return {}
        share = max(share, FEWEST_SEEN / self._sampled)
        items = self._frequent.get_frequent_items(frequent_items_error_type.NO_FALSE_NEGATIVES, int(share * total))
        shares = {int(key): weight / total for key, weight, *_ in items if weight >= share * total}
        return dict(sorted(shares.items(), key=lambda entry: (-entry[1], entry[0])))

    def to_bytes(self) -> bytes:
        """The sketch as bytes: sections, each with its level (1 byte) and length (4 bytes) before it.

        There is a section for the distinct count of each level, one for the rows by hash class, one for the rows in
        order and one for keys that words do not tell. The last section has the number of rows sampled and the sketch of
        frequent values.
        """
        sections = [(level, union.get_result().serialize_compact()) for level, union in sorted(self._distinct.items())]
        sections.append((CLASSES, np.append(self.by_class, self.spread_rows).astype("<f4").tobytes()))
        ordered = np.concatenate([[self.ordered.weight], self.ordered.numbers])
        sections.append((ORDERED, ordered.astype("<f8").tobytes()))
        if self._keys:
            named = {"words": keys_to_json(list(self._keys)), "keys": keys_to_json(list(self._keys.values()))}
            sections.append((NAMED, json.dumps(named).encode()))
        sections.append((ROWS, self._sampled.to_bytes(8, "little") + self._frequent.serialize(PyLongsSerDe())))
        return b"".join(bytes([level]) + len(content).to_bytes(4, "little") + content for level, content in sections)

    @classmethod
    def from_bytes(cls, data: bytes) -> KeySketch:
        """The sketch that `to_bytes` wrote. Raises a `ModelError` for anything else."""
        sections, start = [], 0
        while start + 5 <= len(data):
            end = start + 5 + int.from_bytes(data[start + 1 : start + 5], "little")
            sections.append((data[start], data[start + 5 : end]))
            start = end
        sketch = cls()
        try:
            if start != len(data) or not sections:
                raise ValueError("sections are missing")
            for level, content in sections[:-1]:
                if level == CLASSES:
                    *by_class, spread_rows = np.frombuffer(content, "<f4", HASH_CLASSES + 1).tolist()
                    sketch.by_class, sketch.spread_rows = np.array(by_class), int(spread_rows)
                elif level == ORDERED:
                    weight, *numbers = np.frombuffer(content, "<f8").tolist()
                    sketch.ordered = Quantiles(np.array(numbers), weight)
                elif level == NAMED:
                    named = json.loads(content)
                    words, keys = keys_from_json(named["words"]), keys_from_json(named["keys"])
                    sketch._keys = dict(zip(words, keys, strict=True))
                else:
                    sketch._union(level).update(hll_sketch.deserialize(content))
            last = sections[-1][1]
            sketch._sampled = int.from_bytes(last[:8], "little")
            sketch._frequent = frequent_items_sketch.deserialize(last[8:], PyLongsSerDe())
        except (ValueError, RuntimeError, IndexError, MemoryError, KeyError, TypeError, pa.ArrowException) as problem:
            raise ModelError(f"these {len(data)} bytes are not a sketch of keys: {problem}") from problem
        return sketch


def _is_long(key: Any) -> bool:
    return isinstance(key, str | bytes) and len(key) > LONGEST_NAMED


def estimate_share(left: KeySketch, right: KeySketch) -> float | None:
    """The estimated share of pairs of rows with equal keys, if the smaller set of keys is a subset of the larger.

    Keys that are frequent in both streams are matched one by one, and all others as if they were equally frequent. So
    a frequent key of one stream is matched by any other key of the other stream. None without any keys.
    """
    if left.distinct is None or right.distinct is None:
        return None
    ours, theirs = left.frequent(), right.frequent()
    both = ours.keys() & theirs.keys()
    matched = sum(ours[key] * theirs[key] for key in both)
    rest = max(0.0, 1 - sum(ours[key] for key in both)) * max(0.0, 1 - sum(theirs[key] for key in both))
    domain = max(1.0, left.distinct - len(both), right.distinct - len(both))
    return min(1.0, matched + rest / domain)


def largest_share(left: KeySketch, right: KeySketch) -> float:
    """The most that the share of pairs of rows with equal keys may be: equal keys are in the same hash class."""
    rows = left.by_class.sum() * right.by_class.sum()
    return min(1.0, float(left.by_class @ right.by_class / rows)) if rows else 1.0
