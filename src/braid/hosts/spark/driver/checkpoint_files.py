"""The files of a checkpoint, on any file system that Spark can write."""

from __future__ import annotations

import json
from typing import Any

from pyspark.sql import SparkSession

from braid.errors import FileError
from braid.hosts.spark.driver.checkpoint_log import file_system, last_batch
from braid.hosts.spark.driver.control import control_offset


class CheckpointFiles:
    """A directory on a Hadoop file system; names are relative to it."""

    def __init__(self, spark: SparkSession, root: str) -> None:
        self._jvm: Any = spark._jvm
        self._spark = spark
        self._files, path = file_system(spark, root)
        self.root: str = str(self._files.makeQualified(path).toString())
        """The directory with its scheme, as Spark writes it to its own files."""

    def exists(self, name: str = "") -> bool:
        return bool(self._files.exists(self._path(name)))

    def names(self, name: str = "") -> list[str]:
        """The names of the files and directories in a directory, without checksums; none if it does not exist."""
        if not self.exists(name):
            return []
        names = [str(status.getPath().getName()) for status in self._files.listStatus(self._path(name))]
        return sorted(name for name in names if not name.startswith("."))

    def all_files(self, name: str) -> list[str]:
        """The names of all files below a directory, without checksums."""
        listed = self._files.listFiles(self._path(name), True)
        paths = []
        while listed.hasNext():
            paths.append(str(listed.next().getPath().toString()).removeprefix(f"{self.root}/"))
        return sorted(path for path in paths if not path.rpartition("/")[2].startswith("."))

    def read(self, name: str) -> str:
        stream = self._files.open(self._path(name))
        try:
            return str(self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        finally:
            stream.close()

    def write(self, name: str, text: str) -> None:
        """Write a file that does not exist yet; its directory is made."""
        stream = self._files.create(self._path(name), False)
        try:
            stream.write(bytearray(text.encode()))
        finally:
            stream.close()

    def copy_from(self, other: CheckpointFiles, name: str, new_name: str | None = None) -> None:
        """Copy a file or a whole directory."""
        configuration = self._spark._jsparkSession.sessionState().newHadoopConf()
        source, target = other._path(name), self._path(name if new_name is None else new_name)
        self._files.mkdirs(target.getParent())
        self._jvm.org.apache.hadoop.fs.FileUtil.copy(other._files, source, self._files, target, False, configuration)

    def rename(self, root: str) -> bool:
        """Give the whole directory another path on the same file system; returns whether that worked."""
        target = self._jvm.org.apache.hadoop.fs.Path(root)
        return not self._files.exists(target) and bool(self._files.rename(self._path(""), target))

    def remove(self) -> None:
        """Remove the whole directory."""
        self._files.delete(self._path(""), True)

    def _path(self, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(f"{self.root}/{name}" if name else self.root)


def source_offsets(files: CheckpointFiles, batch: int) -> list[str]:
    """The offsets of all sources in a batch of a checkpoint; `FileError` if they are not all there."""
    name = f"offsets/{batch}"
    # The first two lines are a version and settings; then there is a line for each source.
    lines = files.read(name).splitlines()
    try:
        for line in lines[1:]:
            if line.startswith("{"):
                json.loads(line)
        if len(lines) < 3:
            raise ValueError
    except ValueError:
        raise FileError(
            f"{files.root} is damaged: {name} is half written; use a copy of the checkpoint, or begin with a new one"
        ) from None
    return lines[2:]


def last_control_offsets(spark: SparkSession, checkpoint: str) -> list[dict[str, Any]]:
    """The offsets of all control sources in the last batch of a checkpoint; none if there is no batch."""
    batch = last_batch(spark, f"{checkpoint}/offsets")
    if batch < 0:
        return []
    lines = source_offsets(CheckpointFiles(spark, checkpoint), batch)
    return [offset for offset in (control_offset([line]) for line in lines) if offset is not None]
