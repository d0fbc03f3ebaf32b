"""Which keys are spread over several shards, and from when until when: the table that packers route rows by.

A heavy key has as many shards as it needs, from its home on: the shard that the hash of the key selects. The rows of
one stream are *spread*: each goes to any one of these shards. The rows of all other streams with this key are *copied*
to all of them. So every combination meets in the shard of its spread row, and nowhere else.

If several streams have many rows of a key, its shards form a grid with an axis for each of these streams. Along the
axis of a stream, its rows are spread, and those of all other streams are copied. A combination meets at one position of
each axis, so it meets in one shard. With two equal streams, a grid of r x r shards copies each row r times; with one
axis of as many shards, the rows of one stream would be copied r x r times.

A row may be spread only if all rows it can meet were copied. A row that is not spread goes to the first position of its
axis. That gets every copy, so such a row meets all its partners there. So packers need not agree on which rows are
spread, only on which are copied.

State never moves. Copying begins with the next rows. Spreading begins a window later in event time, when rows that came
before, and are only at home, have ended (`SpreadProtocol`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from enum import StrEnum

from braid.errors import BraidError
from braid.model.window import FOREVER


class SpreadPhase(StrEnum):
    """The phases of a spread key, in their order."""

    COPIED = "copied"
    """Rows of the other streams are copied; nothing is spread."""
    SPREAD = "spread"
    """Rows of the key's stream are spread."""
    GATHERED = "gathered"
    """Rows are no longer spread."""
    ENDING = "ending"
    """Rows of the other streams are no longer copied from `until` on."""
    ENDED = "ended"
    """The last copies have come."""


@dataclass(frozen=True, slots=True)
class SpreadKey:
    """An axis of a heavy key, which is a 64-bit word in one dimension of the grid.

    Rows of `stream` are spread if their event times are at or after `begin`; FOREVER if none is. Rows of the other
    streams are copied if their event times are before `until`. `asked` is the version of the table in which the phase
    began. The axis has `width` positions, which stay the same; None for as many as the dimension has coordinates. From
    one position to the next, it is `stride` coordinates of the dimension.
    """

    dimension: int
    word: int
    stream: str
    begin: int = FOREVER
    until: int = FOREVER
    asked: int = 0
    phase: SpreadPhase = SpreadPhase.COPIED
    width: int | None = None
    stride: int = 1

    def positions(self, share: int) -> int:
        """How many positions the axis has if the dimension has `share` coordinates."""
        return share if self.width is None else self.width

    def position(self, steps: int, share: int) -> int:
        """The position along the axis of a coordinate that is so many steps from the key's home."""
        return steps % share // self.stride % self.positions(share)


@dataclass(frozen=True, slots=True)
class SpreadTable:
    """The axes of all keys that are spread or copied; every change makes a new version."""

    version: int = 0
    keys: tuple[SpreadKey, ...] = ()

    def of(self, dimension: int) -> Iterator[SpreadKey]:
        """The axes of all keys of one dimension."""
        return (key for key in self.keys if key.dimension == dimension)

    def words(self, dimension: int) -> list[int]:
        """The keys of one dimension that are spread or copied, each once."""
        return list(dict.fromkeys(key.word for key in self.of(dimension)))

    def axes(self, dimension: int, word: int) -> tuple[SpreadKey, ...]:
        """The axes of a key; none if it is neither spread nor copied."""
        return tuple(key for key in self.of(dimension) if key.word == word)

    def to_json(self) -> str:
        return json.dumps({"version": self.version, "keys": [asdict(key) for key in self.keys]})

    @classmethod
    def from_json(cls, text: str) -> SpreadTable:
        """The table that `to_json` wrote; `BraidError` for any other text."""
        try:
            content = json.loads(text)
            keys = (SpreadKey(**key | {"phase": SpreadPhase(key["phase"])}) for key in content["keys"])
            return cls(int(content["version"]), tuple(keys))
        except (ValueError, KeyError, TypeError) as problem:
            raise BraidError(f"this is no table of spread keys: {problem!r} in {text[:200]!r}") from problem
