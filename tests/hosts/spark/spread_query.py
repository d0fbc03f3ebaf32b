"""A program with one query on Spark whose heavy keys are spread, which tests start and kill.

Its arguments are DIRECTORY and QUERY. The directory holds the streams; the program writes the result and the checkpoint
there. It adds a line to the file `phases` whenever `explain()` says something else of the heavy keys.
"""

import sys
import time
from pathlib import Path

import braid
from braid.hosts.spark.driver.local_spark import local_spark


def main(directory: Path, text: str) -> None:
    session = braid.Session(local_spark(2, {"spark.master": "local[2]"}), cache=str(directory / "cache"))
    session.spark.sparkContext.setLogLevel("ERROR")
    for stream in sorted((directory / "streams").iterdir()):
        schema = session.spark.read.parquet(str(stream)).schema
        reader = session.spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
        session.stream(stream.name, reader.parquet(str(stream)), lateness="1 second")
    query = session.sql(text, shards=4)
    writer = query.dataframe.writeStream.format("parquet").option("path", str(directory / "result"))
    writer = writer.option("checkpointLocation", str(directory / "checkpoint"))
    running = writer.trigger(availableNow=True).start()
    last_heavy = ""
    while running.isActive:
        heavy = "; ".join(line for line in query.explain().splitlines() if line.startswith("heavy key"))
        if heavy != last_heavy:
            last_heavy = heavy
            with (directory / "phases").open("a") as phases:
                phases.write(f"{heavy}\n")
        time.sleep(0.02)
    running.awaitTermination()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
