"""What happened in a simulation, one line for each event, in virtual time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

MOST_SHOWN = 60
"""How many of the last events an error shows."""


@dataclass(frozen=True)
class Event:
    """Something that happened at a moment of virtual time, in seconds since the first row.

    `query` is empty if it concerns all queries, and so is `site` if it happened to no site.
    """

    time: float
    site: str
    what: str
    query: str = ""

    def __str__(self) -> str:
        return f"{self.time:10.4f}  {self.site or '-'}: {self.what}"


class Trace:
    """The events of a simulation, in the order in which they happened."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.time = 0.0
        """The moment it is now."""

    def note(self, site: str, what: str, query: str = "") -> None:
        self.events.append(Event(self.time, site, what, query))

    def of(self, query: str) -> tuple[Event, ...]:
        """What concerns a query."""
        return tuple(event for event in self.events if event.query in (query, ""))


def told(events: Sequence[Event], most: int = MOST_SHOWN) -> str:
    """The last events as text, one line each."""
    left_out = len(events) - most
    lines = [f"(after {left_out:,} earlier events)"] if left_out > 0 else []
    return "\n".join([*lines, *map(str, events[-most:])])
