"""Stored checkpoints, one of each format: `python -m tests.hosts.spark.stored_checkpoints` writes that of this release.

Each is an archive with streams, a checkpoint and results. Spark writes absolute paths to its files; in the archive the
directory they begin with is `ROOT`.
"""

import io
import re
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from braid.hosts.spark.driver.local_spark import local_spark
from braid.hosts.spark.driver.session import Session
from braid.runtime.manifest import FORMAT
from braid.testing.stream_files import THREE_WAY_JOIN, write_stream
from tests.hosts.conftest import Streams, read_files

ARCHIVES = Path(__file__).with_name("checkpoints")
ROOT = b"/the/directory/of/the/archive"
SHARDS = 2


def run(spark: Any, streams: Streams, root: Path, shards: int = SHARDS) -> None:
    """Run the stored query on its checkpoint until its streams are exhausted."""
    session = Session(spark)
    for name, frame in streams.frames.items():
        session.stream(name, frame, lateness="1 second")
    writer = session.sql(THREE_WAY_JOIN, shards=shards).dataframe.writeStream.option("path", str(root / "result"))
    writer = writer.option("checkpointLocation", str(root / "checkpoint"))
    writer.trigger(availableNow=True).start().awaitTermination()


def unpack(archive: Path, root: Path) -> None:
    with tarfile.open(archive) as files:
        for member in files.getmembers():
            content = files.extractfile(member)
            assert content is not None
            path = root / member.name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.read().replace(ROOT, bytes(root)))


def pack(root: Path, archive: Path) -> None:
    with tarfile.open(archive, "w:gz") as files:
        # A checksum would be wrong where the directory is another one.
        for path in sorted(path for path in root.rglob("*") if path.is_file() and path.suffix != ".crc"):
            content = path.read_bytes().replace(bytes(root), ROOT)
            content = re.sub(rb'"directory": "[^"]*"', b'"directory": "/a/program/that/has/ended"', content)
            member = tarfile.TarInfo(str(path.relative_to(root)))
            member.size = len(content)
            files.addfile(member, io.BytesIO(content))


def feed_in(spark: Any, root: Path) -> Any:
    """What `Streams` takes to read the files of the streams, which are written unless they are there."""

    def feed(name: str, table: Any, rows: int) -> Any:
        directory = root / "streams" / name
        if not directory.exists():
            write_stream(directory, table, rows)
        return read_files(spark, directory)

    return feed


def main() -> None:
    spark = local_spark(2)
    spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    with TemporaryDirectory() as directory:
        root = Path(directory).resolve()
        run(spark, Streams(feed_in(spark, root), root / "streams"), root)
        pack(root, ARCHIVES / f"format-{FORMAT}.tar.gz")
    spark.stop()


if __name__ == "__main__":
    main()
