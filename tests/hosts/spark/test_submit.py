"""A program that is started by `spark-submit` runs on the Spark that it was submitted to."""

import os
import subprocess
import sys
from pathlib import Path
from runpy import run_path

import pyarrow.parquet as pq
import pyspark
import pytest

from braid.hosts.spark.driver.java import find_java
from braid.testing import assert_same_rows, oracle

EXAMPLES = Path(__file__).parents[3] / "examples"

PROGRAM = """
import sys
import braid, pyarrow.parquet as pq
from network_monitoring import QUERY, streams

session = braid.Session()
for name, table in streams().items():
    session.stream(name, session.spark.createDataFrame(table))
pq.write_table(session.sql(QUERY).dataframe.drop("event_time").toArrow(), sys.argv[1])
print(session.spark.sparkContext.master, session.spark.sparkContext.appName)
"""


@pytest.mark.sweep
def test_a_submitted_program_runs_where_it_was_submitted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    example = run_path(str(EXAMPLES / "network_monitoring.py"))
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    find_java()
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYSPARK_PYTHON": sys.executable}
    settings = ["--conf", "spark.sql.shuffle.partitions=1", "--conf", "spark.ui.enabled=false"]
    result = subprocess.run(
        [submit, "--master", "local[1]", "--name", "submitted", *settings, program, tmp_path / "result.parquet"],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[-1] == "local[1] submitted"
    assert_same_rows(
        pq.read_table(tmp_path / "result.parquet"), oracle(example["QUERY"], example["streams"]()), types=False
    )
