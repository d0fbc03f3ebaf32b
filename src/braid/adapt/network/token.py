"""The message by which sites put the probe sequence of a head in order; see `distributed.py`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from braid.adapt.network.figures import SiteFigures
from braid.errors import ModelError, PlanError
from braid.planning.solution.sequenced import HeadPlan

Cheapest = tuple[float, int, int]
"""The cheapest probe so far: its cost, its stream, and its placement."""


@dataclass(frozen=True)
class Token:
    """A message that puts the probe sequence of one head in order.

    `round` is the site that sent it, and the number of the round at that site. All positions before `position` are in
    order. If only one stream has new figures, the token is `seeking` it: it goes along the sequence to the first
    position where that stream would now be cheaper. From there on, it asks every stream from `position` on for the cost
    of its probe; `asked` is the position of the next stream to ask, `cheapest` the cheapest probe so far.
    """

    round: tuple[str, int]
    sequence: HeadPlan
    position: int = 0
    asked: int = 0
    seeking: int | None = None
    cheapest: Cheapest | None = None
    figures: tuple[SiteFigures, ...] = ()

    @classmethod
    def along(cls, round: tuple[str, int], sequence: HeadPlan, changed: Sequence[int]) -> Token:
        """A token for a sequence that is in order but for the streams `changed`, whose figures have moved."""
        can_seek = len(changed) == 1 and changed[0] != sequence.head
        return cls(round, sequence, seeking=changed[0] if can_seek else None)

    @property
    def is_done(self) -> bool:
        return self.position == len(self.sequence.order)

    @property
    def next_stream(self) -> int:
        """The stream whose site handles the token next."""
        return self.sequence.order[self.asked if self.seeking is None else self.position]

    def to_json(self) -> dict[str, Any]:
        sequence = self.sequence
        return {
            "round": list(self.round),
            "sequence": [sequence.head, list(sequence.order), list(sequence.placements)],
            "position": self.position,
            "asked": self.asked,
            "seeking": self.seeking,
            "cheapest": None if self.cheapest is None else list(self.cheapest),
            "figures": [figures.to_json() for figures in self.figures],
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any], streams: int) -> Token:
        """The token that `to_json` wrote, for a query of so many streams; `ModelError` for anything else."""
        try:
            (site, number), (head, order, placements) = content["round"], content["sequence"]
            cheapest, seeking = content["cheapest"], content["seeking"]
            token = cls(
                (str(site), int(number)),
                HeadPlan(head, tuple(order), tuple(placements)),
                content["position"],
                content["asked"],
                seeking,
                None if cheapest is None else (float(cheapest[0]), cheapest[1], cheapest[2]),
                tuple(map(SiteFigures.from_json, content["figures"])),
            )
            numbers = [head, *order, *placements, token.position, token.asked]
            if not all(isinstance(number, int) for number in numbers):
                raise TypeError("it has something else where numbers belong")
            is_whole = sorted([head, *order]) == list(range(streams)) and 0 <= token.position <= len(order)
            asks = token.is_done or token.position <= token.asked < len(order) or seeking is not None
            names = (seeking is None or seeking in order) and (cheapest is None or cheapest[1] in order)
            if not (is_whole and asks and names and (cheapest is None or cheapest[2] in (0, 1))):
                raise ValueError("it does not fit the query")
        except (ValueError, KeyError, TypeError, IndexError, PlanError) as problem:
            raise ModelError(f"this is no token: {problem!r} in {content!r:.200}") from problem
        return token
