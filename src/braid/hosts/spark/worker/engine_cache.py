"""Engines between micro-batches: in this process if the next one lands here, else in files that any process maps."""

from __future__ import annotations

from collections.abc import Callable

from braid.engine.engine import Engine
from braid.hosts.spark.worker.array_cache import ArrayCache, Version, new_token
from braid.model.query import Query

_hot: dict[str, Engine] = {}
"""The last engine of this process, by its token: if the next batch lands here, nothing is even mapped."""


class WorkerEngineCache:
    """The engine of one shard, for the time of one micro-batch."""

    def __init__(self, arrays: ArrayCache) -> None:
        self._arrays = arrays
        self._version: Version | None = None

    def open(self, token: str, query: Query, build: Callable[[], Engine]) -> tuple[Engine, str] | None:
        """The engine as this process has it ("hot"), or a new one on the arrays that another has left ("mapped")."""
        hot = _hot.pop(token, None)
        _hot.clear()
        if hot is not None and hot.program.query != query:
            hot = None  # Another run left it, with a lateness that has been changed since.
        if hot is not None and not hot.movable:
            return hot, "hot"
        self._version = self._arrays.claim(token) if token else None
        if self._version is None:
            return None
        if hot is not None and self._version.adopt(hot.state()):
            return hot, "hot"
        state = self._version.read()
        if state is None:
            self._version = None
            return None
        engine = build()
        engine.load(state)
        return engine, "mapped"

    def close(self, engine: Engine) -> str:
        """Leave the arrays of the engine in files, or the engine in this process if files cannot tell all of it."""
        token = self._keep_arrays(engine) if engine.movable else self._keep_process()
        if token:
            _hot[token] = engine
        return token

    def _keep_arrays(self, engine: Engine) -> str:
        version = self._version or self._arrays.create()
        state = version.write(engine.state()) if version is not None else None
        if version is None or state is None:
            return ""
        engine.load(state)
        return version.token

    def _keep_process(self) -> str:
        """Only this process can go on from here; others rebuild."""
        return "" if self._arrays.closed else new_token()


def forget_engines() -> None:
    """Have the next batch of this process find no engine of the last one."""
    _hot.clear()
