"""What a checkpoint holds, read through Spark's own state reader while nobody runs on it, or while somebody does."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from braid.errors import FileError
from braid.hosts.spark.driver.failures import told
from braid.hosts.spark.shared.state_layout import STATE
from braid.model.plan import Written
from braid.model.window import FOREVER
from braid.runtime.manifest import Manifest
from braid.runtime.segment_log import MANIFEST

OPERATOR = "transformWithState"
"""What Spark calls the operator, beside others that may follow it in the same query."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class WindowSummary:
    """A window in the checkpoint, all shards together; `watermark` is that of the slowest, None before any row."""

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
    """The state as the last committed micro-batch left it, of a checkpoint as `checkpoint_at` names it."""
    try:
        operators = spark.read.format("state-metadata").load(checkpoint)
        join = operators.filter(F.col("operatorName").startswith(OPERATOR)).first()
        if join is None:
            raise FileError(f"{checkpoint} belongs to a query that is none of Braid's")
        reader = spark.read.format("statestore").option("operatorId", join["operatorId"]).option("stateVarName", STATE)
        kept = reader.load(checkpoint).filter(F.col("user_map_key.source") == MANIFEST[0])
        manifests = kept.select("user_map_value.payload").collect()
    except (PySparkException, Py4JError) as failure:
        raise FileError(f"{checkpoint} cannot be read as a checkpoint of Braid's: {told(failure)}") from failure
    if not manifests:
        raise FileError(f"{checkpoint} holds no window yet; run the query until it has taken a micro-batch")
    return _state([Manifest.from_json(bytes(row["payload"])) for row in manifests], join["maxBatchId"])


def _state(manifests: list[Manifest], batch: int) -> CheckpointState:
    latest = max(manifests, key=lambda manifest: manifest.step)
    windows = tuple(_window(alias, manifests) for alias in latest.watermarks)
    return CheckpointState(str(latest.fingerprint["query"]), batch, len(manifests), latest.plan, windows)


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
