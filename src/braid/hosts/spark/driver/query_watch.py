"""A thread that looks after the queries of a program: what is announced of them, and what their sites have to say."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from typing import Protocol

from braid.errors import BraidError
from braid.hosts.spark.driver.failures import SPARK_FAILURES

logger = logging.getLogger(__name__)

LOOK_SECONDS = 0.25
"""Seconds between two looks."""


class Watched(Protocol):
    """A query that wants to be looked after."""

    @property
    def name(self) -> str: ...
    def look(self) -> None: ...


class QueryWatch:
    """Looks after queries again and again until it is stopped."""

    def __init__(self, queries: Callable[[], Iterable[Watched]]) -> None:
        self._queries = queries
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._told: dict[str, str] = {}
        """The last warning about each query, as long as it holds."""

    def start(self) -> None:
        """Begin, unless it has begun."""
        if self._thread is None:
            self._stopping.clear()
            self._thread = threading.Thread(target=self._run, name="braid-watch", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        if self._thread is not None:
            self._stopping.set()
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        while not self._stopping.wait(LOOK_SECONDS):
            try:
                queries = list(self._queries())
            except BraidError as failure:
                self._warn("", f"cannot look after the queries: {failure}")
                continue
            self._told.pop("", None)
            for query in queries:
                try:
                    query.look()
                    self._told.pop(query.name, None)
                except (BraidError, *SPARK_FAILURES) as failure:
                    # A broker that is away, or a site that has failed, which check() tells: the next look tries again.
                    self._warn(query.name, f"cannot look after query '{query.name}': {failure}")
                except Exception:
                    # A mistake in Braid must not end the control of all queries here.
                    logger.exception("cannot look after query '%s'; this is a defect of Braid", query.name)

    def _warn(self, name: str, text: str) -> None:
        """Warn of what the last look did not find."""
        if self._told.get(name) != text:
            logger.warning("%s", text)
        self._told[name] = text
