"""Engines between micro-batches: kept in this worker process, and in files that any process of the host can map."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from braid.engine.engine import Engine
from braid.hosts.spark.shared.cache_space import CACHE, CacheSpace, make_private
from braid.hosts.spark.worker.array_cache import ArrayCache, Version, new_token
from braid.model.query import Query

_hot: dict[str, Engine] = {}
"""The last engine of this process, by its token. If the next batch of its shard runs here, no file is mapped."""


class WorkerEngineCache:
    """The engine cache of one shard in one micro-batch."""

    def __init__(self, arrays: ArrayCache) -> None:
        self._arrays = arrays
        self._version: Version | None = None

    def open(self, token: str, query: Query, build: Callable[[], Engine]) -> tuple[Engine, str] | None:
        """The engine that this process has ("hot"), or a new one on the arrays in files ("mapped")."""
        hot = _hot.pop(token, None)
        _hot.clear()
        if hot is not None and hot.program.query != query:
            hot = None  # An earlier run has left it, and the lateness of a stream has changed since.
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
        """Write the arrays of the engine to files, and keep the engine in this process too.

        An engine that is not movable is kept in this process only; any other process has to rebuild it.
        """
        if engine.movable:
            token = self._write_arrays(engine)
        elif self._arrays.closed:
            token = ""
        else:
            token = new_token()
        if token:
            _hot[token] = engine
        return token

    def _write_arrays(self, engine: Engine) -> str:
        """Move the arrays of an engine to files; returns their token, empty if there is no room."""
        version = self._version or self._arrays.create()
        state = version.write(engine.state()) if version is not None else None
        if version is None or state is None:
            return ""
        engine.load(state)
        return version.token


def forget_engines() -> None:
    """Drop the engine that this process keeps."""
    _hot.clear()


def open_engine_cache(directory: str, limit: int | None) -> WorkerEngineCache:
    """The cache of a query whose directory on this host is `directory`, below that of its session."""
    query_directory = Path(directory)
    session_directory = query_directory.parent
    with suppress(OSError):  # The task runs without a cache then.
        make_private(session_directory)
    return WorkerEngineCache(ArrayCache(query_directory / CACHE, CacheSpace(session_directory.parent, limit)))
