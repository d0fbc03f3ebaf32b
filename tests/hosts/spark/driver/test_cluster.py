"""The labels of shards: Spark's shuffle spreads them evenly, as it hashes them."""

from collections import Counter
from typing import Any

import pytest
from pyspark.sql import functions as F  # noqa: N812

from braid.hosts.spark.driver.cluster import shard_labels, spark_hash


def test_integers_have_the_hash_that_spark_gives_them(spark: Any) -> None:
    numbers = [*range(500), 2**31 - 1, -1, -(2**31), -123_456_789]
    frame = spark.createDataFrame([(number,) for number in numbers], "number int")
    hashes = {row.number: row.hashed for row in frame.select("number", F.hash("number").alias("hashed")).collect()}
    assert hashes == {number: spark_hash(number) for number in numbers}


@pytest.mark.parametrize(("shards", "partitions"), [(2, 2), (3, 8), (8, 3), (100, 7)])
def test_partitions_have_as_many_shards_as_each_other_or_one_more(shards: int, partitions: int) -> None:
    labels = shard_labels(shards, partitions)
    counts = Counter(spark_hash(label) % partitions for label in labels)
    assert labels[0] == 0
    assert len(set(labels)) == shards
    assert max(counts.values()) == -(-shards // partitions)
    assert len(counts) == min(shards, partitions)
