"""Channels in the memory of one process: for simulation and for tests."""

from __future__ import annotations

from collections.abc import Sequence

from braid.channels.batch import NONE, Batch
from braid.channels.channel import Lag, check_follows, check_whole
from braid.channels.retention import Subscribers, within_bytes


class MemoryChannel:
    """A list of batches, kept as bytes: whoever reads one gets a copy of its own."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._batches: dict[int, bytes] = {}
        self._last = NONE
        self._subscribers = Subscribers()

    @property
    def name(self) -> str:
        return self._name

    def publish(self, batch: Batch) -> bool:
        if batch.number <= self._last:
            return False
        check_follows(batch, self._last)
        self._batches[batch.number] = batch.data
        self._last = batch.number
        return True

    def last(self) -> int:
        return self._last

    def read(self, after: int, most_bytes: int | None = None) -> Sequence[Batch]:
        sizes = {number: len(data) for number, data in self._batches.items() if number > after}
        numbers = within_bytes(sizes, most_bytes)
        batches = [Batch.from_bytes(self._batches[number], self._name, number) for number in numbers]
        check_whole(batches, after)
        return batches

    def lag(self, after: int) -> Lag:
        waiting = [data for number, data in self._batches.items() if number > after]
        return Lag(len(waiting), sum(map(len, waiting)))

    def subscribe(self, subscriber: str, after: int = NONE) -> None:
        self._subscribers.add(subscriber, after)

    def release(self, subscriber: str, upto: int) -> None:
        for number in self._subscribers.release(subscriber, upto, self._batches):
            del self._batches[number]
