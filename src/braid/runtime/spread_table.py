"""Which keys are spread over several shards, and from when until when: the table that packers route rows by.

A heavy key has as many shards as it needs, from its home on: the shard that the hash of the key selects. The rows of
one stream are *spread*: each goes to any one of these shards. The rows of all other streams with this key are *copied*
to all of them. So every combination meets in the shard of its spread row, and nowhere else.

A row may be spread only if all rows it can meet were copied. A row that is not spread goes to the home of its key. The
home gets every copy, so such a row meets all its partners there. So packers need not agree on which rows are spread,
only on which are copied.

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
    """A key of one dimension of the grid, as its 64-bit word.

    Rows of `stream` are spread if their event times are at or after `begin`; FOREVER if none is. Rows of the other
    streams are copied if their event times are before `until`. `asked` is the version of the table in which the phase
    began. The key has `width` coordinates of its dimension, which stay the same; None for all.
    """

    dimension: int
    word: int
    stream: str
    begin: int = FOREVER
    until: int = FOREVER
    asked: int = 0
    phase: SpreadPhase = SpreadPhase.COPIED
    width: int | None = None

    def coordinates(self, share: int) -> int:
        """How many coordinates of its dimension, which has `share`, the key has."""
        return share if self.width is None else self.width


@dataclass(frozen=True, slots=True)
class SpreadTable:
    """All keys that are spread or copied; every change makes a new version."""

    version: int = 0
    keys: tuple[SpreadKey, ...] = ()

    def of(self, dimension: int) -> Iterator[SpreadKey]:
        """The keys of one dimension."""
        return (key for key in self.keys if key.dimension == dimension)

    def key(self, dimension: int, word: int) -> SpreadKey | None:
        """The entry of a key; None if it is neither spread nor copied."""
        return next((key for key in self.of(dimension) if key.word == word), None)

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
