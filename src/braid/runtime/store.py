"""Where a shard keeps what must survive a crash."""

from __future__ import annotations

from typing import Protocol

Key = tuple[int, int]
"""The number of a source and the number of one of its segments.

The manifest and waiting results have negative source numbers.
"""


class Store(Protocol):
    """A map of keys to bytes. The host commits all changes of a batch together, or none of them."""

    def get(self, key: Key) -> bytes | None: ...
    def put(self, key: Key, value: bytes) -> None: ...
    def remove(self, key: Key) -> None: ...


class DictionaryStore:
    """A store in memory, for simulations and tests. What was not committed is gone after a rollback."""

    def __init__(self) -> None:
        self.committed: dict[Key, bytes] = {}
        self._current: dict[Key, bytes] = {}

    def commit(self) -> None:
        self.committed = dict(self._current)

    def rollback(self) -> None:
        self._current = dict(self.committed)

    def get(self, key: Key) -> bytes | None:
        return self._current.get(key)

    def put(self, key: Key, value: bytes) -> None:
        self._current[key] = value

    def remove(self, key: Key) -> None:
        del self._current[key]


PREFIX = 1_000
"""More than a fragment has sources: what keys of one prefix are away from those of the next."""


class PrefixedStore:
    """A part of a store that looks like a whole one, for one of several shards that share it."""

    def __init__(self, store: Store, prefix: int) -> None:
        self._store = store
        self._offset = PREFIX * prefix

    def get(self, key: Key) -> bytes | None:
        return self._store.get(self._key(key))

    def put(self, key: Key, value: bytes) -> None:
        self._store.put(self._key(key), value)

    def remove(self, key: Key) -> None:
        self._store.remove(self._key(key))

    def _key(self, key: Key) -> Key:
        return key[0] + self._offset, key[1]
