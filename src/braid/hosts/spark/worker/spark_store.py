"""The store of a shard on Spark: a map state in Spark's state store."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Protocol

from braid.runtime.store import Key


class MapState(Protocol):
    """The methods of Spark's map state that `SparkStore` uses."""

    def getValue(self, key: tuple[Any, ...]) -> Any: ...  # noqa: N802
    def updateValue(self, key: tuple[Any, ...], value: tuple[Any, ...]) -> None: ...  # noqa: N802
    def removeKey(self, key: tuple[Any, ...]) -> None: ...  # noqa: N802


class SparkStore:
    """A map state as a `Store`. It adds up the seconds spent waiting for Spark."""

    def __init__(self, state: MapState) -> None:
        self._state = state
        self.seconds = 0.0

    def get(self, key: Key) -> bytes | None:
        value = self._timed(self._state.getValue, key)
        return None if value is None else bytes(value[0])

    def put(self, key: Key, value: bytes) -> None:
        self._timed(self._state.updateValue, key, (value,))

    def remove(self, key: Key) -> None:
        self._timed(self._state.removeKey, key)

    def _timed(self, call: Callable[..., Any], *arguments: Any) -> Any:
        started = time.perf_counter()
        try:
            return call(*arguments)
        finally:
            self.seconds += time.perf_counter() - started
