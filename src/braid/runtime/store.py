"""Where a shard keeps what must survive a crash."""

from __future__ import annotations

from typing import Protocol

Key = tuple[int, int]
"""The number of a source and the number of one of its segments."""


class Store(Protocol):
    """A map of keys to bytes. What is written takes effect when the host commits the batch, all of it or nothing."""

    def get(self, key: Key) -> bytes | None: ...
    def put(self, key: Key, value: bytes) -> None: ...
    def remove(self, key: Key) -> None: ...
