"""Engines between two steps of a shard: a cache that saves rebuilding them from the segments in the store."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from braid.engine.engine import Engine
from braid.model.query import Query


class EngineCache(Protocol):
    """Keeps the engine of a shard from one batch to the next, if the host has a place for it.

    The store decides which engine is valid. `close` returns a new token for each engine, and the shard writes that
    token to its store together with the changes of the step. If the step is never committed, neither is the token, so
    no shard will ever ask for the engine that took part in it.
    """

    def open(self, token: str, query: Query, build: Callable[[], Engine]) -> tuple[Engine, str] | None:
        """The engine that was kept under `token`, and a word for where it was found; None if it must be rebuilt.

        `build` makes an engine without rows for the query and the plan wanted. An empty token means that no engine was
        kept.
        """

    def close(self, engine: Engine) -> str:
        """Keep an engine for the next step; returns its token, empty if it cannot be kept."""
