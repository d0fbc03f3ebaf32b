"""How much memory the Python processes below this one use at most."""

from __future__ import annotations

import os
import threading
from pathlib import Path

INTERVAL = 0.25


class PythonMemory:
    """Samples, while it is open, what all Python workers of Spark hold together; shared pages count once."""

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
            self.peak = max(self.peak, sum(map(_proportional, _workers())))


def _workers() -> list[Path]:
    children: dict[int, list[int]] = {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((process / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        children.setdefault(parent, []).append(int(process.name))
    found, waiting = [], [os.getpid()]
    while waiting:
        below = children.get(waiting.pop(), [])
        waiting += below
        found += [Path("/proc", str(number)) for number in below]
    return [process for process in found if "pyspark.daemon" in _command(process)]


def _command(process: Path) -> str:
    try:
        return (process / "cmdline").read_text()
    except OSError:
        return ""


def _proportional(process: Path) -> int:
    """Bytes in use, pages shared by several processes divided among them."""
    try:
        lines = (process / "smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1_024 for line in lines if line.startswith("Pss:"))
