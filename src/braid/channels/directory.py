"""Channels as directories: a file for each batch, on a local or a shared file system.

A batch is written under a name that nobody reads, synced, and then linked to its own name, which fails if that is
there. So a batch is there whole or not at all, and the first of two writers wins. File systems without links need more:
see `files.write_new`.

Several processes read and remove at once, without locks. The newest of the batches that leave gets another name, which
says that all up to it count as removed. Then the subscribers are listed once more before anything is deleted. So
either the subscription of a newcomer is seen, or the newcomer sees what counts as removed.

Releasing and removing only change names: both work on a full disk, and make room there.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from braid.channels.batch import NONE, Batch, Entry, Head, read_head
from braid.channels.channel import check_follows, check_whole, missing
from braid.channels.files import UNFINISHED, sync_directory, write_new
from braid.channels.listing import ChannelFiles, batch_file, keep_file, removed_file, subscriber_file
from braid.channels.plain_names import plain_name
from braid.channels.retention import unneeded, within_bytes
from braid.errors import ChannelError, reason_of

Answer = TypeVar("Answer")


class DirectoryChannel:
    """The batches of one channel in a directory of its own."""

    def __init__(self, directory: Path, name: str, keep: int = 0) -> None:
        self._directory = directory
        self._name = name
        self._heads: dict[str, Head] = {}
        self._swept = False
        try:
            directory.mkdir(parents=True, exist_ok=True)
            if keep and keep > self._list().keep:
                self._touch(keep_file(keep))
        except OSError as error:
            raise self._problem("open", error) from error

    @property
    def name(self) -> str:
        return self._name

    def publish(self, batch: Batch) -> bool:
        last = self.last()
        if last is not None and batch.number <= last.number:
            return False
        check_follows(batch, last)
        try:
            self._sweep()
            write_new(self._directory / batch_file(batch.number), batch.data)
        except FileExistsError as error:
            raise ChannelError(
                f"another site has just published batch {batch.number} on channel '{self._name}'; let one site publish"
            ) from error
        except OSError as error:
            problem = self._problem(f"write batch {batch.number} to", error)
            raise ChannelError(f"{problem}; nothing was published") from error
        return True

    def last(self) -> Entry | None:
        return self._look("ask for the last batch of", self._last)

    def entries(self, after: int, most_bytes: int | None = None) -> Sequence[Entry]:
        def entries(listing: ChannelFiles) -> list[Entry]:
            following = within_bytes(self._entries(listing, after), most_bytes)
            check_whole(self._name, following, after, listing.removed_up_to)
            return following

        return self._look("list", entries)

    def read(self, number: int) -> Batch:
        try:
            return self._read(number)
        except OSError as error:
            raise self._problem(f"read batch {number} of", error) from error

    def subscribe(self, subscriber: str, after: int = NONE) -> None:
        def subscribe(listing: ChannelFiles) -> None:
            if listing.subscribers.add(plain_name(subscriber), after):
                self._touch(subscriber_file(subscriber, after))

        self._look("subscribe to", subscribe)

    def release(self, subscriber: str, upto: int) -> None:
        def release(listing: ChannelFiles) -> bool:
            before = listing.subscribers.released.get(plain_name(subscriber))
            moved = listing.subscribers.release(plain_name(subscriber), upto)
            if moved and before is not None:
                self._rename(subscriber_file(subscriber, before), subscriber_file(subscriber, upto))
            return moved

        if self._look("release batches of", release):
            self._look("remove batches of", self._remove_unneeded)

    def unsubscribe(self, subscriber: str) -> None:
        def unsubscribe(listing: ChannelFiles) -> None:
            for path in self._directory.glob(subscriber_file(subscriber, "*")):
                self._unlink(path.name)

        self._look("unsubscribe from", unsubscribe)
        self._look("remove batches of", self._remove_unneeded)

    def released(self) -> Mapping[str, int]:
        return self._look("ask for the subscribers of", lambda listing: dict(listing.subscribers.released))

    def _look(self, what: str, answer: Callable[[ChannelFiles], Answer]) -> Answer:
        """What a listing tells. Where that fails, look again for as long as others change the directory meanwhile."""
        names_before = None
        while True:
            names: frozenset[str] = frozenset()
            try:
                names = self._names()
                return answer(self._listing(names))
            except ChannelError:
                if names == names_before:
                    raise
            except OSError as error:
                if names == names_before:
                    raise self._problem(what, error) from error
            names_before = names

    def _list(self) -> ChannelFiles:
        return self._listing(self._names())

    def _names(self) -> frozenset[str]:
        return frozenset(path.name for path in self._directory.iterdir())

    def _listing(self, names: frozenset[str]) -> ChannelFiles:
        listing = ChannelFiles.of(names)
        if listing.foreign:
            raise ChannelError(
                f"channel '{self._name}' has a file {listing.foreign[0]} that is none of its own; "
                "remove what does not belong there"
            )
        known = {*map(batch_file, listing.numbers), removed_file(listing.removed_up_to)}
        self._heads = {name: head for name, head in self._heads.items() if name in known}
        return listing

    def _last(self, listing: ChannelFiles) -> Entry | None:
        if listing.numbers:
            return self._head(batch_file(listing.numbers[-1]), listing.numbers[-1]).entry
        removed = listing.removed_up_to
        return None if removed == NONE else self._head(removed_file(removed), removed).entry

    def _entries(self, listing: ChannelFiles, after: int = NONE) -> Iterator[Entry]:
        return (self._head(batch_file(number), number).entry for number in listing.numbers if number > after)

    def _head(self, file: str, number: int) -> Head:
        """The head of a batch, read once: batches do not change."""
        if file not in self._heads:
            try:
                with (self._directory / file).open("rb") as opened:
                    data = read_head(opened)
            except FileNotFoundError as error:
                raise missing(self._name, number) from error
            self._heads[file] = Head.from_bytes(data, self._name, number)
        return self._heads[file]

    def _read(self, number: int) -> Batch:
        try:
            data = (self._directory / batch_file(number)).read_bytes()
        except FileNotFoundError as error:
            # A newcomer may have seen the batch before it counted as removed; then it is still there.
            try:
                data = (self._directory / removed_file(number)).read_bytes()
            except FileNotFoundError:
                raise missing(self._name, number) from error
            if len(data) < Head.from_bytes(data, self._name, number).entry.bytes:
                raise missing(self._name, number) from error
        return Batch.from_bytes(data, self._name, number)

    def _remove_unneeded(self, listing: ChannelFiles) -> None:
        last = self._last(listing)
        if last is None:
            return
        leaving = unneeded(self._entries(listing), listing.subscribers.released_by_all, listing.keep, last.watermark)
        if leaving:
            newest = leaving[-1].number
            self._rename(batch_file(newest), removed_file(newest))
            listing = self._list()
        if listing.subscribers.released_by_all >= listing.removed_up_to:
            self._delete(listing)

    def _delete(self, listing: ChannelFiles) -> None:
        """Delete what counts as removed, but for the head of the newest batch: numbers go on from there."""
        # The oldest first: what is left when this process dies has no gap.
        for name in listing.deletable:
            self._unlink(name)
        if listing.removed_up_to != NONE:
            file = removed_file(listing.removed_up_to)
            os.truncate(self._directory / file, self._head(file, listing.removed_up_to).length)

    def _sweep(self) -> None:
        """Delete what a crash of the publisher has left half written."""
        if not self._swept:
            for path in self._directory.glob(f"*.batch.*{UNFINISHED}"):
                self._unlink(path.name)
            self._swept = True

    def _touch(self, file: str) -> None:
        (self._directory / file).touch()
        sync_directory(self._directory)

    def _rename(self, before: str, after: str) -> None:
        (self._directory / before).rename(self._directory / after)
        sync_directory(self._directory)

    def _unlink(self, file: str) -> None:
        (self._directory / file).unlink(missing_ok=True)

    def _problem(self, what: str, error: OSError) -> ChannelError:
        return ChannelError(f"cannot {what} channel '{self._name}' in {self._directory}: {reason_of(error)}")
