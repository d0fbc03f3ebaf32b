"""How Kafka writes requests and answers: integers, texts and arrays with their lengths before them."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

Element = TypeVar("Element")


class RequestReader:
    """Reads a request from its beginning to its end."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def integers(self, form: str) -> tuple[Any, ...]:
        """Integers, each by the letter of its size in `struct`."""
        values = struct.unpack_from(f">{form}", self._data, self._position)
        self._position += struct.calcsize(f">{form}")
        return values

    def text(self) -> str | None:
        (length,) = self.integers("h")
        return None if length < 0 else self._take(length).decode()

    def data(self) -> bytes:
        (length,) = self.integers("i")
        return self._take(max(length, 0))

    def array(self, element: Callable[[], Element]) -> list[Element]:
        (length,) = self.integers("i")
        return [element() for _ in range(length)]

    def texts(self) -> list[str] | None:
        (length,) = self.integers("i")
        return None if length < 0 else [self.text() or "" for _ in range(length)]

    def by_topic(self, answer: Callable[[str], bytes]) -> bytes:
        """The answers for an array of topics, each with an array of partitions."""

        def of_topic() -> bytes:
            name = self.text() or ""
            return text(name) + array(self.array(lambda: answer(name)))

        return array(self.array(of_topic))

    def _take(self, length: int) -> bytes:
        self._position += length
        return self._data[self._position - length : self._position]


def text(value: str | None) -> bytes:
    if value is None:
        return struct.pack(">h", -1)
    data = value.encode()
    return struct.pack(">h", len(data)) + data


def array(elements: Iterable[bytes]) -> bytes:
    listed = list(elements)
    return struct.pack(">i", len(listed)) + b"".join(listed)
