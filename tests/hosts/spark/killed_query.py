"""A program with one query on Spark, which tests start and kill. Its arguments are DIRECTORY, MASTER and QUERY.

The directory holds the streams; the program writes the result, the checkpoint and the cache there. It asks for another
plan before it starts the query, so that the first batch has a control message.
"""

import os
import sys
from pathlib import Path

import braid
from braid.hosts.spark.driver.local_spark import local_spark

PLAN = {"a": ["c", "b"], "b": ["c", "a"], "c": ["b", "a"]}


def main(directory: Path, master: str, text: str) -> None:
    settings = {"spark.master": master, "spark.executorEnv.PYTHONPATH": os.pathsep.join(sys.path)}
    session = braid.Session(local_spark(2, settings), cache=str(directory / "cache"))
    session.spark.sparkContext.setLogLevel("ERROR")
    for stream in sorted((directory / "streams").iterdir()):
        schema = session.spark.read.parquet(str(stream)).schema
        reader = session.spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
        session.stream(stream.name, reader.parquet(str(stream)), lateness="1 second")
    query = session.sql(text, shards=2)
    query.replan(PLAN)
    writer = query.dataframe.writeStream.format("parquet").option("path", str(directory / "result"))
    writer = writer.option("checkpointLocation", str(directory / "checkpoint"))
    writer.trigger(availableNow=True).start().awaitTermination()


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
