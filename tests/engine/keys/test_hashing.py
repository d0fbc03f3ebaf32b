"""Words of keys: equal values have equal words. In exact types, different values also have different words."""

from datetime import date, datetime, timedelta
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from braid.engine.keys.hashing import combine_words, is_exact, key_words, order_words

EXACT = [
    pa.array([1, 2, 1], pa.int8()),
    pa.array([1, 2, 1], pa.int64()),
    pa.array([1, 2, 1], pa.uint32()),
    pa.array([True, False, True]),
    pa.array([0.5, 0.25, 0.5], pa.float32()),
    pa.array([0.5, 0.25, 0.5], pa.float64()),
    pa.array([date(2024, 1, 1), date(2024, 1, 2), date(2024, 1, 1)]),
    pa.array([datetime(2024, 1, 1), datetime(2024, 1, 2), datetime(2024, 1, 1)], pa.timestamp("us")),
    pa.array([timedelta(1), timedelta(2), timedelta(1)], pa.duration("us")),
    pa.array([Decimal("1.5"), Decimal("-2.5"), Decimal("1.5")], pa.decimal128(18, 2)),
]
HASHED = [
    pa.array(["a", "b", "a"]),
    pa.array(["a", "b", "a"], pa.large_string()),
    pa.array(["a", "b", "a"], pa.string_view()),
    pa.array([b"a", b"b", b"a"], pa.binary()),
    pa.array([b"abc", b"xyz", b"abc"], pa.binary(3)),
    pa.array([b"12345678" * 2, b"abcdefgh" * 2, b"12345678" * 2], pa.binary(16)),
    pa.array([Decimal("1.5"), Decimal("-2.5"), Decimal("1.5")], pa.decimal128(38, 2)),
    pa.array([Decimal("1.5"), Decimal("-2.5"), Decimal("1.5")], pa.decimal256(50, 2)),
]


@pytest.mark.parametrize("values", EXACT + HASHED, ids=lambda values: str(values.type))
def test_words_are_equal_exactly_if_values_are(values: pa.Array) -> None:
    first, second, third = key_words(values)
    assert first == third != second


@pytest.mark.parametrize("values", EXACT + HASHED, ids=lambda values: str(values.type))
def test_a_slice_has_the_words_of_its_values(values: pa.Array) -> None:
    assert key_words(values.slice(1)).tolist() == key_words(values)[1:].tolist()
    assert key_words(values.slice(3)).tolist() == []


@pytest.mark.parametrize("values", EXACT, ids=lambda values: str(values.type))
def test_exact_types(values: pa.Array) -> None:
    assert is_exact(values.type)


@pytest.mark.parametrize("values", HASHED, ids=lambda values: str(values.type))
def test_hashed_types(values: pa.Array) -> None:
    assert not is_exact(values.type)


def test_floats_are_equal_as_in_spark() -> None:
    other_nan = np.array([0x7FF0000000000001], np.int64).view(np.float64)[0]
    words = key_words(pa.array([0.0, -0.0, float("nan"), other_nan]))
    assert words[0] == words[1]
    assert words[2] == words[3]


def test_floats_are_ordered_as_in_spark() -> None:
    values = [float("-inf"), -1.5, -0.0, 0.0, 1e-300, 2.0, float("inf"), float("nan")]
    words = order_words(pa.array(values))
    assert words[2] == words[3], "-0.0 and 0.0 differ"
    assert np.diff(np.delete(words, 3)).min() > 0


@pytest.mark.parametrize("bits", [0, 4, 64])
def test_hashes_can_be_cut_to_fewer_bits(bits: int) -> None:
    words = combine_words([np.arange(10_000), np.arange(10_000)], bits)
    assert len(set(words.tolist())) == min(10_000, 2**bits)


def test_the_order_of_combined_words_matters() -> None:
    ones, twos = np.ones(1, np.int64), np.full(1, 2)
    assert combine_words([ones, twos]) != combine_words([twos, ones])
