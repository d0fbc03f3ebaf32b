"""Java starts a local Spark from an archive of its classes, if there is one. `archive_making.py` makes it."""

from __future__ import annotations

import sys
from pathlib import Path

ARCHIVE = Path(sys.prefix) / "share" / "braid" / "spark.jsa"
"""In the Python environment, because an archive fits the jars of one installed Spark only."""


def archive_options(archive: Path = ARCHIVE) -> str:
    """The options that start Java with the archive, if there is one; Java keeps silent if it cannot use it."""
    return f'"-XX:SharedArchiveFile={archive}" -Xshare:auto -Xlog:cds*=off' if archive.exists() else ""
