"""Runs Flink SQL in a Python that has Flink: `benchmarks.flink` starts it and gives it a job as JSON.

The job has `settings`, the `statements` that declare tables, and the `inserts`, which run one after the other in one
JVM. The program prints the seconds of each insert when it has ended, from its submission to its last result.
"""

import json
import sys
import time

from pyflink.common import Configuration
from pyflink.table import EnvironmentSettings, TableEnvironment


def main() -> None:
    job = json.load(sys.stdin)
    configuration = Configuration()
    for name, value in job["settings"].items():
        configuration.set_string(name, value)
    settings = EnvironmentSettings.new_instance().in_streaming_mode().with_configuration(configuration).build()
    tables = TableEnvironment.create(settings)
    for statement in job["statements"]:
        tables.execute_sql(statement)
    for insert in job["inserts"]:
        started = time.perf_counter()
        tables.execute_sql(insert).wait()
        print("seconds:", time.perf_counter() - started, flush=True)


if __name__ == "__main__":
    main()
