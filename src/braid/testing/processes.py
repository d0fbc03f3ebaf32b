"""Helpers for tests that start programs in processes of their own."""

from __future__ import annotations

import os
from pathlib import Path


def is_alive(process_group: int) -> bool:
    """Whether any process of a group is left. Spark's Java ends a moment after the process that started it."""
    try:
        os.killpg(process_group, 0)
    except ProcessLookupError:
        return False
    return True


def path_without_java(directory: Path) -> str:
    """A PATH without Java: a new directory with links to all other programs on the PATH."""
    directory.mkdir()
    for entry in map(Path, os.environ["PATH"].split(os.pathsep)):
        for program in entry.iterdir() if entry.is_dir() else ():
            link = directory / program.name
            if program.name != "java" and not link.is_symlink():
                link.symlink_to(program)
    return str(directory)
