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
from braid.testing.stream_files import THREE_WAY_JOIN, write_streams
from tests.hosts.spark.conftest import running, write_network

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


def submitting(program: Path) -> list[str]:
    """The command that submits a program to a small local Spark."""
    find_java()
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    settings = ["--conf", "spark.sql.shuffle.partitions=1", "--conf", "spark.ui.enabled=false"]
    return [str(submit), "--master", "local[1]", "--name", "submitted", *settings, str(program)]


@pytest.mark.sweep
def test_a_submitted_program_runs_where_it_was_submitted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    example = run_path(str(EXAMPLES / "network_monitoring.py"))
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    environment = {"PYTHONPATH": os.pathsep.join(sys.path), "PYSPARK_PYTHON": sys.executable}
    result = subprocess.run(
        [*submitting(program), tmp_path / "result.parquet"],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[-1] == "local[1] submitted"
    assert_same_rows(
        pq.read_table(tmp_path / "result.parquet"), oracle(example["QUERY"], example["streams"]()), types=False
    )


@pytest.mark.sweep
def test_a_submitted_site_works_with_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of three sites runs under `spark-submit`, is killed, and goes on under it."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    program = tmp_path / "program.py"
    program.write_text("from braid.__main__ import main\n\nmain()\n")
    file = write_network(tmp_path)
    tables = write_streams(tmp_path / "streams", rows=160, rows_per_file=20)
    expected = oracle(THREE_WAY_JOIN, tables)
    with running(file, ["lyon", "nice"], {"paris": submitting(program)}) as processes:
        processes.wait_for_rows(tmp_path / "results", expected.num_rows // 3)
        processes.kill("paris")
        processes.start("paris", submitting(program))
        results = processes.wait_for_rows(tmp_path / "results", expected.num_rows)
        assert "site paris takes part in joined" in processes.log("paris")
    assert_same_rows(results, expected)
