"""Arrays of engines between micro-batches, in files that any worker process of this host can map into its memory.

This is only a cache: an engine can always be rebuilt from the state store. Before a worker changes the arrays of a
version, it *claims* them by renaming their directory. It writes the new name to the state store together with its other
changes. If an attempt does not commit, the state store does not have the name of the arrays it has changed, so they are
never used again. Arrays that are missing, damaged or too large are a cache miss, never an error.
"""

from __future__ import annotations

import errno
import json
import mmap
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from braid.engine.arrays.columns import State
from braid.hosts.spark.shared.cache_space import CacheSpace

HEADER = "header.json"
"""The file of a version that describes its state and the files of its arrays."""

PAST = 10**18
"""File times that mark sealed files are before this, in nanoseconds since 1970: in the year 2001."""


class ArrayCache:
    """A directory with the versions of one query's arrays, within a limited space."""

    def __init__(self, directory: Path, space: CacheSpace | None = None) -> None:
        self._directory = directory
        self._space = space

    @property
    def closed(self) -> bool:
        """Whether the cache is turned off."""
        return self._space is not None and self._space.closed

    def claim(self, token: str) -> Version | None:
        """The version with this token, under a new token that only the caller knows; None if it is not here."""
        claimed = self._directory / new_token()
        try:
            (self._directory / token).rename(claimed)
            return Version(claimed, self._space)
        except OSError:
            return None

    def create(self) -> Version | None:
        """A new, empty version; None if its directory cannot be made."""
        claimed = self._directory / new_token()
        try:
            claimed.mkdir(parents=True)
            return Version(claimed, self._space)
        except OSError:
            return None


Files = dict[int, tuple[str, object]]
"""The file name of each array that is mapped from a file, and the array itself, by the `id` of the array."""


