"""Segments survive encoding and decoding, and damage is detected."""

import pyarrow as pa
import pytest

from braid.engine.segment import Segment
from braid.errors import StreamError

ROWS = pa.RecordBatch.from_pydict({"k": [1, None, 3], "t": ["a", "b", None], "l": [[1], [], None]})


def test_a_segment_survives_a_round_trip() -> None:
    segment = Segment("s", ROWS, 5, 9, 2)
    assert Segment.from_bytes(segment.to_bytes()) == segment
    empty = Segment("s", ROWS.slice(0, 0), -7)
    assert Segment.from_bytes(empty.to_bytes()) == empty


def test_any_changed_byte_is_detected() -> None:
    data = Segment("s", ROWS, 5, 9).to_bytes()
    for position in range(len(data)):
        damaged = data[:position] + bytes([data[position] ^ 0x40]) + data[position + 1 :]
        with pytest.raises(StreamError, match=r"damaged|should be a segment"):
            Segment.from_bytes(damaged)


@pytest.mark.parametrize("length", [0, 3, 12, 100])
def test_a_truncated_segment_is_detected(length: int) -> None:
    with pytest.raises(StreamError):
        Segment.from_bytes(Segment("s", ROWS).to_bytes()[:length])
