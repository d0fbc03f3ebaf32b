"""How much of a host's space the arrays of all queries may take, and who makes room for whom.

Sessions have directories of their own under one place, which tell by their names which process of which host they
belong to. Drivers remove what they have made; on the other hosts of a cluster nobody does, but whoever needs the room.
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
"""Below a session's directory and a query's: one directory for each version of a shard's arrays."""

IN_USE_SECONDS = 300
"""Arrays that were used so recently are somebody's, and not worth less than those that want their place."""

ABANDONED_SECONDS = 24 * 3600
"""Arrays that were not used for so long are nobody's, or worth rebuilding."""

SMALLEST_SHARED_MEMORY = 1 << 30
"""Shared memory smaller than this (in containers it often is 64 MB) is left to others."""


class CacheSpace:
    """Space for arrays under one place of this host, `limit` bytes at most: by default half of its file system."""

    def __init__(self, place: Path, limit: int | None = None) -> None:
        self._place = place
        self._limit = limit

    def make(self, size: int) -> bool:
        """Whether so many more bytes fit, after removing what is nobody's, and what is used least if need be."""
        versions = sorted(_use(path) for path in self._place.glob(f"braid-*/*/{CACHE}/*"))
        taken = size + sum(freed for _, freed, _ in versions)
        for used, freed, path in versions:
            unused = time.time() - used
            if unused < (ABANDONED_SECONDS if taken <= self.limit else IN_USE_SECONDS):
                break
            shutil.rmtree(path, ignore_errors=True)
            taken -= freed
        return taken <= self.limit

    @property
    def closed(self) -> bool:
        """Whether nothing may be kept at all."""
        return self._limit == 0

    @property
    def limit(self) -> int:
        return shutil.disk_usage(self._place).total // 2 if self._limit is None else self._limit


def _use(version: Path) -> tuple[float, int, Path]:
    """When a version was used last, and what its files take; just now, and nothing, while somebody changes it."""
    try:
        return version.stat().st_mtime, sum(entry.stat().st_size for entry in os.scandir(version)), version
    except OSError:
        return math.inf, 0, version


def fast_place() -> Path:
    """Shared memory, if there is enough of it."""
    shared = Path("/dev/shm")
    if os.access(shared, os.W_OK) and shutil.disk_usage(shared).total >= SMALLEST_SHARED_MEMORY:
        return shared
    return Path(tempfile.gettempdir())


def make_private(directory: Path) -> None:
    """Make a session's directory, if it is not there, so that others on this host do not read what streams bring."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)


def session_directory(place: Path, process: int | None = None) -> Path:
    """A new name for the directory of a session of this process."""
    return place / f"braid-{_host()}-{process or os.getpid()}-{uuid.uuid4().hex}"


def remove_orphans(place: Path) -> None:
    """Remove what programs of this host have left behind that ended without tidying up."""
    for path in place.glob(f"braid-{_host()}-*-*"):
        owner = path.name.split("-")[2]
        if owner.isdigit() and not _is_alive(int(owner)):
            shutil.rmtree(path, ignore_errors=True)


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
