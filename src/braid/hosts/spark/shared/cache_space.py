"""Space for cached arrays on a host: how much all queries together may take, and which arrays are removed first.

Below one common directory, each session has a directory of its own, whose name tells its host and process. A driver
removes its directory when it ends. On the other hosts of a cluster, arrays stay until a query needs their space.
"""

from __future__ import annotations

import math
import os
import platform
import shutil
import tempfile
import time
import uuid
import zlib
from pathlib import Path

CACHE = "cache"
"""The directory of a query's arrays, below the directories of its session and of the query itself.

It has a directory for each version of a shard's arrays.
"""

IN_USE_SECONDS = 300
"""Arrays that were used within this time are never removed to make space."""

ABANDONED_SECONDS = 24 * 3600
"""Arrays that were not used for this time are removed even if there is space."""

SMALLEST_SHARED_MEMORY = 1 << 30
"""Shared memory smaller than this is not used for the cache; in containers it is often only 64 MB."""


class CacheSpace:
    """The space for arrays below the directory `root`: at most `limit` bytes, by default half of the file system."""

    def __init__(self, root: Path, limit: int | None = None) -> None:
        self._root = root
        self._limit = limit

    def make(self, size: int) -> bool:
        """Make space for `size` more bytes; returns whether they fit.

        Removes abandoned arrays, and if that is not enough, the arrays that were not used for the longest time.
        """
        versions = sorted(_usage(path) for path in self._root.glob(f"braid-*/*/{CACHE}/*"))
        total = size + sum(version_size for _, version_size, _ in versions)
        for last_used, version_size, path in versions:
            unused_seconds = time.time() - last_used
            if unused_seconds < (ABANDONED_SECONDS if total <= self.limit else IN_USE_SECONDS):
                break
            shutil.rmtree(path, ignore_errors=True)
            total -= version_size
        return total <= self.limit

    @property
    def closed(self) -> bool:
        """Whether the cache is turned off."""
        return self._limit == 0

    @property
    def limit(self) -> int:
        return shutil.disk_usage(self._root).total // 2 if self._limit is None else self._limit


def _usage(version: Path) -> tuple[float, int, Path]:
    """When a version was used last, the bytes of its files, and its directory."""
    try:
        return version.stat().st_mtime, sum(entry.stat().st_size for entry in os.scandir(version)), version
    except OSError:  # Another process is changing it, so it is in use.
        return math.inf, 0, version


def fast_directory() -> Path:
    """Shared memory if there is enough of it, else the directory for temporary files."""
    shared = Path("/dev/shm")
    if os.access(shared, os.W_OK) and shutil.disk_usage(shared).total >= SMALLEST_SHARED_MEMORY:
        return shared
    return Path(tempfile.gettempdir())


def make_private(directory: Path) -> None:
    """Make the directory of a session, readable for this user only: it holds rows of streams."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)


def session_directory(root: Path, process: int | None = None) -> Path:
    """A new name for the directory of a session, by default of this process."""
    return root / f"braid-{_host()}-{process or os.getpid()}-{uuid.uuid4().hex}"


def remove_orphans(root: Path) -> None:
    """Remove the directories of sessions on this host whose process has ended without removing them."""
    for path in root.glob(f"braid-{_host()}-*-*"):
        owner = path.name.split("-")[2]
        if owner.isdigit() and not _is_alive(int(owner)):
            shutil.rmtree(path, ignore_errors=True)


def owner_of(directory: str) -> int | None:
    """The process that owns a directory of a session, if it is another one on this host and alive."""
    for part in Path(directory).parts:
        name = part.split("-")
        if name[:2] == ["braid", _host()] and len(name) == 4 and name[2].isdigit():
            owner = int(name[2])
            return owner if owner != os.getpid() and _is_alive(owner) else None
    return None


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _host() -> str:
    return f"{zlib.crc32(platform.node().encode()):08x}"
