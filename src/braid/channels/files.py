"""Files that are there whole, and safe on the disk, or not at all."""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

UNFINISHED = ".unfinished"
"""The end of the names of files that are being written; what a crash leaves of them means nothing."""

NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS}
"""The errors by which file systems say that they have no hard links."""


def write_new(path: Path, data: bytes) -> None:
    """Write a file; `FileExistsError` if it is there already."""
    unfinished = _unfinished(path)
    try:
        _write(unfinished, data)
        _publish(unfinished, path)
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


def _publish(unfinished: Path, path: Path) -> None:
    """Give a written file its name; `FileExistsError` if another one has it."""
    try:
        os.link(unfinished, path)
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        # A new name replaces the file that has it, so that one program at a time must look and then rename.
        with _locked(path.parent):
            if path.exists():
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path)) from error
            unfinished.rename(path)


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """Hold a directory against other programs that lock it, as far as its file system has locks."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


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
