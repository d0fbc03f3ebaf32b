"""Hot arrays between micro-batches: files that any worker process of this host maps into its memory.

The state store is the truth; this only saves rebuilding from it. A worker *claims* the arrays of a version by renaming
their directory before it changes anything, and the name they then have is written to the state store with the changes.
So arrays that an attempt has changed without committing have a name that nobody knows, and are never seen again. What
is missing, damaged or does not fit is a miss, never an error.
"""

from __future__ import annotations

import errno
import json
import mmap
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from braid.engine.arrays.columns import State
from braid.hosts.spark.shared.cache_space import CacheSpace

HEADER = "header.json"

PAST = 10**18
"""Nanoseconds since 1970 that are over: until 2001."""


class ArrayCache:
    """A directory of array versions of one query, which take no more room than there is for them."""

    def __init__(self, directory: Path, space: CacheSpace | None = None) -> None:
        self._directory = directory
        self._space = space

    @property
    def closed(self) -> bool:
        """Whether nothing may be kept at all."""
        return self._space is not None and self._space.closed

    def claim(self, token: str) -> Version | None:
        """The version of this name, now under a new one that only the caller knows; None if it is not here."""
        claimed = self._directory / new_token()
        try:
            (self._directory / token).rename(claimed)
            return Version(claimed, self._space)
        except OSError:
            return None

    def create(self) -> Version | None:
        """A new, empty version; None if there is no room for one."""
        claimed = self._directory / new_token()
        try:
            claimed.mkdir(parents=True)
            return Version(claimed, self._space)
        except OSError:
            return None


class Version:
    """One claimed version: a header and a file for each array."""

    def __init__(self, directory: Path, space: CacheSpace | None = None) -> None:
        self._directory = directory
        self._space = space
        self._files: dict[int, tuple[str, object]] = {}

    @property
    def token(self) -> str:
        return self._directory.name

    def read(self) -> State | None:
        """What was written; None if it is not whole. The arrays are the files themselves: who writes, writes there."""
        try:
            state: State = self._load(self._header())
            return state
        except (OSError, ValueError, KeyError, TypeError, pa.ArrowException):
            self.remove()
            return None

    def adopt(self, state: State) -> bool:
        """The caller still has these arrays mapped, as `write` returned them; False if their files are not whole."""
        try:
            named = zip(_names(self._header()), _arrays(state), strict=True)
            self._files = {id(array): (name, array) for name, array in named}
        except (OSError, ValueError, KeyError, TypeError):
            self.remove()
            return False
        return True

    def _header(self) -> dict[str, Any]:
        header = json.loads((self._directory / HEADER).read_bytes())
        if any(self._mark(name) != mark for name, mark in header["files"].items()):
            raise ValueError("somebody else has written to the files")
        state: dict[str, Any] = header["state"]
        return state

    def write(self, state: State) -> State | None:
        """Keep a state: arrays that are not files of this version yet become such. Returns the state with those.

        None if there is no room for it.
        """
        try:
            self._make_room(state)
            kept: dict[int, tuple[str, object]] = {}
            stored, mapped = self._store(state, kept)
            marks = {name: self._seal(name) for name, _ in kept.values()}
            (self._directory / HEADER).write_text(json.dumps({"files": marks, "state": stored}))
            for name, _ in self._files.values():
                if name not in {still for still, _ in kept.values()}:
                    (self._directory / name).unlink(missing_ok=True)
            self._files = kept
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
        """Mark a file so that any later write shows: some file systems would give it the time it has already."""
        moment = 1 + secrets.randbelow(PAST)
        os.utime(self._directory / name, ns=(moment, moment))
        return self._mark(name)

    def _mark(self, name: str) -> list[int]:
        """What tells a file from one that has been written to, or put in its place, since."""
        status = (self._directory / name).stat()
        return [status.st_ino, status.st_size, status.st_mtime_ns]

    def _load(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._load(part) for part in value]
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

    def _store(self, value: Any, kept: dict[int, tuple[str, object]]) -> tuple[Any, Any]:
        """A value as the header has it, and as it is to be used from now on."""
        if isinstance(value, np.ndarray):
            name, array = self._files.get(id(value)) or self._write_array(value)
            kept[id(array)] = (name, array)
            return {"file": name, "dtype": value.dtype.str, "shape": list(value.shape)}, array
        if isinstance(value, pa.Array):
            name, array = self._files.get(id(value)) or (self._write_arrow(value), value)
            kept[id(array)] = (name, array)
            return {"arrow": name}, array
        if isinstance(value, list):
            stored, mapped = _unzip(self._store(part, kept) for part in value)
            return stored, mapped
        if isinstance(value, dict):
            stored, mapped = _unzip(self._store(part, kept) for part in value.values())
            # Parts have names of streams, which may be any: they stand apart from our own.
            return {"parts": dict(zip(value, stored, strict=True))}, dict(zip(value, mapped, strict=True))
        return value, value

    def _write_array(self, value: np.ndarray[Any, Any]) -> tuple[str, np.ndarray[Any, Any]]:
        name = secrets.token_hex(8)
        with (self._directory / name).open("w+b") as file:
            # Written, not only mapped: a full disk then is an error here and not a crash later.
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
    """The arrays in a state, in the same order."""
    if isinstance(state, np.ndarray | pa.Array):
        yield state
    elif isinstance(state, dict | list):
        for part in state.values() if isinstance(state, dict) else state:
            yield from _arrays(part)


def _unzip(pairs: Iterator[tuple[Any, Any]]) -> tuple[list[Any], list[Any]]:
    both = list(pairs)
    return [stored for stored, _ in both], [mapped for _, mapped in both]


def new_token() -> str:
    """A name that nobody has."""
    return secrets.token_hex(12)
