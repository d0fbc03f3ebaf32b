"""Control messages: how the driver tells every bucket of a query what to change.

A message is a line of JSON in a file of a directory that is one more source of the streaming query. So it is part of
the input: what is replayed after a failure meets the same messages at the same place.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterable
from pathlib import Path

from braid.model.plan import Plan


class Control:
    """The directory that the messages of one query go to."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)

    def send(self, plan: Plan) -> None:
        """Ask every bucket to go on with another plan; the file appears whole or not at all."""
        name = f"{secrets.token_hex(8)}.json"
        unfinished = self.directory / f".{name}"
        unfinished.write_text(json.dumps({"number": time.time_ns(), "plan": plan.written}) + "\n")
        unfinished.rename(self.directory / name)


def in_order(messages: Iterable[bytes]) -> list[bytes]:
    """The messages of a micro-batch as they were sent: Spark brings them in any order, and the last word counts."""
    return sorted(messages, key=_number)


def _number(message: bytes) -> int:
    try:
        return int(json.loads(message)["number"])
    except (ValueError, KeyError, TypeError):
        return 0
