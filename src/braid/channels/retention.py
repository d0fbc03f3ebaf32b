"""Which batches a channel still has to keep, and how many a reader takes at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


class Subscribers:
    """How far each subscriber has released a channel. Without subscribers nothing is removed."""

    def __init__(self, released: Mapping[str, int] | None = None) -> None:
        self.released = dict(released or {})

    def add(self, subscriber: str, after: int) -> None:
        self.released.setdefault(subscriber, after)

    def release(self, subscriber: str, upto: int, numbers: Iterable[int]) -> list[int]:
        """Move a subscriber on, never back; returns which batches nobody needs any more."""
        self.released[subscriber] = max(self.released.get(subscriber, upto), upto)
        needed_after = min(self.released.values())
        return [number for number in numbers if number <= needed_after]


def within_bytes(sizes: Mapping[int, int], most_bytes: int | None) -> list[int]:
    """The first batches that have at most so many bytes together; the very first one whatever it has."""
    chosen: list[int] = []
    total = 0
    for number in sorted(sizes):
        total += sizes[number]
        if chosen and most_bytes is not None and total > most_bytes:
            break
        chosen.append(number)
    return chosen
