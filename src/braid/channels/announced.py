"""Announced documents as channels keep and read them. A damaged one is left alone, whatever kind of channels has it.

A program cannot know what is in a damaged document. So it is neither there, as others are, nor withdrawn: who would
conclude something from the absence of a document asks whether it `is_damaged`.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any

from braid.channels.plain_names import plain_name
from braid.errors import ChannelError

logger = logging.getLogger(__name__)


class Announced(dict[str, dict[str, Any]]):
    """The documents of a kind by key, as far as they can be read."""

    def __init__(self) -> None:
        super().__init__()
        self.damaged: set[str] = set()
        """The keys of the others, as plain names."""

    def is_damaged(self, key: str) -> bool:
        return plain_name(key) in self.damaged


class DocumentReader:
    """Reads documents. Of each that is damaged it warns once, as long as it stays the same."""

    def __init__(self) -> None:
        self._told: set[tuple[str, bytes]] = set()

    @property
    def damaged(self) -> int:
        """How many damaged documents were read. Each is counted once."""
        return len(self._told)

    def add(self, announced: Announced, kind: str, key: str, place: str, data: bytes) -> None:
        """Read the document of a key. `place` tells a user where it is."""
        try:
            announced[key] = _object(data)
        except ChannelError as error:
            announced.damaged.add(plain_name(key))
            self.tell(f"the announced {kind} {place}", data, error)

    def add_enveloped(self, announced: Announced, kind: str, name: str, place: str, data: bytes) -> None:
        """Read a document that was written by `enveloped`, under the plain name of its key."""
        try:
            key, document = _opened(data, name)
        except ChannelError as error:
            announced.damaged.add(name)
            self.tell(f"the announced {kind} {place}", data, error)
        else:
            announced[key] = document

    def tell(self, what: str, data: bytes, error: ChannelError) -> None:
        """Warn of a damaged document, unless this was done before."""
        if (what, data) not in self._told:
            self._told.add((what, data))
            logger.warning(
                "%s is damaged, and is left alone: %s; restore it, or remove it if nobody needs it", what, error
            )


def enveloped(key: str, document: Mapping[str, Any], **more: str) -> bytes:
    """A document with its key, for places whose names do not tell it."""
    return json.dumps({"key": key, "document": document, **more}).encode()


def _opened(data: bytes, name: str) -> tuple[str, dict[str, Any]]:
    content = _object(data)
    key, document = content.get("key"), content.get("document")
    if not (isinstance(key, str) and isinstance(document, dict)):
        raise ChannelError("it is no object with a 'key' and a 'document'")
    if plain_name(key) != name:
        raise ChannelError(f"it has the key of another document, '{key}'")
    return key, document


def _object(data: bytes) -> dict[str, Any]:
    try:
        content = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ChannelError(f"it is not JSON ({error})") from error
    if not isinstance(content, dict):
        raise ChannelError("it is no JSON object")
    return content
