"""A PATH without Java, to test what happens on a machine that has none."""

import os
from pathlib import Path


def path_without_java(directory: Path) -> str:
    """A new directory with links to all programs on the PATH except Java."""
    directory.mkdir()
    for entry in map(Path, os.environ["PATH"].split(os.pathsep)):
        for program in entry.iterdir() if entry.is_dir() else ():
            if program.name != "java" and not (directory / program.name).is_symlink():
                (directory / program.name).symlink_to(program)
    return str(directory)
