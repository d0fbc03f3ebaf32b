"""Engines between two steps of a shard: a cache that saves rebuilding them from the segments in the store."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from braid.engine.engine import Engine
from braid.model.query import Query


class EngineCache(Protocol):
    """Where the host leaves an engine between two batches, if it has such a place.

    The store is the truth. A token that the cache gives out is written to the store with the changes of its step, so
    that an engine which belongs to a step that was never committed has a token nobody asks for.
    """

    def open(self, token: str, query: Query, build: Callable[[], Engine]) -> tuple[Engine, str] | None:
        """The engine of a query that was left under a token, and how it was found; None if it must be rebuilt.

        `build` makes an engine without rows for the query and the plan that are wanted. Without a token, nothing was
        left.
        """

    def close(self, engine: Engine) -> str:
        """Leave an engine for the next step; returns its token, empty if it could not be kept."""
