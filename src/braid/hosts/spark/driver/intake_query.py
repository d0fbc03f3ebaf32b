"""The intake of a stream at its site, as one streaming query without state: rows of the stream in, a channel out."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from braid.channels.channels import Channels
from braid.hosts.site_teller import SiteTeller
from braid.hosts.spark.driver.progress import progress_of
from braid.hosts.spark.driver.publisher import IntakePublisher
from braid.hosts.spark.driver.site_part import SitePart, SiteSettings
from braid.runtime.report import ShardReport
from braid.runtime.sites.site_spec import SiteSpec


class IntakeQuery(SitePart):
    """One stream where it starts, for one query."""

    def __init__(
        self,
        spark: SparkSession,
        spec: SiteSpec,
        stream: str,
        dataframe: DataFrame,
        channels: Channels,
        settings: SiteSettings,
        teller: SiteTeller | None = None,
    ) -> None:
        super().__init__(spark, spec, settings, f", {stream}")
        self._dataframe = dataframe
        self._publisher = self._intake = IntakePublisher(spec, stream, channels, self._receive)
        self._teller = teller
        self._lock = threading.Lock()
        self._progress: dict[str, dict[str, Any]] = {}

    def start(self) -> None:
        self.run(lambda: self._intake.rows(self._dataframe), self._intake)

    def _receive(self, batch: int, reports: Sequence[ShardReport]) -> None:
        """Spark calls it from a thread of its own."""
        for alias in self.spec.work.own:
            node = self.spec.nodes[alias]
            own = [report for report in reports if alias in report.progress]
            if own:
                with self._lock:
                    self._progress[alias] = progress_of(batch, own, node, None, {})
                if self._teller is not None:
                    self._teller.receive(alias, own)

    def progress(self) -> dict[str, dict[str, Any]]:
        """The figures of the last micro-batch, by alias."""
        with self._lock:
            return dict(self._progress)
