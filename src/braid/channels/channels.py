"""Where the channels of a network are: the protocol."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from braid.channels.announced import Announced
from braid.channels.channel import Channel


class Channels(Protocol):
    """Opens channels by name, and holds what deployments announce: small JSON documents by kind and key."""

    def open(self, name: str, keep: int = 0) -> Channel:
        """The channel of this name, made if it is not there yet.

        `keep` is how long, in microseconds of event time, batches stay for newcomers when all have released them. The
        longest that the channel was ever opened with counts.
        """
        ...

    def remove(self, name: str) -> None:
        """Remove a channel with all its batches and subscribers; nothing happens if it is not there."""
        ...

    def announce(self, kind: str, key: str, document: Mapping[str, Any]) -> None:
        """Write a document, at once and durably, in place of the one that was there."""
        ...

    def announce_new(self, kind: str, key: str, document: Mapping[str, Any]) -> bool:
        """Write a document, at once and durably, unless there is one already: then False. What was first counts."""
        ...

    def announced(self, kind: str) -> Announced:
        """All documents of a kind by key. A damaged one is told of once, and only known to be there."""
        ...

    @property
    def damaged_documents(self) -> int:
        """How many damaged documents were found here. Each is counted once."""
        ...

    def withdraw(self, kind: str, key: str) -> None:
        """Remove a document; nothing happens if it is not there."""
        ...

    def to_json(self) -> dict[str, Any]:
        """What `channels_of` in `kinds.py` opens the same channels with, also in another process."""
        ...
