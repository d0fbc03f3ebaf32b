"""What a checkpoint holds, read with Spark's state reader. The query may be running or stopped."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from braid.errors import FileError
from braid.hosts.spark.driver.failures import failure_text
from braid.hosts.spark.shared.state_layout import STATE
from braid.model.plan import Written
from braid.model.window import FOREVER
from braid.runtime.manifest import Manifest
from braid.runtime.segment_log import MANIFEST

OPERATOR = "transformWithState"
"""How Spark's name for the join operator begins. A query may have other stateful operators after it."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class WindowSummary:
    """A window in the checkpoint, over all shards; `watermark` is that of the slowest shard, None before any row."""

    source: str
    rows: int
    bytes: int
    segments: int
    watermark: datetime | None


@dataclass(frozen=True)
class CheckpointState:
    query: str
    batch: int
    shards: int
    plan: Written
    windows: tuple[WindowSummary, ...]


def read_state(spark: SparkSession, checkpoint: str) -> CheckpointState:
    """The state after the last committed micro-batch; `checkpoint` is a path or URL as `checkpoint_at` returns it."""
    try:
        operators = spark.read.format("state-metadata").load(checkpoint)
        join = operators.filter(F.col("operatorName").startswith(OPERATOR)).first()
        if join is None:
            raise FileError(f"{checkpoint} belongs to a query that is not Braid's")
        reader = spark.read.format("statestore").option("operatorId", join["operatorId"]).option("stateVarName", STATE)
        entries = reader.load(checkpoint).filter(F.col("user_map_key.source") == MANIFEST[0])
        manifests = entries.select("user_map_value.payload").collect()
    except (PySparkException, Py4JError) as failure:
        raise FileError(f"{checkpoint} cannot be read as a checkpoint of Braid's: {failure_text(failure)}") from failure
    if not manifests:
        raise FileError(f"{checkpoint} holds no window yet; run the query until it has taken a micro-batch")
    return _state([Manifest.from_json(bytes(row["payload"])) for row in manifests], join["maxBatchId"])


def _state(manifests: list[Manifest], batch: int) -> CheckpointState:
    latest = max(manifests, key=lambda manifest: manifest.step)
    windows = tuple(_window(alias, manifests) for alias in latest.watermarks)
    return CheckpointState(str(latest.fingerprint["text"]), batch, len(manifests), latest.plan, windows)


def _window(alias: str, manifests: list[Manifest]) -> WindowSummary:
    entries = [entry for manifest in manifests for entry in manifest.entries.get(alias, [])]
    watermark = min(manifest.watermarks.get(alias, -FOREVER) for manifest in manifests)
    return WindowSummary(
        alias,
        sum(entry.rows for entry in entries),
        sum(entry.size for entry in entries),
        len(entries),
        _moment(watermark),
    )


def _moment(microseconds: int) -> datetime | None:
    try:
        return EPOCH + timedelta(microseconds=microseconds)
    except OverflowError:
        return None
