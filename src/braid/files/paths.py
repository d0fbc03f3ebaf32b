"""Places as Hadoop names them, here or elsewhere: files, directories, checkpoints."""

from __future__ import annotations

import os
import re
from pathlib import Path

from braid.errors import FileError

LOCAL = ("", "file")
"""Schemes of places on this machine."""

PATH = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.-]*):)?(?://([^/]*))?(.*)", re.DOTALL)
"""Scheme, host and path, as Hadoop reads a path: unlike an address it has no query and no fragment."""


def resolved(path: str, directory: Path) -> str:
    """A path that says no scheme is relative to a directory."""
    scheme, _, _ = _parts(path)
    return path if scheme else str(directory.resolve() / path)


def on_this_machine(path: str) -> Path | None:
    """None if it is elsewhere."""
    scheme, _, rest = _parts(path)
    return Path(rest) if scheme in LOCAL else None


def identity(path: str) -> str:
    """The same for all spellings of a place."""
    scheme, host, rest = _parts(path)
    normal = os.path.normpath(rest)
    return os.path.realpath(normal) if scheme in LOCAL else f"{scheme}://{host}{normal}"


def checkpoint_at(given: str) -> str:
    """Where a checkpoint is; `FileError` if there is none, as far as can be seen without Spark."""
    path = resolved(given, Path.cwd())
    here = on_this_machine(path)
    if here is not None and not (here / "state").is_dir():
        raise FileError(f"{path} is no checkpoint of a query with state; name the checkpoint's own directory")
    return path


def _parts(path: str) -> tuple[str, str, str]:
    """Scheme and host, if it has any, and path."""
    scheme, host, rest = PATH.fullmatch(path).groups(default="")  # type: ignore[union-attr]
    return scheme, host, rest
