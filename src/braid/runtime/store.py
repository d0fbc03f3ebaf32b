"""Where a shard keeps what must survive a crash."""

from __future__ import annotations

from typing import Protocol

Key = tuple[int, int]
"""The number of a source and the number of one of its segments. Negative source numbers are for other contents."""


class Store(Protocol):
    """A map of keys to bytes. The host commits all changes of a batch together, or none of them."""

    def get(self, key: Key) -> bytes | None: ...
    def put(self, key: Key, value: bytes) -> None: ...
    def remove(self, key: Key) -> None: ...
