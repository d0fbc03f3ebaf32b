"""Removes the checkpoints of what has ended, for good.

A site that stops a query which is dropped marks its checkpoints before it says that it has stopped. So a site that is
killed before the drop is over finds them again when it is back.

Spark's state stores may write the last snapshot up to a minute after their query has stopped, and so make the directory
of a checkpoint anew. A query that is deployed there later would find a state that is not its own.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Collection
from pathlib import Path
from shutil import rmtree

LAST_WRITE_SECONDS = 90.0
"""After so many seconds, nothing writes to the checkpoint of a query that has stopped."""

LOOK_SECONDS = 0.5
"""Seconds between two looks whether a checkpoint is there again."""

LEFT = "left"
"""A file of this name marks a checkpoint of a query that is being dropped."""

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


def mark_left(checkpoint: Path) -> None:
    """Mark a checkpoint, if it is there, as one of a query that is being dropped."""
    if checkpoint.is_dir():
        (checkpoint / LEFT).touch()


def left_in(directory: Path) -> list[Path]:
    """The marked checkpoints in a directory."""
    return sorted(mark.parent for mark in directory.glob(f"*/{LEFT}"))


def remove_left(directory: Path, kept: Collection[Path]) -> None:
    """Remove the marked checkpoints in a directory, except those that are `kept` for what is deployed."""
    for checkpoint in left_in(directory):
        if checkpoint not in kept:
            remove_checkpoint(checkpoint)


def begin_checkpoint(checkpoint: Path) -> None:
    """Let a query begin at a checkpoint. What is there without Spark's metadata was left by an earlier query."""
    with _lock:
        _removed.discard(checkpoint)
        (checkpoint / LEFT).unlink(missing_ok=True)
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
