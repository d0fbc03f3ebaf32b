"""Writes stored checkpoints of this release: `python -m tests.hosts.spark.stored.write [names of queries]`.

Each is an archive with streams, a checkpoint and results. Spark writes absolute paths to its files; in the archive the
directory they begin with is `ROOT`.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from braid.hosts.spark.driver.local_spark import local_spark
from braid.runtime.manifest import FORMAT
from tests.hosts.spark.stored.conftest import QUERIES, archive, pack


def store(spark: Any, name: str) -> None:
    query = QUERIES[name]
    with TemporaryDirectory() as directory:
        root = Path(directory).resolve()
        query.write(root, 0, query.stored)
        shown = query.run(spark, root).explain()
        if query.spreads and "are spread" not in shown:
            sys.exit(f"no key was spread; write it again\n{shown}")
        pack(root, archive(FORMAT, name))


def main() -> None:
    spark = local_spark(2)
    spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    for name in sys.argv[1:] or QUERIES:
        store(spark, name)
    spark.stop()


if __name__ == "__main__":
    main()
