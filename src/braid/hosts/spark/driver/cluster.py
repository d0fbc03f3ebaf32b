"""The cluster that a query runs on: its cores, its partitions, and names for shards that spread over them."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

IDLE_PARTITIONS = 8
"""So many partitions per shard are worth a warning: Spark's default of 200 makes a micro-batch last a minute."""

CANDIDATES = 64
"""Labels are looked for among so many numbers per shard or partition."""

logger = logging.getLogger(__name__)


def cores(spark: SparkSession) -> int:
    """The cores of the cluster: as many as it was asked for, where not all may be there yet, else those there are."""
    context = spark.sparkContext
    return cores_asked_for(str(context.master), dict(context.getConf().getAll())) or context.defaultParallelism


def cores_asked_for(master: str, settings: Mapping[str, str]) -> int | None:
    """The cores that a cluster will bring up one after the other; None if it has them all, or a setting says how many.

    >>> cores_asked_for("yarn", {"spark.executor.instances": "4", "spark.executor.cores": "2"})
    8
    """
    said = "spark.default.parallelism" in settings or settings.get("spark.dynamicAllocation.enabled") == "true"
    executors = settings.get("spark.executor.instances")
    if said or executors is None or not master.startswith(("yarn", "k8s")):
        return None
    return int(executors) * int(settings.get("spark.executor.cores", "1"))


def partitions(spark: SparkSession) -> int:
    """How many state stores a query has, one for each task of a micro-batch."""
    return int(spark.conf.get("spark.sql.shuffle.partitions") or 1)


def warn_of_idle_partitions(spark: SparkSession, shards: int) -> None:
    started = partitions(spark)
    if started > IDLE_PARTITIONS * shards:
        logger.warning(
            "spark.sql.shuffle.partitions is %d and the query has %d shards: every micro-batch starts %d tasks "
            "and commits as many state stores; set it to %d before the query is started for the first time",
            started,
            shards,
            started,
            shards,
        )


def shard_labels(spark: SparkSession, shards: int) -> tuple[int, ...]:
    """Keys for the shards that Spark's hash sends to different partitions, as far as there are so many.

    The first is always 0.
    """
    targets = partitions(spark)
    candidates = spark.range(CANDIDATES * max(shards, targets)).select(
        F.col("id").cast("int"), F.expr(f"pmod(hash(cast(id as int)), {targets})")
    )
    by_partition: dict[int, list[int]] = {}
    for label, partition in candidates.collect():
        by_partition.setdefault(partition, []).append(label)
    labels: list[int] = []
    for turn in range(CANDIDATES):
        labels += [found[turn] for found in by_partition.values() if turn < len(found)]
    return tuple(labels[:shards])
