"""A Spark whose Python workers do not have Braid is refused before a query starts."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

OTHER_PYTHON = """#!{python}
# A Python without Braid: runs `-m module ..` as this Python does, but finds no Braid.
import runpy, sys
from pathlib import Path

sys.path = [entry for entry in sys.path if not (Path(entry) / "braid").exists()]
sys.meta_path = [finder for finder in sys.meta_path if not getattr(finder, "__module__", "").startswith("__editable__")]
sys.argv = sys.argv[2:]
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
"""

PROGRAM = """
from pyspark.sql import SparkSession
import braid
from braid.hosts.spark.driver.java import find_java

find_java()
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
try:
    braid.Session(spark)
except braid.BraidError as error:
    print(error)
"""


@pytest.mark.parametrize("kind", ["without Braid", "no Python at all"])
def test_workers_with_another_python_are_refused(tmp_path: Path, kind: str) -> None:
    python = tmp_path / "python"
    python.write_text(OTHER_PYTHON.format(python=sys.executable) if kind == "without Braid" else "#!/bin/false\n")
    python.chmod(0o755)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYSPARK_PYTHON": str(python)}
    result = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    problem = "which has no module 'braid'" if kind == "without Braid" else "which does not start: "
    assert f"Spark's Python workers run '{python}', {problem}" in result.stdout
    assert f"set the environment variable PYSPARK_PYTHON to {sys.executable}" in result.stdout
    assert len(result.stdout.splitlines()) == 1
