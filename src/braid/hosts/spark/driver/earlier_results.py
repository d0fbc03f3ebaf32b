"""Results of another checkpoint in the directory of a file sink."""

from __future__ import annotations

from pyspark.sql import SparkSession

from braid.files.job import SinkEntry
from braid.hosts.spark.driver.checkpoint_log import last_batch


def check_results(spark: SparkSession, query: str, sink: SinkEntry, checkpoint: str) -> None:
    """Refuse a directory with results of another checkpoint.

    A file sink skips batches whose numbers it already has, and a new checkpoint counts from 0 again. A checkpoint
    writes the offsets of a batch before the results of the batch. So if there are results of a later batch than there
    are offsets, the results belong to another checkpoint.
    """
    directory = sink.directory
    if directory is None:
        return
    if last_batch(spark, f"{directory}/_spark_metadata") > last_batch(spark, f"{checkpoint}/offsets"):
        raise sink.location.error(
            f"query '{query}': the results in {directory} were written with another checkpoint, and Spark would "
            "skip batches that are there already; go on with that checkpoint, or give a new path for the results"
        )
