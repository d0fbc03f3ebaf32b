"""Channels as directories: a file for each batch, on a local or a shared file system.

A batch is written under a name that nobody reads, synced, and then linked to its own name, which fails if that is
there. So a batch is there whole or not at all, and the first of two writers wins. What a crash leaves half written is
swept when the channel is opened to publish.
"""

from __future__ import annotations

import json
import os
import re
import secrets
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from braid.channels.batch import NONE, Batch
from braid.channels.channel import Lag, check_follows, check_whole
from braid.channels.retention import Subscribers, within_bytes
from braid.errors import ChannelError, reason_of

BATCH = re.compile(r"(\d{12})-(\d{12}|none)\.batch")
"""Names of batches: their number, and the one of the batch before."""

SUBSCRIBER = ".subscriber"
UNFINISHED = ".unfinished"
LAST = "last.json"
"""The number of the newest batch that was removed: numbers must not start again when all batches are gone."""


class DirectoryChannel:
    """The batches of one channel in a directory of its own."""

    def __init__(self, directory: Path, name: str) -> None:
        self._directory = directory
        self._name = name
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ChannelError(f"cannot make the directory of channel '{name}': {reason_of(error)}") from error

    @property
    def name(self) -> str:
        return self._name

    def publish(self, batch: Batch) -> bool:
        last = self.last()
        if batch.number <= last:
            return False
        check_follows(batch, last)
        self._write(_file_name(batch.number, batch.previous), batch.data)
        return True

    def last(self) -> int:
        return max(self._numbers(), default=self._removed())

    def read(self, after: int, most_bytes: int | None = None) -> Sequence[Batch]:
        files = {number: path for number, path in self._files().items() if number > after}
        sizes = {number: path.stat().st_size for number, path in files.items()}
        batches = [self._read(number, files[number]) for number in within_bytes(sizes, most_bytes)]
        check_whole(batches, after)
        return batches

    def lag(self, after: int) -> Lag:
        sizes = [path.stat().st_size for number, path in self._files().items() if number > after]
        return Lag(len(sizes), sum(sizes))

    def subscribe(self, subscriber: str, after: int = NONE) -> None:
        path = self._subscriber_file(subscriber)
        if not path.exists():
            self._replace(path, json.dumps({"subscriber": subscriber, "released": after}).encode())

    def release(self, subscriber: str, upto: int) -> None:
        subscribers = self._subscribers()
        files = self._files()
        unneeded = subscribers.release(subscriber, upto, files)
        released = subscribers.released[subscriber]
        content = json.dumps({"subscriber": subscriber, "released": released}).encode()
        self._replace(self._subscriber_file(subscriber), content)
        if unneeded:
            self._replace(self._directory / LAST, json.dumps({"removed": max(unneeded)}).encode())
        for number in unneeded:
            files[number].unlink(missing_ok=True)

    def sweep(self) -> None:
        """Remove what a crash has left half written; for the publisher, before it publishes."""
        for path in self._directory.glob(f"*{UNFINISHED}"):
            path.unlink(missing_ok=True)

    def _read(self, number: int, path: Path) -> Batch:
        try:
            data = path.read_bytes()
        except OSError as error:
            raise ChannelError(
                f"cannot read batch {number} of channel '{self._name}': {reason_of(error)}; check the file system"
            ) from error
        return Batch.from_bytes(data, self._name, number)

    def _files(self) -> dict[int, Path]:
        """The batches by number."""
        files = {}
        for path in self._directory.iterdir():
            match = BATCH.fullmatch(path.name)
            if match is not None:
                files[int(match[1])] = path
            elif path.suffix == ".batch":
                raise ChannelError(
                    f"channel '{self._name}' has a file {path.name} that is no batch; remove what does not belong there"
                )
        return files

    def _numbers(self) -> list[int]:
        return list(self._files())

    def _removed(self) -> int:
        path = self._directory / LAST
        return int(json.loads(path.read_text())["removed"]) if path.exists() else NONE

    def _subscribers(self) -> Subscribers:
        contents = [json.loads(path.read_text()) for path in self._directory.glob(f"*{SUBSCRIBER}")]
        return Subscribers({content["subscriber"]: content["released"] for content in contents})

    def _subscriber_file(self, subscriber: str) -> Path:
        return self._directory / f"{subscriber.encode().hex()}{SUBSCRIBER}"

    def _write(self, name: str, data: bytes) -> None:
        """A file that is there whole, and safe on the disk, or not at all; never over another one."""
        unfinished = self._directory / f"{name}.{secrets.token_hex(4)}{UNFINISHED}"
        try:
            self._sync(unfinished, data)
            os.link(unfinished, self._directory / name)
            self._sync_directory()
        except FileExistsError as error:
            raise ChannelError(
                f"another site has just published {name} on channel '{self._name}'; let one site publish"
            ) from error
        except OSError as error:
            raise ChannelError(
                f"cannot write {name} to channel '{self._name}': {reason_of(error)}; nothing was published"
            ) from error
        finally:
            with suppress(OSError):
                unfinished.unlink(missing_ok=True)

    def _replace(self, path: Path, data: bytes) -> None:
        unfinished = path.with_name(f"{path.name}.{secrets.token_hex(4)}{UNFINISHED}")
        try:
            self._sync(unfinished, data)
            unfinished.replace(path)
        except OSError as error:
            raise ChannelError(f"cannot write {path.name} to channel '{self._name}': {reason_of(error)}") from error

    def _sync(self, path: Path, data: bytes) -> None:
        with path.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())

    def _sync_directory(self) -> None:
        descriptor = os.open(self._directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _file_name(number: int, previous: int) -> str:
    return f"{number:012d}-{'none' if previous == NONE else f'{previous:012d}'}.batch"
