"""Where the channels of a network are: the protocol."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Protocol
from urllib.parse import quote

from braid.channels.channel import Channel

LONGEST_NAME = 120
"""Longer names are cut: file systems and brokers take no more than 255 characters."""


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

    def announced(self, kind: str) -> dict[str, dict[str, Any]]:
        """All documents of a kind by key."""
        ...

    def withdraw(self, kind: str, key: str) -> None:
        """Remove a document; nothing happens if it is not there."""
        ...

    def to_json(self) -> dict[str, Any]:
        """What `channels_of` in `kinds.py` opens the same channels with, also in another process."""
        ...


def plain_name(name: str) -> str:
    """Any text as a name that file systems and brokers take: different names stay different.

    >>> plain_name("flights ⋈ bags")
    'flights=20=E2=8B=88=20bags'
    """
    plain = quote(name, safe="").replace(".", "%2E").replace("~", "%7E").replace("%", "=")
    if 0 < len(plain) <= LONGEST_NAME:
        return plain
    # No name of another text has two of these signs in a row.
    return f"{plain[: LONGEST_NAME - 34]}=={sha256(name.encode()).hexdigest()[:32]}"
