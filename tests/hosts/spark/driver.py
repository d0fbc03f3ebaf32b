"""A program with one query on Spark, to be started and killed by tests: STREAMS RESULT CHECKPOINT."""

import sys
from pathlib import Path

import braid

TEXT = """SELECT a.n AS an, b.n AS bn, c.n AS cn
          FROM a [RANGE 20 SECONDS], b [RANGE 20 SECONDS], c [RANGE 20 SECONDS] WHERE a.k = b.k AND b.k = c.k"""


def main(streams: str, result: str, checkpoint: str) -> None:
    session = braid.Session()
    session.spark.sparkContext.setLogLevel("ERROR")
    for directory in sorted(Path(streams).iterdir()):
        schema = session.spark.read.parquet(str(directory)).schema
        reader = session.spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
        session.stream(directory.name, reader.parquet(str(directory)), lateness="1 second")
    writer = session.sql(TEXT).dataframe.writeStream.format("parquet").option("path", result)
    writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start().awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
