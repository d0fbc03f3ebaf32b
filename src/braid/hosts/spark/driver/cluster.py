"""The cluster that a query runs on: its cores, its partitions, and labels that spread shards over the partitions."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from pyspark.sql import SparkSession

IDLE_PARTITIONS = 8
"""The most partitions per shard without a warning: with Spark's default of 200, a micro-batch takes a minute."""

CANDIDATES = 64
"""How many numbers are tried as labels, per shard or partition (whichever are more)."""

logger = logging.getLogger(__name__)


def cores(spark: SparkSession) -> int:
    """The cores of the cluster: those it was asked for if not all may have started yet, else those it has."""
    context = spark.sparkContext
    return cores_asked_for(str(context.master), dict(context.getConf().getAll())) or context.defaultParallelism


def cores_asked_for(master: str, settings: Mapping[str, str]) -> int | None:
    """The cores of a cluster that starts its executors one by one; None if Spark knows the number of cores itself.

    >>> cores_asked_for("yarn", {"spark.executor.instances": "4", "spark.executor.cores": "2"})
    8
    """
    known = "spark.default.parallelism" in settings or settings.get("spark.dynamicAllocation.enabled") == "true"
    executors = settings.get("spark.executor.instances")
    if known or executors is None or not master.startswith(("yarn", "k8s")):
        return None
    return int(executors) * int(settings.get("spark.executor.cores", "1"))


def partitions(spark: SparkSession) -> int:
    """How many partitions a query has after the shuffle; each has a state store and a task in every micro-batch."""
    return int(spark.conf.get("spark.sql.shuffle.partitions") or 1)


def warn_of_idle_partitions(spark: SparkSession, shards: int) -> None:
    count = partitions(spark)
    if count > IDLE_PARTITIONS * shards:
        logger.warning(
            "spark.sql.shuffle.partitions is %d and the query has %d shards: every micro-batch starts %d tasks "
            "and commits as many state stores; set it to %d before the query is started for the first time",
            count,
            shards,
            count,
            shards,
        )


def shard_labels(shards: int, count: int) -> tuple[int, ...]:
    """A key for each shard, chosen so that Spark's hash spreads the shards evenly over `count` partitions.

    The first label is always 0.
    """
    by_partition: dict[int, list[int]] = {}
    for label in range(CANDIDATES * max(shards, count)):
        by_partition.setdefault(spark_hash(label) % count, []).append(label)
    labels: list[int] = []
    for turn in range(CANDIDATES):  # In each turn one label for each partition.
        labels += [numbers[turn] for numbers in by_partition.values() if turn < len(numbers)]
    return tuple(labels[:shards])


def spark_hash(value: int) -> int:
    """The hash by which Spark's shuffle distributes a 32-bit integer: Murmur3 with the seed 42.

    To ask Spark itself takes a job, which is a second for the first query of a program.

    >>> spark_hash(1)
    -559580957
    """
    hashed = _rotated(value * 0xCC9E2D51, 15) * 0x1B873593 ^ 42
    hashed = _rotated(hashed, 13) * 5 + 0xE6546B64 ^ 4
    hashed = (hashed ^ (hashed & _WORD) >> 16) * 0x85EBCA6B & _WORD
    hashed = (hashed ^ hashed >> 13) * 0xC2B2AE35 & _WORD
    hashed ^= hashed >> 16
    return hashed - (_WORD + 1) if hashed >> 31 else hashed


_WORD = 0xFFFFFFFF


def _rotated(word: int, bits: int) -> int:
    """The lowest 32 bits of a number, rotated to the left."""
    word &= _WORD
    return word << bits & _WORD | word >> 32 - bits
