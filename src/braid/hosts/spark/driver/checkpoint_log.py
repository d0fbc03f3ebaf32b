"""The logs of a checkpoint, which have a file for each batch."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession


def last_batch(spark: SparkSession, log: str) -> int:
    """The number of the last batch in a log of Spark's; -1 if there is none."""
    files, hadoop_path = file_system(spark, log)
    if not files.exists(hadoop_path):
        return -1
    names = [status.getPath().getName() for status in files.listStatus(hadoop_path)]
    return max((int(name.removesuffix(".compact")) for name in names if name[:1].isdigit()), default=-1)


def file_system(spark: SparkSession, path: str) -> tuple[Any, Any]:
    """The Hadoop file system of a path, and the path as a Hadoop object."""
    jvm: Any = spark._jvm
    hadoop_path = jvm.org.apache.hadoop.fs.Path(path)
    return hadoop_path.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf()), hadoop_path
