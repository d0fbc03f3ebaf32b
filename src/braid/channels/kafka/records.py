"""Records of a partition."""

from __future__ import annotations

from typing import NamedTuple


class Record(NamedTuple):
    """A record of a partition; the value of a tombstone is None."""

    offset: int
    key: bytes
    value: bytes | None
    headers: dict[str, bytes]


class NewRecord(NamedTuple):
    """A record to append."""

    value: bytes | None
    key: bytes | None = None
    headers: dict[str, bytes] | None = None
