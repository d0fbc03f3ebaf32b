"""The archive of Java's classes: a Spark loads its classes from it, and starts without it if it is damaged."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from braid.hosts.spark.driver.class_archive import archive_options
from braid.hosts.spark.driver.java import find_java

PROGRAM = """
import sys
from pathlib import Path
from braid.hosts.spark.driver import class_archive, local_spark
archive, java_log = Path(sys.argv[1]), sys.argv[2]
options = f'{class_archive.archive_options(archive)} "-Xlog:class+load:file={java_log}"'
spark = local_spark.local_spark(settings={"spark.driver.defaultJavaOptions": options}, log="spark.log")
print(spark.range(7).count())
"""

SHARED = "org.apache.spark.SparkContext source: shared objects file"


def run_program(program: str, *arguments: Path, directory: Path) -> str:
    command = [sys.executable, "-c", program, *map(str, arguments)]
    finished = subprocess.run(command, cwd=directory, capture_output=True, text=True)
    assert finished.returncode == 0, finished.stderr
    assert finished.stderr == ""
    return finished.stdout


def test_without_an_archive_java_gets_no_options(tmp_path: Path) -> None:
    assert archive_options(tmp_path / "missing.jsa") == ""


def test_a_damaged_archive_is_ignored(tmp_path: Path) -> None:
    damaged = tmp_path / "spark.jsa"
    damaged.write_bytes(b"no archive")
    find_java()
    java = Path(os.environ["JAVA_HOME"], "bin", "java") if "JAVA_HOME" in os.environ else "java"
    command = [java, *shlex.split(archive_options(damaged)), "-version"]
    started = subprocess.run(command, capture_output=True, text=True)
    assert started.returncode == 0
    assert "cds" not in started.stdout + started.stderr


@pytest.mark.sweep
def test_spark_loads_its_classes_from_the_archive_unless_java_cannot(tmp_path: Path) -> None:
    make = "import sys\nfrom pathlib import Path\nfrom braid.hosts.spark.driver.archive_making import make_archive\n"
    make += "print(make_archive(Path('making.log'), Path(sys.argv[1])))"
    archive = tmp_path / "with a space" / "spark.jsa"
    is_used = run_program(make, archive, directory=tmp_path) == "True\n"
    assert archive.exists() == is_used
    assert run_program(PROGRAM, archive, tmp_path / "java.log", directory=tmp_path) == "7\n"
    assert (SHARED in (tmp_path / "java.log").read_text()) == is_used
