"""The names of the files in the directory of a channel: they hold everything except the contents of the batches."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from braid.channels.batch import NONE
from braid.channels.plain_names import plain_name
from braid.channels.retention import Subscribers

BATCH = re.compile(r"(\d{12})\.(batch|removed)")
SUBSCRIBER = re.compile(r"([^.]+)\.(\d{12}|none)\.subscriber")
KEEP = re.compile(r"(\d+)\.keep")
KINDS = (".batch", ".removed", ".subscriber", ".keep")


@dataclass
class ChannelFiles:
    """What the file names of a channel say."""

    numbers: list[int] = field(default_factory=list)
    """The batches that are there and do not count as removed, oldest first."""
    removed_up_to: int = NONE
    """The newest batch that counts as removed, with all before it."""
    keep: int = 0
    subscribers: Subscribers = field(default_factory=Subscribers)
    """By plain name. If two processes added the same subscriber, the older position counts."""
    deletable: list[str] = field(default_factory=list)
    """Files that count as removed, the oldest batch first."""
    foreign: list[str] = field(default_factory=list)
    """Files that look like those of a channel and are not."""

    @classmethod
    def of(cls, names: Iterable[str]) -> ChannelFiles:
        files = cls()
        batches: list[int] = []
        removed_marks: list[int] = []
        for name in names:
            if match := BATCH.fullmatch(name):
                (batches if match[2] == "batch" else removed_marks).append(int(match[1]))
            elif match := SUBSCRIBER.fullmatch(name):
                released = NONE if match[2] == "none" else int(match[2])
                before = files.subscribers.released.get(match[1], released)
                files.subscribers.released[match[1]] = min(before, released)
            elif match := KEEP.fullmatch(name):
                files.keep = max(files.keep, int(match[1]))
            elif name.endswith(KINDS):
                files.foreign.append(name)
        files.removed_up_to = max(removed_marks, default=NONE)
        for number in sorted(batches):
            if number > files.removed_up_to:
                files.numbers.append(number)
            else:
                files.deletable.append(batch_file(number))
        files.deletable += [removed_file(number) for number in removed_marks if number < files.removed_up_to]
        return files


def batch_file(number: int) -> str:
    return f"{number:012d}.batch"


def removed_file(number: int) -> str:
    """The name of a batch when it and all before it count as removed."""
    return f"{number:012d}.removed"


def subscriber_file(subscriber: str, released: int | str) -> str:
    """The name of an empty file that says how far a subscriber has released a channel; "*" finds any."""
    position = released if isinstance(released, str) else "none" if released == NONE else f"{released:012d}"
    return f"{plain_name(subscriber)}.{position}.subscriber"


def keep_file(keep: int) -> str:
    """The name of an empty file that says how long batches are kept; the longest counts."""
    return f"{keep}.keep"
