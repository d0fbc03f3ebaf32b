"""Records of a partition of a Kafka topic."""

from __future__ import annotations

from typing import NamedTuple


class Record(NamedTuple):
    """A record that was read. The value of a tombstone, which deletes its key, is None."""

    offset: int
    key: bytes
    value: bytes | None
    headers: dict[str, bytes]


class NewRecord(NamedTuple):
    """A record to append; a value of None makes it a tombstone."""

    value: bytes | None
    key: bytes | None = None
    headers: dict[str, bytes] | None = None