class Version:
    """One claimed version of a shard's arrays: a header and a file for each array."""

    def __init__(self, directory: Path, space: CacheSpace | None = None) -> None:
        self._directory = directory
        self._space = space
        self._files: Files = {}

    @property
    def token(self) -> str:
        return self._directory.name

    def read(self) -> State | None:
        """The state that was written; None if it is damaged. Its arrays are mapped: changing them changes the files."""
        try:
            state: State = self._load(self._header())
            return state
        except (OSError, ValueError, KeyError, TypeError, pa.ArrowException):
            self.remove()
            return None

    def adopt(self, state: State) -> bool:
        """Use arrays that the caller still has mapped, as `write` returned them; False if their files are damaged."""
        try:
            names_and_arrays = zip(_names(self._header()), _arrays(state), strict=True)
            self._files = {id(array): (name, array) for name, array in names_and_arrays}
        except (OSError, ValueError, KeyError, TypeError):
            self.remove()
            return False
        return True

    def _header(self) -> dict[str, Any]:
        """The state in the header, with file names for arrays; `ValueError` if a file was changed since `_seal`."""
        header = json.loads((self._directory / HEADER).read_bytes())
        if any(self._mark(name) != mark for name, mark in header["files"].items()):
            raise ValueError("a file was changed after it was sealed")
        state: dict[str, Any] = header["state"]
        return state

    def write(self, state: State) -> State | None:
        """Write a state; arrays that are not files of this version yet become files.

        Returns the state with all arrays mapped from their files; None if there is no room.
        """
        try:
            self._make_room(state)
            files: Files = {}
            stored, mapped = self._store(state, files)
            marks = {name: self._seal(name) for name, _ in files.values()}
            (self._directory / HEADER).write_text(json.dumps({"files": marks, "state": stored}))
            for name, _ in self._files.values():
                if name not in marks:
                    (self._directory / name).unlink(missing_ok=True)
            self._files = files
            os.utime(self._directory)
        except OSError:
            self.remove()
            return None
        result: State = mapped
        return result

    def remove(self) -> None:
        shutil.rmtree(self._directory, ignore_errors=True)

    def _make_room(self, state: State) -> None:
        os.utime(self._directory)
        size = sum(array.nbytes for array in _arrays(state) if id(array) not in self._files)
        if size and self._space is not None and not self._space.make(size):
            raise OSError(errno.ENOSPC, "the caches of this host have all the room they may take")

    def _seal(self, name: str) -> list[int]:
        """Give a file a random old time, so that any later write changes its mark.

        With its real time, a write within the resolution of the file system's clock would not show.
        """
        moment = 1 + secrets.randbelow(PAST)
        os.utime(self._directory / name, ns=(moment, moment))
        return self._mark(name)

    def _mark(self, name: str) -> list[int]:
        """Changes whenever a file is written to or replaced: its inode, size and modification time."""
        status = (self._directory / name).stat()
        return [status.st_ino, status.st_size, status.st_mtime_ns]

    def _load(self, value: Any) -> Any:
        """A value of the header with its arrays mapped from their files."""
        if isinstance(value, list):
            return [self._load(element) for element in value]
        if not isinstance(value, dict):
            return value
        if "parts" in value:
            return {name: self._load(part) for name, part in value["parts"].items()}
        if "file" in value:
            array = self._map(value["file"], value["dtype"], value["shape"])
            self._files[id(array)] = (value["file"], array)
            return array
        array = pa.ipc.open_file(pa.memory_map(str(self._directory / value["arrow"]))).get_batch(0).column(0)
        self._files[id(array)] = (value["arrow"], array)
        return array

    def _map(self, name: str, dtype: str, shape: list[int]) -> np.ndarray[Any, Any]:
        with (self._directory / name).open("r+b") as file:
            content = mmap.mmap(file.fileno(), 0)
        return np.frombuffer(content, dtype, count=int(np.prod(shape))).reshape(shape)

    def _store(self, value: Any, files: Files) -> tuple[Any, Any]:
        """A value as the header describes it, and the same value with its arrays mapped from files.

        Adds all these files to `files`.
        """
        if isinstance(value, np.ndarray):
            name, array = self._files.get(id(value)) or self._write_array(value)
            files[id(array)] = (name, array)
            return {"file": name, "dtype": value.dtype.str, "shape": list(value.shape)}, array
        if isinstance(value, pa.Array):
            name, array = self._files.get(id(value)) or (self._write_arrow(value), value)
            files[id(array)] = (name, array)
            return {"arrow": name}, array
        if isinstance(value, list):
            return _unzip(self._store(element, files) for element in value)
        if isinstance(value, dict):
            stored, mapped = _unzip(self._store(part, files) for part in value.values())
            # Keys may be names of streams, even "file" or "arrow"; below "parts" they cannot be taken for ours.
            return {"parts": dict(zip(value, stored, strict=True))}, dict(zip(value, mapped, strict=True))
        return value, value

    def _write_array(self, value: np.ndarray[Any, Any]) -> tuple[str, np.ndarray[Any, Any]]:
        name = secrets.token_hex(8)
        with (self._directory / name).open("w+b") as file:
            # Written rather than mapped at once: a full disk is then an error here and not a crash later.
            file.write(np.ascontiguousarray(value).data if value.size else b"\0")
        return name, self._map(name, value.dtype.str, list(value.shape))

    def _write_arrow(self, value: pa.Array) -> str:
        name = secrets.token_hex(8)
        batch = pa.RecordBatch.from_arrays([value], ["values"])
        with pa.ipc.new_file(str(self._directory / name), batch.schema) as writer:
            writer.write_batch(batch)
        return name


def _names(stored: Any) -> Iterator[str]:
    """The names of files in a header, in order."""
    if isinstance(stored, list):
        for part in stored:
            yield from _names(part)
    elif isinstance(stored, dict):
        if "parts" in stored:
            yield from _names(list(stored["parts"].values()))
        else:
            yield stored.get("file") or stored["arrow"]


def _arrays(state: Any) -> Iterator[Any]:
    """The arrays in a state, in the same order as `_names`."""
    if isinstance(state, np.ndarray | pa.Array):
        yield state
    elif isinstance(state, dict | list):
        for part in state.values() if isinstance(state, dict) else state:
            yield from _arrays(part)


def _unzip(pairs: Iterable[tuple[Any, Any]]) -> tuple[list[Any], list[Any]]:
    both = list(pairs)
    return [stored for stored, _ in both], [mapped for _, mapped in both]


def new_token() -> str:
    """A random name, used once."""
    return secrets.token_hex(12)
