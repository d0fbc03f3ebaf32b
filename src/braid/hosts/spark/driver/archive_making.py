"""Makes an archive of the Java classes that a local Spark loads, which Java maps into memory instead of reading jars.

A third of what Java does until the first result is to read, check and link some 18,000 classes. Java can keep them in
an archive ("class data sharing"). It is made once for each Python environment, and `local_spark` starts every Java with
it. Java itself refuses an archive that another Java or other jars have made, and then starts as if there were none.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from braid.errors import FileError, RunError, reason_of
from braid.hosts.spark.driver.class_archive import ARCHIVE
from braid.hosts.spark.driver.local_spark import end_java, local_spark
from braid.hosts.spark.driver.session import Session

QUERIES = (
    "SELECT a.v, b.v AS w, c.v AS x FROM a [RANGE 10 SECONDS], b [RANGE 10 SECONDS], c [RANGE 10 SECONDS] "
    "WHERE a.k = b.k AND b.k = c.k",
    "SELECT a.k, count(*) AS n FROM a [RANGE 10 SECONDS], b [RANGE 10 SECONDS] WHERE a.k = b.k "
    "GROUP BY a.k, WINDOW(event_time, '10 seconds')",
)
"""What Spark runs while Java notes the classes that it loads."""


def make_archive(log: Path | None = None, archive: Path = ARCHIVE) -> bool:
    """Run small queries on a Spark of its own, and archive the classes that were loaded. Takes half a minute.

    False if this Java does not use the archive, which then is not kept. Java 21 refuses every archive of a class path
    that names a jar twice, and Spark's does.

    `log` is the file for Spark's log, by default standard error. No Spark may run in this process yet.
    """
    try:
        archive.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=archive.parent) as directory:
            classes, unfinished = Path(directory, "classes"), Path(directory, "archive")
            class_path = _note_classes(classes, Path(directory), log)
            _dump(classes, class_path, unfinished)
            if not _is_usable(unfinished, class_path):
                return False
            unfinished.replace(archive)
            return True
    except OSError as error:
        raise FileError(
            f"cannot write {archive}: {reason_of(error)}; call this as the owner of the Python environment {sys.prefix}"
        ) from error


def _note_classes(classes: Path, directory: Path, log: Path | None) -> str:
    """Write the names of the classes that Spark loads for the queries; returns Java's class path."""
    note = f"-Xss16m -XX:DumpLoadedClassList={classes}"
    session = Session(local_spark(settings={"spark.driver.defaultJavaOptions": note}, log=log), adapt=False)
    for name in "abc":
        _write_rows(directory / name)
        frame = session.spark.readStream.schema("ts TIMESTAMP, k BIGINT, v STRING").parquet(str(directory / name))
        session.stream(name, frame)
    for number, text in enumerate(QUERIES):
        writer = session.sql(text).dataframe.writeStream.format("parquet").trigger(availableNow=True)
        writer = writer.option("checkpointLocation", str(directory / f"checkpoint-{number}"))
        writer.start(str(directory / f"results-{number}")).awaitTermination()
    class_path = str(session.spark._jvm.java.lang.System.getProperty("java.class.path"))  # type: ignore[union-attr]
    session.spark.stop()
    end_java()
    return class_path


def _write_rows(directory: Path) -> None:
    begin = datetime(2024, 1, 1)
    times = pa.array([begin + timedelta(seconds=second) for second in range(60)], pa.timestamp("us", "UTC"))
    directory.mkdir()
    pq.write_table(pa.table({"ts": times, "k": range(60), "v": list(map(str, range(60)))}), directory / "0.parquet")


def _dump(classes: Path, class_path: str, archive: Path) -> None:
    dumped = _run_java("-Xshare:dump", f"-XX:SharedClassListFile={classes}", archive, class_path)
    if dumped.returncode != 0 or not archive.exists():
        last_words = "\n".join((dumped.stdout + dumped.stderr).splitlines()[-5:])
        raise RunError(f"Java made no archive of its classes (exit code {dumped.returncode}):\n{last_words}")


def _is_usable(archive: Path, class_path: str) -> bool:
    # With -Xshare:on Java does not start if it cannot use the archive.
    return _run_java("-Xshare:on", "-version", archive, class_path).returncode == 0


def _run_java(mode: str, action: str, archive: Path, class_path: str) -> subprocess.CompletedProcess[str]:
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else "java"
    command = [java, mode, f"-XX:SharedArchiveFile={archive}", "-cp", class_path, action]
    return subprocess.run(command, capture_output=True, text=True)
