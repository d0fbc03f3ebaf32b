"""The joins of one site in a deployment, as one streaming query: channels in, channels out."""

from __future__ import annotations

import json

from pyspark.sql import DataFrame, SparkSession

from braid.channels.channels import Channels
from braid.hosts.change_log import ChangeLog
from braid.hosts.site_teller import SiteTeller
from braid.hosts.spark.driver import cluster
from braid.hosts.spark.driver.channel_frames import read_channels
from braid.hosts.spark.driver.control import Control
from braid.hosts.spark.driver.pipeline import control_messages
from braid.hosts.spark.driver.publisher import SitePublisher
from braid.hosts.spark.driver.site_part import SitePart, SiteSettings
from braid.hosts.spark.driver.site_reports import SiteReports
from braid.hosts.spark.shared.packed_rows import SITE_PACKED_DDL
from braid.hosts.spark.worker.operator import SITE_OUTPUT_DDL, SiteOperator
from braid.hosts.spark.worker.site_packer import ChannelPacker
from braid.runtime.migration.readiness import Readiness
from braid.runtime.sites.site_spec import SiteSpec


class SiteQuery(SitePart):
    """One site at work for one generation of a query."""

    def __init__(
        self,
        spark: SparkSession,
        spec: SiteSpec,
        channels: Channels,
        changes: ChangeLog,
        settings: SiteSettings,
        teller: SiteTeller | None = None,
    ) -> None:
        labels = cluster.shard_labels(len(spec.shard_keys), cluster.partitions(spark))
        super().__init__(spark, spec.spread(spec.shards, labels), settings)
        self._channels = channels
        self._directory = settings.cache / f"{spec.deployment}-{spec.site}"
        self.control = Control(self._directory / "control")
        self.reports = SiteReports(self.spec, self.control, settings.adapt, teller)
        self.publisher = SitePublisher(self.spec, channels, changes, self.reports.receive)
        self.readiness = Readiness()

    def start(self) -> None:
        self.run(self._output, self.publisher)

    def stop(self) -> None:
        self.publisher.stop()
        super().stop()
        self.reports.clear()

    def positions(self) -> dict[str, int]:
        """The last batch that has been processed of each channel."""
        progress = self.last_progress
        if not progress:
            return {}
        channels = progress.sources[-1]  # see `_output`
        return {name: number for name, (number, _) in json.loads(channels.endOffset).items()}

    def _output(self) -> DataFrame:
        """Segments for the outlets of the site, and the reports of its shards."""
        text = self.spec.to_json()
        messages = control_messages(self._spark, self.control, self.spec.labels, self.spec.fingerprint)
        names = list(self.spec.work.arriving)
        entries = read_channels(self._spark, self._channels, names, self.spec.subscriber, self._settings.most_bytes)
        packed = entries.mapInArrow(ChannelPacker(text, self._channels.to_json()), SITE_PACKED_DDL)
        operator = SiteOperator(text, str(self._directory), self._settings.cache_limit)
        # A checkpoint knows sources by their position: messages, then channels.
        return (
            messages.union(packed)
            .groupBy("shard")
            .transformWithStateInPandas(operator, SITE_OUTPUT_DDL, "Append", "None")
        )
