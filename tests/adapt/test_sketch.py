"""Key sketches: close to the truth from a small sample of the rows, and mergeable."""

import numpy as np
import pytest

from braid.adapt.sketch import KeySketch, estimate_share
from braid.errors import ModelError


def sketch_of(*parts: np.ndarray) -> KeySketch:
    sketch = KeySketch()
    for part in parts:
        sketch.feed(part)
    return sketch


@pytest.mark.parametrize("domain", [1, 6, 100, 3_000, 500_000])
@pytest.mark.parametrize("rows", [200, 50_000])
def test_distinct_keys_are_counted(domain: int, rows: int) -> None:
    words = np.random.default_rng(1).integers(0, domain, rows) * 7
    distinct = sketch_of(*np.array_split(words, 4)).distinct
    assert distinct == pytest.approx(len(np.unique(words)), rel=0.35)


def test_keys_that_differ_in_high_bits_are_counted() -> None:
    """Keys that differ only in high bits, like floating-point numbers."""
    words = np.arange(100_000).astype(np.float64).view(np.int64)
    assert sketch_of(words).distinct == pytest.approx(100_000, rel=0.35)


def test_frequent_keys_are_found() -> None:
    generator = np.random.default_rng(2)
    rest = generator.integers(1_000, 500_000, 40_000)
    words = generator.permutation(np.concatenate([rest, np.full(8_000, 17), np.full(2_000, 23)]))
    frequent = sketch_of(*np.array_split(words, 20)).frequent(0.02)
    assert list(frequent) == [17, 23]
    assert frequent[17] == pytest.approx(0.16, abs=0.04)
    assert frequent[23] == pytest.approx(0.04, abs=0.03)


def test_sketches_can_be_merged_and_serialized() -> None:
    words = np.random.default_rng(3).integers(0, 9_000, 20_000)
    parts = [sketch_of(part) for part in np.array_split(words, 5)]
    merged = KeySketch()
    for part in parts:
        merged.merge(KeySketch.from_bytes(part.to_bytes()))
    assert merged.distinct == pytest.approx(8_000, rel=0.35)
    again = KeySketch.from_bytes(merged.to_bytes())
    assert (again.distinct, again.frequent(0)) == (merged.distinct, merged.frequent(0))
    assert len(merged.to_bytes()) < 8_000


def test_a_sketch_without_rows_is_unknown() -> None:
    empty = sketch_of(np.empty(0, np.int64))
    assert (empty.distinct, empty.frequent()) == (None, {})
    assert estimate_share(empty, empty) is None
    assert KeySketch.from_bytes(empty.to_bytes()).distinct is None


@pytest.mark.parametrize("data", [b"", b"garbage", b"\x00\x05\x00\x00\x00abcde", KeySketch().to_bytes()[:-1]])
def test_invalid_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(ModelError, match=f"these {len(data)} bytes are not a sketch of keys"):
        KeySketch.from_bytes(data)


def test_the_share_of_equal_keys_is_estimated() -> None:
    generator = np.random.default_rng(4)
    uniform = sketch_of(generator.integers(0, 1_000, 30_000)), sketch_of(generator.integers(0, 4_000, 30_000))
    assert estimate_share(*uniform) == pytest.approx(1 / 4_000, rel=0.5)
    words = np.where(generator.random(30_000) < 0.5, 7, generator.integers(0, 10**6, 30_000))
    skewed = sketch_of(*np.array_split(words, 10))
    assert estimate_share(skewed, skewed) == pytest.approx(0.25, rel=0.2)


def test_a_key_that_is_frequent_in_one_stream_only_has_matches() -> None:
    """Almost all bids are of a few bidders, each of whom is one row of the other stream."""
    generator = np.random.default_rng(5)
    bids = sketch_of(*np.array_split(generator.permutation(np.repeat(np.arange(20) * 100, 2_000)), 10))
    persons = sketch_of(np.arange(2_000))
    assert len(bids.frequent()) == 20
    assert estimate_share(bids, persons) == pytest.approx(1 / 2_000, rel=0.2)
