"""Channels as directories: a file for each batch, on a local or a shared file system.

A batch is written under a name that nobody reads, synced, and then linked to its own name, which fails if that is
there. So a batch is there whole or not at all, and the first of two writers wins.

Several processes read and remove at once, without locks. Before batches are removed, the head of the newest of them is
written under a name that says so: from then on they count as removed. After that the subscribers are read once more.
So either the newcomer's subscription is seen, or the newcomer sees what counts as removed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from braid.channels.batch import NONE, Batch, Entry, Head, read_head
from braid.channels.channel import check_follows, check_whole, missing
from braid.channels.channels import plain_name
from braid.channels.files import UNFINISHED, replace, write_new
from braid.channels.retention import Subscribers, unneeded, within_bytes
from braid.errors import ChannelError, reason_of

BATCH = re.compile(r"(\d{12})\.(batch|removed)")
"""Names of batches, and of what is left of the newest one that was removed: its head."""

KEEP = re.compile(r"keep-(\d+)")
"""Names of empty files that say how long batches are kept; the longest counts."""

SUBSCRIBER = ".subscriber"

LOOKS = 3
"""How often to list a directory in which a batch is missing: others may have changed it during the listing."""

Answer = TypeVar("Answer")


@dataclass
class Listing:
    """The names in the directory of a channel."""

    numbers: list[int] = field(default_factory=list)
    """The batches that are there and do not count as removed, oldest first."""
    removed: int = NONE
    keep: int = 0
    outdated: list[str] = field(default_factory=list)
    """Files that count as removed."""


class DirectoryChannel:
    """The batches of one channel in a directory of its own."""

    def __init__(self, directory: Path, name: str, keep: int = 0) -> None:
        self._directory = directory
        self._name = name
        self._heads: dict[str, Head] = {}
        self._swept = False
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ChannelError(f"cannot make the directory of channel '{name}': {reason_of(error)}") from error
        if keep and keep > self._list().keep:
            self._replace(f"keep-{keep}", b"")

    @property
    def name(self) -> str:
        return self._name

    def publish(self, batch: Batch) -> bool:
        last = self.last()
        if last is not None and batch.number <= last.number:
            return False
        check_follows(batch, last)
        if not self._swept:
            self.sweep()
        try:
            write_new(self._directory / _batch_file(batch.number), batch.data)
        except FileExistsError as error:
            raise ChannelError(
                f"another site has just published batch {batch.number} on channel '{self._name}'; let one site publish"
            ) from error
        except OSError as error:
            raise ChannelError(
                f"cannot write batch {batch.number} to channel '{self._name}': {reason_of(error)}; "
                "nothing was published"
            ) from error
        return True

    def last(self) -> Entry | None:
        return self._look(self._last)

    def entries(self, after: int, most_bytes: int | None = None) -> Sequence[Entry]:
        def entries(listing: Listing) -> list[Entry]:
            found = within_bytes(self._entries(listing, after), most_bytes)
            check_whole(self._name, found, after, listing.removed)
            return found

        return self._look(entries)

    def read(self, number: int) -> Batch:
        try:
            data = (self._directory / _batch_file(number)).read_bytes()
        except FileNotFoundError as error:
            raise missing(self._name, number) from error
        except OSError as error:
            raise self._unreadable(number, error) from error
        return Batch.from_bytes(data, self._name, number)

    def subscribe(self, subscriber: str, after: int = NONE) -> None:
        if self._subscribers().add(subscriber, after):
            self._write_subscriber(subscriber, after)

    def release(self, subscriber: str, upto: int) -> None:
        if self._subscribers().release(subscriber, upto):
            self._write_subscriber(subscriber, upto)
            self._look(self._remove_unneeded)

    def unsubscribe(self, subscriber: str) -> None:
        self._unlink(_subscriber_file(subscriber))
        self._look(self._remove_unneeded)

    def released(self) -> Mapping[str, int]:
        return self._subscribers().released

    def sweep(self) -> None:
        """Remove what a crash of the publisher has left half written."""
        for path in self._directory.glob(f"*.batch.*{UNFINISHED}"):
            self._unlink(path.name)
        self._swept = True

    def _look(self, answer: Callable[[Listing], Answer]) -> Answer:
        """What a listing tells; if a batch is missing from it, look again before that is an error."""
        for _ in range(LOOKS - 1):
            try:
                return answer(self._list())
            except ChannelError:
                continue
        return answer(self._list())

    def _list(self) -> Listing:
        try:
            names = [path.name for path in self._directory.iterdir()]
        except OSError as error:
            raise ChannelError(f"cannot list channel '{self._name}': {reason_of(error)}") from error
        found: dict[str, list[int]] = {"batch": [], "removed": []}
        keeps = [0]
        for name in names:
            if match := BATCH.fullmatch(name):
                found[match[2]].append(int(match[1]))
            elif match := KEEP.fullmatch(name):
                keeps.append(int(match[1]))
            elif name.endswith(".batch"):
                raise ChannelError(
                    f"channel '{self._name}' has a file {name} that is no batch; remove what does not belong there"
                )
        removed = max(found["removed"], default=NONE)
        numbers = sorted(number for number in found["batch"] if number > removed)
        outdated = [_batch_file(number) for number in sorted(found["batch"]) if number <= removed]
        outdated += [_removed_file(number) for number in found["removed"] if number < removed]
        known = {*map(_batch_file, numbers), _removed_file(removed)}
        self._heads = {name: head for name, head in self._heads.items() if name in known}
        return Listing(numbers, removed, max(keeps), outdated)

    def _last(self, listing: Listing) -> Entry | None:
        if listing.numbers:
            return self._head(_batch_file(listing.numbers[-1]), listing.numbers[-1]).entry
        return None if listing.removed == NONE else self._head(_removed_file(listing.removed), listing.removed).entry

    def _entries(self, listing: Listing, after: int = NONE) -> Iterator[Entry]:
        return (self._head(_batch_file(number), number).entry for number in listing.numbers if number > after)

    def _head(self, file: str, number: int) -> Head:
        """The head of a batch, read once: batches do not change."""
        if file not in self._heads:
            self._heads[file] = Head.from_bytes(self._read_head(file, number), self._name, number)
        return self._heads[file]

    def _read_head(self, file: str, number: int) -> bytes:
        try:
            with (self._directory / file).open("rb") as opened:
                return read_head(opened)
        except FileNotFoundError as error:
            raise missing(self._name, number) from error
        except OSError as error:
            raise self._unreadable(number, error) from error

    def _remove_unneeded(self, listing: Listing) -> None:
        last = self._last(listing)
        if last is None:
            return
        released = self._subscribers().released_by_all
        leaving = unneeded(self._entries(listing), released, listing.keep, last.watermark)
        if leaving:
            number = leaving[-1].number
            self._replace(_removed_file(number), self._read_head(_batch_file(number), number))
            listing = self._list()
        if self._subscribers().released_by_all >= listing.removed:
            # The oldest first: what is left when this process dies has no gap.
            for name in listing.outdated:
                self._unlink(name)

    def _subscribers(self) -> Subscribers:
        released = {}
        for path in self._directory.glob(f"*{SUBSCRIBER}"):
            try:
                content = json.loads(path.read_bytes())
                released[str(content["subscriber"])] = int(content["released"])
            except FileNotFoundError:
                continue
            except (ValueError, KeyError, TypeError, OSError) as error:
                raise ChannelError(
                    f"cannot read the subscriber file {path.name} of channel '{self._name}': {error}; restore it, or "
                    "remove it if that subscriber will not come back"
                ) from error
        return Subscribers(released)

    def _write_subscriber(self, subscriber: str, released: int) -> None:
        content = {"subscriber": subscriber, "released": released}
        self._replace(_subscriber_file(subscriber), json.dumps(content).encode())

    def _replace(self, file: str, data: bytes) -> None:
        try:
            replace(self._directory / file, data)
        except OSError as error:
            raise ChannelError(f"cannot write {file} to channel '{self._name}': {reason_of(error)}") from error

    def _unlink(self, file: str) -> None:
        try:
            (self._directory / file).unlink(missing_ok=True)
        except OSError as error:
            raise ChannelError(f"cannot remove {file} from channel '{self._name}': {reason_of(error)}") from error

    def _unreadable(self, number: int, error: OSError) -> ChannelError:
        return ChannelError(
            f"cannot read batch {number} of channel '{self._name}': {reason_of(error)}; check the file system"
        )


def _batch_file(number: int) -> str:
    return f"{number:012d}.batch"


def _removed_file(number: int) -> str:
    return f"{number:012d}.removed"


def _subscriber_file(subscriber: str) -> str:
    return f"{plain_name(subscriber)}{SUBSCRIBER}"
