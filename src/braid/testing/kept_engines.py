"""An engine cache in memory that loses engines at random, as a host does that starts again."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from braid.engine.engine import Engine
from braid.model.query import Query


class KeptEngines:
    """An `EngineCache` for all shards of a query. It loses an engine with the probability `lost`."""

    def __init__(self, seed: int, lost: float = 0.3) -> None:
        self._generator = np.random.default_rng(seed)
        self._lost = lost
        self._engines: dict[str, Engine] = {}
        self._closed = 0

    def open(self, token: str, query: Query, build: Callable[[], Engine]) -> tuple[Engine, str] | None:
        """The engine of the last step, if that was committed; an attempt that failed has used its engine up."""
        engine = self._engines.pop(token, None)
        return None if engine is None or self._generator.random() < self._lost else (engine, "hot")

    def close(self, engine: Engine) -> str:
        self._closed += 1
        token = str(self._closed)
        self._engines[token] = engine
        return token
