"""The names of the files in the directory of a channel: they tell everything but what is in the batches."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from braid.channels.batch import NONE
from braid.channels.channels import plain_name
from braid.channels.retention import Subscribers

BATCH = re.compile(r"(\d{12})\.(batch|removed)")
SUBSCRIBER = re.compile(r"([^.]+)\.(\d{12}|none)\.subscriber")
KEEP = re.compile(r"(\d+)\.keep")
KINDS = (".batch", ".removed", ".subscriber", ".keep")


@dataclass
class Listing:
    """What the names say."""

    numbers: list[int] = field(default_factory=list)
    """The batches that are there and do not count as removed, oldest first."""
    removed: int = NONE
    """The newest batch that counts as removed, with all before it."""
    keep: int = 0
    subscribers: Subscribers = field(default_factory=Subscribers)
    """By plain name. Of one that two processes have added at once, the oldest position counts."""
    outdated: list[str] = field(default_factory=list)
    """Files that count as removed, the oldest batch first."""
    foreign: list[str] = field(default_factory=list)
    """Files that look like those of a channel and are not."""

    @classmethod
    def of(cls, names: Iterable[str]) -> Listing:
        listing = cls()
        batches: list[int] = []
        removals: list[int] = []
        for name in names:
            if match := BATCH.fullmatch(name):
                (batches if match[2] == "batch" else removals).append(int(match[1]))
            elif match := SUBSCRIBER.fullmatch(name):
                released = NONE if match[2] == "none" else int(match[2])
                before = listing.subscribers.released.get(match[1], released)
                listing.subscribers.released[match[1]] = min(before, released)
            elif match := KEEP.fullmatch(name):
                listing.keep = max(listing.keep, int(match[1]))
            elif name.endswith(KINDS):
                listing.foreign.append(name)
        listing.removed = max(removals, default=NONE)
        for number in sorted(batches):
            if number > listing.removed:
                listing.numbers.append(number)
            else:
                listing.outdated.append(batch_file(number))
        listing.outdated += [removed_file(number) for number in removals if number < listing.removed]
        return listing


def batch_file(number: int) -> str:
    return f"{number:012d}.batch"


def removed_file(number: int) -> str:
    """The name of a batch when it and all before it count as removed."""
    return f"{number:012d}.removed"


def subscriber_file(subscriber: str, released: int | str) -> str:
    """The name of an empty file that says how far a subscriber has released a channel; "*" finds any."""
    told = released if isinstance(released, str) else "none" if released == NONE else f"{released:012d}"
    return f"{plain_name(subscriber)}.{told}.subscriber"


def keep_file(keep: int) -> str:
    """The name of an empty file that says how long batches are kept; the longest counts."""
    return f"{keep}.keep"
