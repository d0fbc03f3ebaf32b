"""A part of a site's work that runs as one streaming query of Spark's."""

from __future__ import annotations

import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from braid.adapt.controller import Policy
from braid.hosts.spark.driver.checkpoint_log import last_batch
from braid.hosts.spark.driver.checkpoint_removal import begin_checkpoint
from braid.hosts.spark.driver.failures import SPARK_FAILURES, error_for
from braid.hosts.spark.driver.publisher import Publisher
from braid.runtime.sites.site_spec import SiteSpec

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class SiteSettings:
    """How the sites of a network run: where their checkpoints and caches are, and how much they take at once.

    With `adapt`, plans change by themselves; `controller` says who decides that, "central" or "distributed".
    """

    checkpoints: Path
    cache: Path
    cache_limit: int | None = None
    most_bytes: int = 64 << 20
    trigger: str | None = None
    adapt: bool | Policy = True
    controller: str = "central"


def checkpoints_of(spec: SiteSpec, settings: SiteSettings) -> list[Path]:
    """Where the parts of a site have their checkpoints: one for each stream that enters there, or one for its joins."""
    streams = dict.fromkeys(spec.query.source(alias).declared.name for alias in spec.work.own)
    parts = [f", {stream}" for stream in streams] or [""]
    return [settings.checkpoints / spec.site / f"{spec.deployment}{part}" for part in parts]


class SitePart(ABC):
    """Runs a DataFrame and publishes what it gives, from its checkpoint on."""

    def __init__(self, spark: SparkSession, spec: SiteSpec, settings: SiteSettings, part: str = "") -> None:
        self._spark = spark
        self.spec = spec
        self._settings = settings
        self.checkpoint = settings.checkpoints / spec.site / f"{spec.deployment}{part}"
        self._name = f"{spec.deployment}{part} at {spec.site}"
        self._publisher: Publisher | None = None
        self._running: StreamingQuery | None = None
        self._awaited = threading.Lock()
        """Held while somebody waits for the part: Spark would wait for ever for a query that is stopped meanwhile."""

    @abstractmethod
    def start(self) -> None:
        """Run from the last checkpoint on."""

    def run(self, output: Callable[[], DataFrame], publisher: Publisher) -> None:
        """Run a DataFrame, which is made last: making it may start processes."""
        self._publisher = publisher
        begin_checkpoint(self.checkpoint)
        publisher.check_checkpoint(last_batch(self._spark, f"{self.checkpoint}/offsets"))
        writer = output().writeStream.foreachBatch(publisher).queryName(self._name)
        if self._settings.trigger is not None:
            writer = writer.trigger(processingTime=self._settings.trigger)
        self._running = writer.option("checkpointLocation", str(self.checkpoint)).start()

    @property
    def last_progress(self) -> Any:
        return None if self._running is None else self._running.lastProgress

    def stop(self) -> None:
        """Stop at once; a started step is done again at the next start. If Java has ended, there is nothing to do."""
        with self._awaited:
            if self._running is not None:
                try:
                    self._running.stop()
                except SPARK_FAILURES as failure:
                    logger.debug("%s was gone already: %s", self._name, failure)

    def check(self) -> None:
        """Raise the error that the site failed with, if it failed."""
        failure = None if self._running is None else self._running.exception()
        if failure is not None:
            if self._publisher is not None and self._publisher.failure is not None:
                raise self._publisher.failure
            raise error_for(f"query '{self.spec.deployment}' failed at site '{self.spec.site}'", failure) from failure

    def process_available(self) -> None:
        """Wait until everything that is there has been processed, unless the part has been stopped."""
        with self._awaited:
            if self._running is not None and (self._running.isActive or self._running.exception() is not None):
                try:
                    self._running.processAllAvailable()
                except SPARK_FAILURES:
                    self.check()
                    raise
