"""What the records of a channel mean: its batches, its subscribers, and what is removed.

The log decides, and all processes read it alike. A mark counts if its batch follows the newest one before it in the
log: so the first mark of a batch counts, and of two publishers one loses. Which batches are removed follows from the
subscribers and their releases. Older records can be deleted when a snapshot behind them says what they have made. A
snapshot counts only if it lies where it says, because otherwise records came before it that its author did not know.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from braid.channels.batch import NONE, Entry, Head
from braid.channels.kafka.records import Record
from braid.channels.retention import Subscribers, unneeded
from braid.errors import ChannelError
from braid.model.window import FOREVER

MARK, SUBSCRIBE, RELEASE, UNSUBSCRIBE = "mark", "subscribe", "release", "unsubscribe"
KEEP, SNAPSHOT, END = "keep", "snapshot", "end"
"""The keys of records. That of a mark has the number of its batch, too."""

ATTEMPT, CHUNKS = "attempt", "chunks"
"""The headers of a mark: who has written it, and the offsets of the chunks with the rows."""


@dataclass(frozen=True)
class Mark:
    """The record that says that a batch is there, with the head of the batch."""

    offset: int
    attempt: str
    chunks: tuple[range, ...]
    """Offsets in the partition of rows."""
    data: bytes
    head: Head

    @property
    def entry(self) -> Entry:
        return self.head.entry


class ChannelState:
    """A channel after some records of its log."""

    def __init__(self, channel: str, first: int) -> None:
        """`first` is the offset of the first record that is still there."""
        self.channel = channel
        self.marks: dict[int, Mark] = {}
        """The batches that are not removed, oldest first."""
        self.last: Mark | None = None
        self.removed = NONE
        """The newest batch that is removed, with all before it."""
        self.unneeded_rows = 0
        """The offset up to which rows belong to removed batches."""
        self.keep = 0
        self.subscribers = Subscribers()
        self.ended = False
        """Whether the channel was removed."""
        self.since_snapshot = 0
        """How many records came after the last snapshot."""
        self._first = first
        self._complete = first == 0

    def check_complete(self) -> None:
        """Refuse a log whose beginning is gone without a snapshot that replaces it."""
        if not self._complete:
            raise ChannelError(
                f"channel '{self.channel}' has no record before record {self._first} of its topic, and no snapshot "
                "that replaces them: the topic must have no limit by time or size; restore it, or start anew"
            )

    def apply(self, record: Record) -> None:
        kind, _, number = record.key.decode(errors="replace").partition(" ")
        if kind == MARK and number.isdecimal():
            self._take(self._parsed(record, int(number)))
        elif kind == SNAPSHOT:
            self._restore(self._content(record), record.offset)
        elif kind in CHANGES:
            CHANGES[kind](self, self._content(record))
        else:
            raise self._foreign(record)
        self.since_snapshot += 1

    def snapshot(self, offset: int) -> bytes:
        """What the records before an offset have made, but for the batches that are not removed."""
        content = {
            "offset": offset,
            "keep": self.keep,
            "removed": self.removed,
            "released": self.subscribers.released,
            "last": None if self.last is None else _to_json(self.last),
        }
        return json.dumps(content).encode()

    @property
    def oldest_needed(self) -> int:
        """The offset of the oldest record that is needed if a snapshot follows."""
        return min((mark.offset for mark in self.marks.values()), default=FOREVER)

    def attempt(self, number: int) -> str | None:
        """Who has published a batch; None if it is not there any more."""
        mark = self.last if self.last is not None and self.last.entry.number == number else self.marks.get(number)
        return None if mark is None else mark.attempt

    def _take(self, mark: Mark) -> None:
        newest = NONE if self.last is None else self.last.entry.number
        begins = self.last is None and not self._complete
        if begins or mark.entry.previous == newest:
            self.last = self.marks[mark.entry.number] = mark

    def _subscribe(self, content: dict[str, Any]) -> None:
        self.subscribers.add(content["subscriber"], content["after"])

    def _release(self, content: dict[str, Any]) -> None:
        if self.subscribers.release(content["subscriber"], content["upto"]):
            self._remove_unneeded()

    def _unsubscribe(self, content: dict[str, Any]) -> None:
        if self.subscribers.remove(content["subscriber"]):
            self._remove_unneeded()

    def _lengthen(self, content: dict[str, Any]) -> None:
        self.keep = max(self.keep, content["keep"])

    def _end(self, content: dict[str, Any]) -> None:
        self.ended = True
        self.marks.clear()

    def _remove_unneeded(self) -> None:
        # Before the snapshot it is not known who has subscribed; the snapshot says what was removed.
        if self.last is None or not self._complete:
            return
        entries = (mark.entry for mark in self.marks.values())
        for entry in unneeded(entries, self.subscribers.released_by_all, self.keep, self.last.entry.watermark):
            self._remove(entry.number)

    def _remove(self, number: int) -> None:
        mark = self.marks.pop(number)
        self.removed = number
        for chunks in mark.chunks:
            self.unneeded_rows = max(self.unneeded_rows, chunks.stop)

    def _restore(self, content: dict[str, Any], offset: int) -> None:
        if content["offset"] != offset:
            return
        last = content["last"]
        self.keep = content["keep"]
        self.subscribers = Subscribers(content["released"])
        for number in [number for number in self.marks if number <= content["removed"]]:
            self._remove(number)
        self.removed = content["removed"]
        self.last = None if last is None else self._from_json(last)
        self._complete = True
        self.since_snapshot = 0

    def _parsed(self, record: Record, number: int) -> Mark:
        head = Head.from_bytes(record.value or b"", self.channel, number)
        try:
            chunks = chunks_of(record.headers[CHUNKS].decode())
            attempt = record.headers[ATTEMPT].decode()
        except (KeyError, ValueError) as error:
            raise ChannelError(
                f"batch {number} of channel '{self.channel}' is damaged: its mark does not tell its chunks; restore it"
            ) from error
        return Mark(record.offset, attempt, chunks, record.value or b"", head)

    def _from_json(self, content: dict[str, Any]) -> Mark:
        data = base64.b64decode(content["head"])
        head = Head.from_bytes(data, self.channel, content["number"])
        return Mark(content["offset"], content["attempt"], chunks_of(content["chunks"]), data, head)

    def _content(self, record: Record) -> dict[str, Any]:
        try:
            return dict(json.loads(record.value or b""))
        except (ValueError, TypeError) as error:
            raise self._foreign(record) from error

    def _foreign(self, record: Record) -> ChannelError:
        return ChannelError(
            f"channel '{self.channel}' has a record {record.offset} with the key {record.key!r} that it cannot read; "
            "only Braid may write to its topic: restore it, or start anew"
        )


CHANGES: dict[str, Callable[[ChannelState, dict[str, Any]], None]] = {
    SUBSCRIBE: ChannelState._subscribe,
    RELEASE: ChannelState._release,
    UNSUBSCRIBE: ChannelState._unsubscribe,
    KEEP: ChannelState._lengthen,
    END: ChannelState._end,
}


def chunks_text(offsets: Iterable[int]) -> str:
    """Offsets as a text that is short if they are consecutive.

    >>> chunks_text([3, 4, 5, 9])
    '3-5 9-9'
    """
    runs = (list(run) for _, run in groupby(enumerate(offsets), lambda pair: pair[1] - pair[0]))
    return " ".join(f"{run[0][1]}-{run[-1][1]}" for run in runs)


def chunks_of(text: str) -> tuple[range, ...]:
    """What `chunks_text` has written.

    >>> chunks_of("3-5 9-9")
    (range(3, 6), range(9, 10))
    """
    ends = (part.split("-") for part in text.split())
    return tuple(range(int(first), int(last) + 1) for first, last in ends)


def _to_json(mark: Mark) -> dict[str, Any]:
    return {
        "number": mark.entry.number,
        "offset": mark.offset,
        "attempt": mark.attempt,
        "chunks": chunks_text(offset for chunks in mark.chunks for offset in chunks),
        "head": base64.b64encode(mark.data).decode(),
    }
