"""Control messages as a source of a streaming query.

It reads the files that messages are sent in, on the driver's host, and hands the messages on in its offset, which Spark
writes to the checkpoint before the batch begins. So they are part of the input: a batch that is run again meets the
same messages, whatever has become of the files, and no other host sees them.

Spark loads this module in several Python processes, each for one question, so it imports next to nothing.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from pyspark.sql.datasource import DataSource, SimpleDataSourceStreamReader
from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

FORMAT = "braid_control"

REACHED = "reached-"
"""How the names of files begin that are meant for one checkpoint; what that is known by follows."""

GREETING = '{"reached": {}}'
"""A message that asks for nothing: no stream is taken to have reached any time."""


class ControlSource(DataSource):
    """The source as Spark knows it; `path` is the directory."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return "value string"

    def simpleStreamReader(self, schema: StructType) -> ControlReader:  # noqa: N802
        return ControlReader(Path(self.options["path"]))


class ControlReader(SimpleDataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads files in the order of their times, each line a message.

    An offset tells the last file of which directory was read, and has the messages of the last batch that had any. A
    query that is started again by another program has another directory, of which nothing has been read. By
    `checkpoint` the driver, which sees the offset too, knows whom it is from. On a new checkpoint there is a message
    from the start: the first one of a run has Spark start a Python process, and a change of plan would wait for it.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._new_checkpoint = secrets.token_hex(8)

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        return {"directory": "", "last": [0, ""], "messages": [], "checkpoint": self._new_checkpoint}

    def read(self, start: dict[str, Any]) -> tuple[Iterator[tuple[str]], dict[str, Any]]:
        known = tuple(start["last"]) if start["directory"] == str(self._directory) else (0, "")
        found = []
        for path in self._directory.glob("[!.]*"):
            if path.name.startswith(REACHED) and start.get("checkpoint", "") not in path.name:
                continue
            with suppress(OSError):  # Whoever clears shared memory may be at it.
                file = (path.stat().st_mtime_ns, path.name)
                if file > known:
                    found.append((file, path.read_text(errors="replace")))
        found.sort()
        lines = [line for _, text in found for line in text.splitlines()]
        if not (lines or start["directory"]):
            lines = [GREETING]
        if not (lines or found):
            return iter(()), start
        last = found[-1][0] if found else known
        end = {**start, "directory": str(self._directory), "last": list(last), "messages": lines}
        return self.readBetweenOffsets(start, end), end

    def readBetweenOffsets(self, start: dict[str, Any], end: dict[str, Any]) -> Iterator[tuple[str]]:  # noqa: N802
        return iter([(message,) for message in end["messages"]] if start != end else [])

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Messages are few, and meant for the run that they are sent to: those that come later are taken as well.

        Without this method Spark would take everything there is, of all streams, in one batch.
        """
