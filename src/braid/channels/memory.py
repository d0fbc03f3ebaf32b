"""Channels in the memory of one process: for simulation and for tests."""

from __future__ import annotations

import json
import secrets
from collections import defaultdict
from collections.abc import Mapping, Sequence
from threading import Lock
from typing import Any, ClassVar
from weakref import WeakValueDictionary

from braid.channels.announced import Announced, DocumentReader
from braid.channels.batch import NONE, Batch, Entry
from braid.channels.channel import check_follows, check_whole, missing
from braid.channels.retention import Subscribers, unneeded, within_bytes
from braid.errors import ChannelError


class MemoryChannel:
    """A list of batches, kept as bytes, so that every reader gets a copy of its own. Threads may share it."""

    def __init__(self, name: str, keep: int = 0) -> None:
        self._name = name
        self.keep = keep
        self._entries: dict[int, Entry] = {}
        self._data: dict[int, bytes] = {}
        self._last: Entry | None = None
        self._removed = NONE
        self._subscribers = Subscribers()
        self._lock = Lock()

    @property
    def name(self) -> str:
        return self._name

    def publish(self, batch: Batch) -> bool:
        with self._lock:
            if self._last is not None and batch.number <= self._last.number:
                return False
            check_follows(batch, self._last)
            self._data[batch.number] = batch.data
            self._entries[batch.number] = self._last = batch.entry
            return True

    def last(self) -> Entry | None:
        return self._last

    def entries(self, after: int, most_bytes: int | None = None) -> Sequence[Entry]:
        with self._lock:
            entries = within_bytes((entry for number, entry in self._entries.items() if number > after), most_bytes)
            check_whole(self._name, entries, after, self._removed)
            return entries

    def read(self, number: int) -> Batch:
        data = self._data.get(number)
        if data is None:
            raise missing(self._name, number)
        return Batch.from_bytes(data, self._name, number)

    def subscribe(self, subscriber: str, after: int = NONE) -> None:
        with self._lock:
            self._subscribers.add(subscriber, after)

    def release(self, subscriber: str, upto: int) -> None:
        with self._lock:
            if self._subscribers.release(subscriber, upto):
                self._remove_unneeded()

    def unsubscribe(self, subscriber: str) -> None:
        with self._lock:
            self._subscribers.remove(subscriber)
            self._remove_unneeded()

    def released(self) -> Mapping[str, int]:
        return dict(self._subscribers.released)

    def _remove_unneeded(self) -> None:
        if self._last is None:
            return
        released = self._subscribers.released_by_all
        for entry in unneeded(self._entries.values(), released, self.keep, self._last.watermark):
            del self._entries[entry.number]
            del self._data[entry.number]
            self._removed = entry.number


class MemoryChannels:
    """Channels that live as long as this object does, for this process."""

    _alive: ClassVar[WeakValueDictionary[str, MemoryChannels]] = WeakValueDictionary()

    def __init__(self) -> None:
        self._channels: dict[str, MemoryChannel] = {}
        self._announced: dict[str, dict[str, str]] = defaultdict(dict)
        self._reader = DocumentReader()
        self._id = secrets.token_hex(8)
        self._alive[self._id] = self

    def open(self, name: str, keep: int = 0) -> MemoryChannel:
        channel = self._channels.setdefault(name, MemoryChannel(name))
        channel.keep = max(channel.keep, keep)
        return channel

    def remove(self, name: str) -> None:
        self._channels.pop(name, None)

    def announce(self, kind: str, key: str, document: Mapping[str, Any]) -> None:
        self._announced[kind][key] = json.dumps(document)

    def announce_new(self, kind: str, key: str, document: Mapping[str, Any]) -> bool:
        text = json.dumps(document)
        return self._announced[kind].setdefault(key, text) is text

    def announced(self, kind: str) -> Announced:
        documents = Announced()
        for key, text in self._announced[kind].items():
            self._reader.add(documents, kind, key, f"'{key}'", text.encode())
        return documents

    @property
    def damaged_documents(self) -> int:
        return self._reader.damaged

    def withdraw(self, kind: str, key: str) -> None:
        self._announced[kind].pop(key, None)

    def to_json(self) -> dict[str, Any]:
        return {"kind": "memory", "id": self._id}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> MemoryChannels:
        channels = cls._alive.get(str(content.get("id")))
        if channels is None:
            raise ChannelError(
                "channels in memory can be used only in the process that made them, while it has them; "
                "use a directory between processes"
            )
        return channels
