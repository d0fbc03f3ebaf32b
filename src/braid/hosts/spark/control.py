"""Control messages: how the driver tells every bucket of a query what to change.

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

from braid.errors import BraidError
from braid.hosts.spark.control_source import FORMAT, REACHED, ControlSource
from braid.model.plan import Plan
from braid.model.window import FOREVER


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
