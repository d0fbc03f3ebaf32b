"""Files that are there whole, and safe on the disk, or not at all."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path

UNFINISHED = ".unfinished"
"""The end of the names of files that are being written; what a crash leaves of them means nothing."""


def write_new(path: Path, data: bytes) -> None:
    """Write a file; `FileExistsError` if it is there already."""
    unfinished = _unfinished(path)
    try:
        _write(unfinished, data)
        os.link(unfinished, path)
        sync_directory(path.parent)
    finally:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)


def replace(path: Path, data: bytes) -> None:
    """Write a file in place of the one that is there, if any."""
    unfinished = _unfinished(path)
    try:
        _write(unfinished, data)
        unfinished.replace(path)
        sync_directory(path.parent)
    finally:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)


def sync_directory(directory: Path) -> None:
    """Make sure that files stay where they were put."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _unfinished(path: Path) -> Path:
    return path.with_name(f"{path.name}.{secrets.token_hex(4)}{UNFINISHED}")


def _write(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
