"""Control messages as a source of a streaming query.

The source reads the files of messages on the driver's host. It puts the messages themselves into its offset, which
Spark writes to the checkpoint before the batch begins. So the messages are part of the input: a batch that is run again
gets the same messages, even if the files are gone, and no other host needs the files.

Spark loads this module in several short-lived Python processes, so it imports as little as possible.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from pyspark.sql.datasource import DataSource, SimpleDataSourceStreamReader
from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

FORMAT = "braid_control"

REACHED, SPREAD = "reached-", "spread-"
"""The prefixes of files whose message is for one checkpoint only. The identifier of the checkpoint follows."""

GREETING = '{"reached": {}}'
"""A message that asks for nothing: it passes no idle stream."""


UNNUMBERED = 5
"""The format of checkpoints whose offsets do not say which they have, and name no query."""


class ControlSource(DataSource):
    """The source as Spark knows it.

    The option `path` is the directory of the messages, `query` the fingerprint of the query as JSON, and `format` the
    format of its checkpoint.
    """

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return "value string"

    def simpleStreamReader(self, schema: StructType) -> ControlReader:  # noqa: N802
        return ControlReader(Path(self.options["path"]), json.loads(self.options["query"]), int(self.options["format"]))


def check_offset(offset: Mapping[str, Any], query: Mapping[str, Any]) -> None:
    """Refuse with a `BraidError` to go on from an offset of another format, or of another query than this."""
    from braid.runtime.fingerprint import check_fingerprint
    from braid.runtime.manifest import check_format

    check_format(offset.get("format", UNNUMBERED))
    check_fingerprint(offset["query"], query)


def is_another_query(offset: Mapping[str, Any], query: Mapping[str, Any]) -> bool:
    """Whether an offset is of a query with another meaning than this."""
    from braid.runtime.fingerprint import fingerprint_change

    return fingerprint_change(offset["query"], query) is not None


def spread_table_in(message: str) -> str | None:
    """The table of spread keys in a message, if it has one."""
    try:
        table = json.loads(message)["spread"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    return table if isinstance(table, str) else None


class ControlReader(SimpleDataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads files in the order of their modification times; each line is a message.

    An offset has these fields:

    - `directory` and `last`: the directory that was read, and the time and name of the last file read there. A query
      that another program starts again has another directory, of which no file has been read.
    - `messages`: those of the last batch that had any.
    - `checkpoint`: an identifier of the checkpoint, by which the driver addresses messages to it.
    - `spread`: the last table of spread keys, as text; missing if no key was ever spread.
    - `format` and `query`: the format of the checkpoint, and the fingerprint of its query. Spark asks for new offsets
      before every batch, also if there is no input: so another query on the checkpoint is refused at once, or its
      fingerprint is in the offsets from now on.

    A new checkpoint gets a greeting as its first message, and so does one that a changed query goes on with. The first
    message of a run makes Spark start a Python process; thanks to the greeting, the first plan change does not have to
    wait for that.
    """

    def __init__(self, directory: Path, query: Mapping[str, Any], checkpoint_format: int) -> None:
        self._directory = directory
        self._query = query
        self._format = checkpoint_format
        self._accepted: Mapping[str, Any] = query
        """The fingerprint in the checkpoint, once it is known that the query can go on with it."""
        self._new_checkpoint = secrets.token_hex(8)

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        return {
            "directory": "",
            "last": [0, ""],
            "messages": [],
            "checkpoint": self._new_checkpoint,
            "format": self._format,
            "query": self._query,
        }

    def read(self, start: dict[str, Any]) -> tuple[Iterator[tuple[str]], dict[str, Any]]:
        is_changed = False
        if start.get("query") != self._accepted:
            check_offset(start, self._query)
            is_changed = is_another_query(start, self._query)
            self._accepted = self._query if is_changed else start["query"]
        last = tuple(start["last"]) if start["directory"] == str(self._directory) else (0, "")
        files = self._newer_files(last, start.get("checkpoint", ""))
        lines = [line for _, text in files for line in text.splitlines()]
        if not lines and (is_changed or not start["directory"]):
            lines = [GREETING]
        if not lines and not files:
            return iter(()), start
        if files:
            last = files[-1][0]
        end = {**start, "directory": str(self._directory), "last": list(last), "messages": lines}
        end["query"] = self._accepted
        tables = [table for table in map(spread_table_in, lines) if table is not None]
        if tables:
            end["spread"] = tables[-1]
        return self.readBetweenOffsets(start, end), end

    def _newer_files(self, last: tuple[int, str], checkpoint: str) -> list[tuple[tuple[int, str], str]]:
        """The files for this checkpoint after `last`, in order: modification time and name, and content."""
        files = []
        for path in self._directory.glob("[!.]*"):
            if path.name.startswith((REACHED, SPREAD)) and checkpoint not in path.name:
                continue
            with suppress(OSError):  # Shared memory may be cleared at the same time.
                time_and_name = (path.stat().st_mtime_ns, path.name)
                if time_and_name > last:
                    files.append((time_and_name, path.read_text(errors="replace")))
        return sorted(files)

    def readBetweenOffsets(self, start: dict[str, Any], end: dict[str, Any]) -> Iterator[tuple[str]]:  # noqa: N802
        return iter([(message,) for message in end["messages"]] if start != end else [])

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Do nothing: messages that come after the start of the run are read too.

        The method must exist, because without it Spark would take all rows of all streams in a single batch.
        """
