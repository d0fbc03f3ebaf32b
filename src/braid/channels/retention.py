"""Which batches a channel still has to keep, and how many a reader takes at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import takewhile

from braid.channels.batch import Entry
from braid.model.window import FOREVER


class Subscribers:
    """How far each subscriber has released a channel."""

    def __init__(self, released: Mapping[str, int] | None = None) -> None:
        self.released = dict(released or {})

    def add(self, subscriber: str, after: int) -> bool:
        """Add a subscriber; False if it is there already, wherever that is."""
        if subscriber in self.released:
            return False
        self.released[subscriber] = after
        return True

    def release(self, subscriber: str, upto: int) -> bool:
        """Move a subscriber on, never back; False if there is none of this name or it was there already."""
        if subscriber not in self.released or self.released[subscriber] >= upto:
            return False
        self.released[subscriber] = upto
        return True

    def remove(self, subscriber: str) -> bool:
        return self.released.pop(subscriber, None) is not None

    @property
    def released_by_all(self) -> int:
        return min(self.released.values(), default=FOREVER)


def unneeded(entries: Iterable[Entry], released: int, keep: int, watermark: int) -> list[Entry]:
    """The oldest batches of a channel that nobody reads any more: no subscriber, and no newcomer to fill a window."""
    return list(takewhile(lambda entry: entry.number <= released and entry.newest + keep <= watermark, entries))


def within_bytes(entries: Iterable[Entry], most_bytes: int | None) -> list[Entry]:
    """The first batches, of at most `most_bytes` together; the very first one whatever its size."""
    chosen: list[Entry] = []
    total = 0
    for entry in entries:
        total += entry.bytes
        if chosen and most_bytes is not None and total > most_bytes:
            break
        chosen.append(entry)
    return chosen
