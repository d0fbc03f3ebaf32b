"""Control messages: how the driver tells every bucket of a query what to change.

Whoever sends one writes a file on the driver's host. One more source of the streaming query reads it there, and hands
the message on in its offset, which Spark writes to the checkpoint before the batch begins. So it is part of the input:
a batch that is run again meets the same messages, whatever has become of the files, and no other host sees them.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, SimpleDataSourceStreamReader
from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from braid.errors import BraidError
from braid.model.plan import Plan
from braid.model.window import FOREVER

FORMAT = "braid_control"

REACHED = "reached-"
"""How the names of files begin that are meant for one checkpoint; what that is known by follows."""


class Control:
    """The directory that the messages of one query go to."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._number = 0
        directory.mkdir(parents=True, exist_ok=True)

    def send(self, plan: Plan) -> None:
        """Ask every bucket to go on with another plan."""
        self._write(f"{secrets.token_hex(8)}.json", {"plan": plan.written})

    def pass_silent(self, reached: Mapping[str, int], checkpoint: str) -> None:
        """Take streams to have come so far, in microseconds; what nobody has read of earlier ones is out of date.

        It is meant for one checkpoint: whoever runs the query on another may have come less far.
        """
        self._write(f"{REACHED}{checkpoint}.json", {"reached": reached})

    def _write(self, name: str, message: Mapping[str, Any]) -> None:
        """The file appears whole or not at all."""
        self.directory.mkdir(parents=True, exist_ok=True)  # Shared memory may have been cleared.
        self._number = max(time.time_ns(), self._number + 1)
        unfinished = self.directory / f".{name}"
        unfinished.write_text(json.dumps({"number": self._number, **message}) + "\n")
        # The clock of a file system may give two files in a row one time, and they are read in the order of theirs.
        os.utime(unfinished, ns=(self._number, self._number))
        unfinished.replace(self.directory / name)

    def messages(self, spark: SparkSession) -> DataFrame:
        """The messages as a stream, in one column `value`."""
        spark.dataSource.register(ControlSource)
        return spark.readStream.format(FORMAT).load(str(self.directory))


def checkpoint_of(offsets: Iterable[str]) -> str:
    """What a checkpoint is known by, from the offsets of all its sources: each source of messages has a word for it."""
    return "-".join(word for offset in offsets for word in re.findall(r'"checkpoint": ?"(\w+)"', offset))


def in_order(messages: Iterable[bytes]) -> list[bytes]:
    """The messages of a micro-batch as they were sent: Spark brings them in any order, and the last word counts."""
    return sorted(messages, key=_number)


def _number(payload: bytes) -> int:
    try:
        number = parse_message(payload).get("number")
    except BraidError:
        return 0
    return number if isinstance(number, int) else 0


def parse_message(payload: bytes) -> dict[str, Any]:
    """What a message asks for: a `plan`, or to take streams to have `reached` a time. Anything else is a `BraidError`.

    It is in the checkpoint by now: what a bucket failed at, it would meet again at every start.
    """
    try:
        message = json.loads(payload)
    except (ValueError, RecursionError) as problem:
        raise BraidError(f"it is no JSON: {problem}") from problem
    if not isinstance(message, dict) or not (message.get("plan") is not None or _are_times(message.get("reached"))):
        raise BraidError('it has neither a "plan" nor a time in microseconds that each of some streams has "reached"')
    return message


def _are_times(reached: object) -> bool:
    return isinstance(reached, dict) and all(type(time) is int and abs(time) <= FOREVER for time in reached.values())


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
    `checkpoint` the driver, which sees the offset too, knows whom it is from.
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
        if not found:
            return iter(()), start
        found.sort()
        lines = [line for _, text in found for line in text.splitlines()]
        end = {**start, "directory": str(self._directory), "last": list(found[-1][0]), "messages": lines}
        return self.readBetweenOffsets(start, end), end

    def readBetweenOffsets(self, start: dict[str, Any], end: dict[str, Any]) -> Iterator[tuple[str]]:  # noqa: N802
        return iter([(message,) for message in end["messages"]] if start != end else [])

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Messages are few, and meant for the run that they are sent to: those that come later are taken as well.

        Without this method Spark would take everything there is, of all streams, in one batch.
        """
