"""Paths of files, directories and checkpoints as Hadoop writes them: on this machine, or on another file system."""

from __future__ import annotations

import os
import re
from pathlib import Path

from braid.errors import FileError

LOCAL_SCHEMES = ("", "file")
"""Schemes of paths on this machine."""

PATH = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.-]*):)?(?://([^/]*))?(.*)", re.DOTALL)
"""Scheme, host and path, as Hadoop splits them. Unlike a URL, a Hadoop path has no query and no fragment."""


def resolved(path: str, directory: Path) -> str:
    """The path made absolute: without a scheme it is relative to the directory."""
    scheme, _, _ = _split(path)
    return path if scheme else str(directory.resolve() / path)


def on_this_machine(path: str) -> Path | None:
    """The path on this machine; None if it is on another file system."""
    scheme, _, rest = _split(path)
    return Path(rest) if scheme in LOCAL_SCHEMES else None


def identity(path: str) -> str:
    """The path in one spelling: equal for two paths that name the same directory."""
    scheme, host, rest = _split(path)
    normal = os.path.normpath(rest)
    return os.path.realpath(normal) if scheme in LOCAL_SCHEMES else f"{scheme}://{host}{normal}"


def checkpoint_at(path: str) -> str:
    """The absolute path of a checkpoint; `FileError` if it is on this machine and holds no state."""
    absolute = resolved(path, Path.cwd())
    local = on_this_machine(absolute)
    if local is not None and not (local / "state").is_dir():
        raise FileError(f"{absolute} is not the checkpoint of a query; name the directory given as 'checkpoint'")
    return absolute


def _split(path: str) -> tuple[str, str, str]:
    """Scheme, host and path; scheme and host may be empty."""
    scheme, host, rest = PATH.fullmatch(path).groups(default="")  # type: ignore[union-attr]
    return scheme, host, rest
