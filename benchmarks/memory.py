"""The memory of this process and of those it has started through Spark: Java, and Python workers."""

from __future__ import annotations

import os
import threading
from pathlib import Path

INTERVAL = 0.25
"""Seconds between two samples."""


class PythonMemory:
    """Samples the memory of all Python workers of Spark together while it is open; shared pages count once."""

    def __init__(self) -> None:
        self.peak = 0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> PythonMemory:
        self._thread.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._done.wait(INTERVAL):
            self.peak = max(self.peak, sum(map(_proportional_size, _workers())))


def memory_now() -> dict[str, int]:
    """The bytes of the driver, of Java and of all Python workers together; shared pages count once."""
    sizes = {"driver": _proportional_size(Path("/proc", str(os.getpid()))), "Java": 0, "workers": 0}
    for process in _descendants():
        command = _command(process)
        if "pyspark.daemon" in command:
            sizes["workers"] += _proportional_size(process)
        elif "java" in command.split("\0")[0]:
            sizes["Java"] += _proportional_size(process)
    return sizes


def _workers() -> list[Path]:
    """The directories in /proc of all Python workers below this process."""
    return [process for process in _descendants() if "pyspark.daemon" in _command(process)]


def _descendants() -> list[Path]:
    """The directories in /proc of all processes below this one."""
    children: dict[int, list[int]] = {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((process / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        children.setdefault(parent, []).append(int(process.name))
    descendants: list[Path] = []
    pending = [os.getpid()]
    while pending:
        child_ids = children.get(pending.pop(), [])
        pending += child_ids
        descendants += [Path("/proc", str(child_id)) for child_id in child_ids]
    return descendants


def _command(process: Path) -> str:
    try:
        return (process / "cmdline").read_text()
    except OSError:
        return ""


def _proportional_size(process: Path) -> int:
    """The proportional set size in bytes: pages shared by several processes are divided among them."""
    try:
        lines = (process / "smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1_024 for line in lines if line.startswith("Pss:"))
