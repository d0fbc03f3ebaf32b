"""Removes the checkpoints of what has ended, for good.

Spark's state stores may write the last snapshot up to a minute after their query has stopped, and so make the directory
of a checkpoint anew. A query that is deployed there later would find a state that is not its own.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path
from shutil import rmtree

LAST_WRITE_SECONDS = 90.0
"""After so many seconds, nothing writes to the checkpoint of a query that has stopped."""

LOOK_SECONDS = 0.5
"""Seconds between two looks whether a checkpoint is there again."""

_removed: set[Path] = set()
"""The checkpoints that are removed, and that nobody uses."""

_lock = threading.Lock()
"""Held while directories are removed: no query begins meanwhile."""


def remove_checkpoint(checkpoint: Path) -> None:
    """Remove a checkpoint, again if it comes back, until a query begins there."""
    with _lock:
        rmtree(checkpoint, ignore_errors=True)
        if checkpoint in _removed:
            return
        _removed.add(checkpoint)
    threading.Thread(target=_remove_again, args=[checkpoint], name="braid-remove-checkpoint", daemon=True).start()


def begin_checkpoint(checkpoint: Path) -> None:
    """Let a query begin at a checkpoint. What is there without Spark's metadata was left by an earlier query."""
    with _lock:
        _removed.discard(checkpoint)
        if checkpoint.exists() and not (checkpoint / "metadata").exists():
            rmtree(checkpoint, ignore_errors=True)


def _remove_again(checkpoint: Path) -> None:
    ends = time.monotonic() + LAST_WRITE_SECONDS
    while time.monotonic() < ends:
        time.sleep(LOOK_SECONDS)
        with _lock:
            if checkpoint not in _removed:
                return
            rmtree(checkpoint, ignore_errors=True)
    with _lock:
        _removed.discard(checkpoint)
