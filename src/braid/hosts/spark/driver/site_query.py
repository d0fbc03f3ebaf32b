"""The part of one site in a deployment, as one streaming query: its streams and channels in, channels out."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from braid.adapt.controller import Policy
from braid.channels.channels import Channels
from braid.hosts.spark.driver import cluster
from braid.hosts.spark.driver.channel_frames import read_channels
from braid.hosts.spark.driver.checkpoint_log import last_batch
from braid.hosts.spark.driver.control import Control
from braid.hosts.spark.driver.failures import SPARK_FAILURES, error_for
from braid.hosts.spark.driver.grouping import named
from braid.hosts.spark.driver.pipeline import control_messages
from braid.hosts.spark.driver.publisher import Publisher
from braid.hosts.spark.driver.site_reports import SiteReports
from braid.hosts.spark.shared.packed_rows import SITE_PACKED_DDL
from braid.hosts.spark.worker.operator import SITE_OUTPUT_DDL, SiteOperator
from braid.hosts.spark.worker.site_packer import ChannelPacker, OwnStreamPacker
from braid.runtime.sites.site_spec import SiteSpec

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class SiteSettings:
    """How the sites of a network run: where their checkpoints and caches are, and how much they take at once."""

    checkpoints: Path
    cache: Path
    cache_limit: int | None = None
    most_bytes: int = 64 << 20
    trigger: str | None = None
    adapt: bool | Policy = True


class SiteQuery:
    """One site at work for one query. `dataframes` are the streams that start here, by name."""

    def __init__(
        self,
        spark: SparkSession,
        spec: SiteSpec,
        dataframes: Mapping[str, DataFrame],
        channels: Channels,
        settings: SiteSettings,
    ) -> None:
        self._spark = spark
        self._dataframes = dataframes
        self._channels = channels
        self._settings = settings
        labels = cluster.shard_labels(spark, len(spec.shard_keys))
        self.spec = spec.spread(spec.shards, labels)
        self.checkpoint = settings.checkpoints / spec.site / spec.deployment
        self._directory = settings.cache / f"{spec.deployment}-{spec.site}"
        self.control = Control(self._directory / "control")
        self.reports = SiteReports(self.spec, self.control, settings.adapt)
        self.publisher = Publisher(self.spec, channels, self.reports.receive)
        self._running: StreamingQuery | None = None

    @property
    def is_active(self) -> bool:
        return self._running is not None and bool(self._running.isActive)

    def start(self) -> None:
        """Run from the last checkpoint on."""
        self.publisher.check_checkpoint(last_batch(self._spark, f"{self.checkpoint}/offsets"))
        writer = self._output().writeStream.foreachBatch(self.publisher)
        writer = writer.queryName(f"{self.spec.deployment} at {self.spec.site}")
        if self._settings.trigger is not None:
            writer = writer.trigger(processingTime=self._settings.trigger)
        self._running = writer.option("checkpointLocation", str(self.checkpoint)).start()

    def stop(self) -> None:
        """Stop at once; a started step is done again at the next start. If Java has ended, there is nothing to do."""
        if self._running is not None:
            try:
                self._running.stop()
            except SPARK_FAILURES as failure:
                logger.debug("site %s was gone already: %s", self.spec.site, failure)
        self.reports.clear()

    def check(self) -> None:
        """Raise the error that the site failed with, if it failed."""
        failure = None if self._running is None else self._running.exception()
        if failure is not None:
            if self.publisher.failure is not None:
                raise self.publisher.failure
            raise error_for(f"query '{self.spec.deployment}' failed at site '{self.spec.site}'", failure) from failure

    def process_available(self) -> None:
        """Wait until everything that is there has been processed."""
        if self._running is not None:
            try:
                self._running.processAllAvailable()
            except SPARK_FAILURES:
                self.check()
                raise

    def positions(self) -> dict[str, int]:
        """The last batch that has been processed of each channel."""
        progress: Any = None if self._running is None else self._running.lastProgress
        if not progress or not self.spec.work.arriving:
            return {}
        channels = progress.sources[-1]  # see `_output`
        return {name: number for name, (number, _) in json.loads(channels.endOffset).items()}

    def _output(self) -> DataFrame:
        """Segments for the outlets of the site, and the reports of its shards."""
        text = self.spec.to_json()
        messages = control_messages(self._spark, self.control, self.spec.labels, self.spec.fingerprint())
        # A checkpoint knows sources by their position: messages, own streams in the order of the query, channels.
        inputs = [messages]
        for stream in dict.fromkeys(self.spec.query.source(alias).declared.name for alias in self.spec.work.own):
            inputs.append(self._own(text, stream))
        if self.spec.work.arriving:
            names = list(self.spec.work.arriving)
            entries = read_channels(self._spark, self._channels, names, self.spec.subscriber, self._settings.most_bytes)
            inputs.append(entries.mapInArrow(ChannelPacker(text, self._channels.to_json()), SITE_PACKED_DDL))
        operator = SiteOperator(text, str(self._directory), self._settings.cache_limit)
        return (
            reduce(DataFrame.union, inputs)
            .groupBy("shard")
            .transformWithStateInPandas(operator, SITE_OUTPUT_DDL, "Append", "None")
        )

    def _own(self, text: str, stream: str) -> DataFrame:
        """The rows of a stream that starts here, packed for the shards that read it."""
        read: set[str] = set()
        for fragment in self.spec.work.fragments.values():
            for wire in fragment.inputs:
                if wire.at_origin and self.spec.query.source(wire.name).declared.name == stream:
                    read.update(wire.schema.names)
        dataframe = self._dataframes[stream]
        columns = [name for name in dataframe.columns if name in read]
        # Columns are named by their position on the way, because PySpark does not support every name.
        selected = [named(name).alias(str(position)) for position, name in enumerate(columns)]
        return dataframe.select(*selected).mapInArrow(OwnStreamPacker(text, stream, columns), SITE_PACKED_DDL)
