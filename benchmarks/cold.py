"""The time from the start of a program to its first results, for Braid, for Spark's own joins and with nothing joined.

`benchmarks.spark` runs this as a program of its own, once for each way: `python -m benchmarks.cold WAY FILES`. FILES
has the input of the Nexmark join. The ways are `braid`, `spark` and `floor`, which moves the rows through an empty
stateful operator in Python. The program prints the moment at which the first results were committed.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

POLL_SECONDS = 0.02


def first_results(way: str, directory: Path) -> float:
    """The seconds from the start of a new Python to the first results of a query over the files in `directory`."""
    started = time.time()
    command = [sys.executable, "-m", "benchmarks.cold", way, str(directory)]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return float(output.split()[-1]) - started


def main() -> None:
    way, directory = sys.argv[1], Path(sys.argv[2])
    # Imported here, because imports are part of what is measured.
    from benchmarks.floors import STATEFUL, floors
    from benchmarks.spark import Contest, Files, braid_results, chain_results
    from benchmarks.spark_joins import of_nexmark
    from benchmarks.workload import NexmarkJoin
    from braid.hosts.spark.driver.local_spark import local_spark

    files = Files(directory, Contest(NexmarkJoin(), of_nexmark))
    spark = local_spark()
    spark.sparkContext.setLogLevel("ERROR")
    if way == "braid":
        results = braid_results(files, spark, 1, files.contest.workload.count)
    elif way == "spark":
        results = chain_results(files, spark, 1, files.contest.workload.count, "in memory")
    else:
        results = floors(files.streams(spark, 1, files.contest.workload.count), ("bids",), 3)[STATEFUL]
    with tempfile.TemporaryDirectory() as temporary:
        target, checkpoint = Path(temporary, "results"), Path(temporary, "checkpoint")
        writer = results.writeStream.format("parquet").option("path", str(target))
        running = writer.option("checkpointLocation", str(checkpoint)).start()
        # The sink has a batch once its log names the files of the batch.
        while not any("part-" in log.read_text() for log in (target / "_spark_metadata").glob("[0-9]*")):
            time.sleep(POLL_SECONDS)
        print(time.time())
        running.stop()
    spark.stop()


if __name__ == "__main__":
    main()
