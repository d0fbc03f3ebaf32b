"""Control messages: how the driver tells every shard of a query what to change.

Each message is a file in a directory on the driver's host. A source of the streaming query reads that directory (see
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

from braid.adapt.expectation import UNKNOWN, Expectation
from braid.hosts.spark.driver.data_sources import register
from braid.hosts.spark.shared.control_source import FORMAT, REACHED, SPREAD, ControlSource
from braid.model.plan import Plan
from braid.runtime.manifest import FORMAT as CHECKPOINT_FORMAT
from braid.runtime.spread_table import SpreadTable


class Control:
    """Writes the control messages of one query to its directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._number = 0
        """The number of the last message. Numbers are nanoseconds since 1970, and always increase."""
        directory.mkdir(parents=True, exist_ok=True)

    def send(
        self,
        plan: Plan,
        against: Plan | None = None,
        expected: Expectation = UNKNOWN,
        *,
        node: str | None = None,
    ) -> None:
        """Ask every shard, or at a site every shard of one node, to go on with another plan.

        If there is a plan `against`, the other one is on trial against it, and something is `expected` of the trial.
        """
        content: dict[str, Any] = {"plan": plan.written, "against": None if against is None else against.written}
        if against is not None:
            content["expected"] = expected.to_plain()
        if node is not None:
            content["node"] = node
        self._write(f"{secrets.token_hex(8)}.json", content)

    def spread(self, table: SpreadTable, checkpoint: str) -> None:
        """Put a table of spread keys into a checkpoint, before rows are routed by it.

        The message is for one checkpoint only: on another one, the same query may not have come as far.
        """
        self._write(f"{SPREAD}{checkpoint}-{secrets.token_hex(8)}.json", {"spread": table.to_json()})

    def withdraw_spread(self) -> None:
        """Remove tables that no run has read; a new run begins with the table in its checkpoint."""
        for path in self.directory.glob(f"{SPREAD}*"):
            path.unlink(missing_ok=True)

    def pass_idle(self, reached: Mapping[str, int], checkpoint: str) -> None:
        """Tell the shards to take idle streams to have reached these event times, in microseconds.

        The message is for one checkpoint only: on another one, the same query may not have come as far. It replaces an
        earlier message that was not read yet.
        """
        self._write(f"{REACHED}{checkpoint}.json", {"reached": reached})

    def _write(self, name: str, message: Mapping[str, Any]) -> None:
        """Write a message; its file appears completely written or not at all."""
        self.directory.mkdir(parents=True, exist_ok=True)  # Shared memory may have been cleared.
        self._number = max(time.time_ns(), self._number + 1)
        unfinished = self.directory / f".{name}"
        unfinished.write_text(json.dumps({"number": self._number, **message}) + "\n")
        # Files are read in the order of their times, and the clock of a file system may give two files the same.
        os.utime(unfinished, ns=(self._number, self._number))
        unfinished.replace(self.directory / name)

    def messages(self, spark: SparkSession, query: Mapping[str, Any]) -> DataFrame:
        """The messages as a stream, in one column `value`; `query` is the fingerprint of the query."""
        register(spark, ControlSource)
        reader = spark.readStream.format(FORMAT).option("query", json.dumps(query)).option("format", CHECKPOINT_FORMAT)
        return reader.load(str(self.directory))


def control_offset(offsets: Iterable[str]) -> dict[str, Any] | None:
    """The offset of the first control source among the offsets of all sources; None if there is none."""
    for text in offsets:
        offset = json.loads(text) if text.startswith("{") else None
        if isinstance(offset, dict) and {"directory", "messages", "checkpoint"} <= offset.keys():
            return offset
    return None


def checkpoint_of(offsets: Iterable[str]) -> str:
    """The identifier of a checkpoint, found in the offsets of its sources.

    Each control source in the query has an identifier of its own; together they identify the checkpoint.
    """
    return "-".join(re.findall(r'"checkpoint": ?"(\w+)"', "\n".join(offsets)))
