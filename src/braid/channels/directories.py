"""The channels of a network below one directory, and what is announced there."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from pathlib import Path
from shutil import rmtree
from typing import Any

from braid.channels.announced import Announced, DocumentReader, enveloped
from braid.channels.directory import DirectoryChannel
from braid.channels.files import UNFINISHED, replace, write_new
from braid.channels.plain_names import plain_name
from braid.errors import ChannelError, reason_of
from braid.model.checks import shown


class DirectoryChannels:
    """A directory for each channel below `channels`, a file for each announced document below `announced`."""

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path).absolute()
        self._reader = DocumentReader()

    def open(self, name: str, keep: int = 0) -> DirectoryChannel:
        return DirectoryChannel(self._channel(name), name, keep)

    def remove(self, name: str) -> None:
        directory = self._channel(name)
        # It is gone at once, whatever happens while its files are removed.
        leaving = directory.with_name(f"{directory.name}.{secrets.token_hex(4)}{UNFINISHED}")
        try:
            directory.rename(leaving)
            rmtree(leaving)
        except FileNotFoundError:
            return
        except OSError as error:
            raise ChannelError(f"cannot remove channel '{name}' in {directory}: {reason_of(error)}") from error

    def announce(self, kind: str, key: str, document: Mapping[str, Any]) -> None:
        self._announce(kind, key, document, replace)

    def announce_new(self, kind: str, key: str, document: Mapping[str, Any]) -> bool:
        try:
            self._announce(kind, key, document, write_new)
        except FileExistsError:
            return False
        return True

    def _announce(self, kind: str, key: str, document: Mapping[str, Any], write: Callable[[Path, bytes], None]) -> None:
        path = self._document(kind, key)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write(path, enveloped(key, document))
        except FileExistsError:
            raise
        except OSError as error:
            raise ChannelError(f"cannot announce {kind} '{key}' in {path}: {reason_of(error)}") from error

    def announced(self, kind: str) -> Announced:
        documents = Announced()
        for path in sorted((self._path / "announced" / plain_name(kind)).glob("*.json")):
            try:
                data = path.read_bytes()
            except FileNotFoundError:
                continue  # withdrawn a moment ago
            except IsADirectoryError:
                data = b""
            except OSError as error:
                # The document may be whole, and be read in a moment: nobody may take it for damaged.
                raise ChannelError(f"cannot read the announced {kind} {path}: {reason_of(error)}") from error
            self._reader.add_enveloped(documents, kind, path.stem, str(path), data)
        return documents

    @property
    def damaged_documents(self) -> int:
        return self._reader.damaged

    def withdraw(self, kind: str, key: str) -> None:
        path = self._document(kind, key)
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise ChannelError(f"cannot withdraw {kind} '{key}', {path}: {reason_of(error)}") from error

    def to_json(self) -> dict[str, Any]:
        return {"kind": "directory", "path": str(self._path)}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> DirectoryChannels:
        for name in content:
            if name not in ("kind", "path"):
                raise ChannelError(f"channels of kind 'directory' have no option '{name}'; they have a 'path'")
        if not isinstance(content.get("path"), str):
            raise ChannelError(
                f"channels of kind 'directory' need the 'path' of a directory, not {shown(content.get('path'))}"
            )
        return cls(content["path"])

    def _channel(self, name: str) -> Path:
        return self._path / "channels" / plain_name(name)

    def _document(self, kind: str, key: str) -> Path:
        return self._path / "announced" / plain_name(kind) / f"{plain_name(key)}.json"
