"""Writes the stored checkpoint of this release: `python -m tests.hosts.spark.stored_checkpoints`.

It is an archive with streams, a checkpoint and results. Spark writes absolute paths to its files; in the archive the
directory they begin with is `ROOT`.
"""

import io
import re
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory

from braid.hosts.spark.driver.local_spark import local_spark
from braid.runtime.manifest import FORMAT
from tests.hosts.conftest import Streams
from tests.hosts.spark.conftest import ARCHIVES, ROOT, feed_in, run_stored_query


def pack(root: Path, archive: Path) -> None:
    with tarfile.open(archive, "w:gz") as files:
        # A checksum would be wrong where the directory is another one.
        for path in sorted(path for path in root.rglob("*") if path.is_file() and path.suffix != ".crc"):
            content = path.read_bytes().replace(bytes(root), ROOT)
            content = re.sub(rb'"directory": "[^"]*"', b'"directory": "/a/program/that/has/ended"', content)
            member = tarfile.TarInfo(str(path.relative_to(root)))
            member.size = len(content)
            files.addfile(member, io.BytesIO(content))


def main() -> None:
    spark = local_spark(2)
    spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    with TemporaryDirectory() as directory:
        root = Path(directory).resolve()
        run_stored_query(spark, Streams(feed_in(spark, root), root / "streams"), root)
        pack(root, ARCHIVES / f"format-{FORMAT}.tar.gz")
    spark.stop()


if __name__ == "__main__":
    main()
