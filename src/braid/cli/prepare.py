"""`braid prepare`: make a local Spark start faster."""

from __future__ import annotations

from braid.cli.commands import progress, screen, spark_log


def prepare() -> None:
    """Make every local Spark of this Python environment start several seconds faster.

    Runs two small queries, and keeps the Java classes that Spark has loaded in an archive of 220 MB, in the
    environment. Call it again after an update of Spark or Java.
    """
    with spark_log() as log:
        from braid.hosts.spark.driver.archive_making import make_archive
        from braid.hosts.spark.driver.class_archive import ARCHIVE

        with progress.status("running queries, and archiving the classes that Spark loads"):
            is_used = make_archive(log)
    if is_used:
        screen.print(f"Spark starts with the classes in {ARCHIVE}", soft_wrap=True)
    else:
        screen.print("this Java cannot use an archive of Spark's classes, as Java 17 can; Spark starts as before")
