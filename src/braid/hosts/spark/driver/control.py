"""Control messages: how the driver tells every shard of a query what to change.

Whoever sends one writes a file on the driver's host, where one more source of the streaming query finds it (see
`control_source`).
"""

from __future__ import annotations

import json
import os
import re
import secrets
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from braid.hosts.spark.shared.control_source import FORMAT, REACHED, ControlSource
from braid.model.plan import Plan


class Control:
    """The directory that the messages of one query go to."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._number = 0
        directory.mkdir(parents=True, exist_ok=True)

    def send(self, plan: Plan) -> None:
        """Ask every shard to go on with another plan."""
        self._write(f"{secrets.token_hex(8)}.json", {"plan": plan.written})

    def pass_idle(self, reached: Mapping[str, int], checkpoint: str) -> None:
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
