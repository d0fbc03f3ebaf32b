"""A connection to a NATS server for code that does not wait in coroutines.

The connection has an event loop in a thread of its own. What is asked of the server is a coroutine function that may
run again: when the connection is lost, or the server does not answer, it runs anew on a new connection, until the
patience is used up. So it must ask what is there before it changes anything.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
import ssl
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import nats
from nats import errors
from nats.aio.client import Client
from nats.js import JetStreamContext
from nats.js.errors import APIError, BucketNotFoundError, NoStreamResponseError, ServiceUnavailableError
from nats.js.kv import KeyValue

from braid.channels.jetstream.options import NatsOptions
from braid.errors import ChannelError

logger = logging.getLogger(__name__)

FIRST_PAUSE, LONGEST_PAUSE = 0.05, 2.0
"""Seconds between attempts to reach the server: each pause is twice the one before."""

TROUBLE = (
    OSError,  # TimeoutError is one
    errors.ConnectionClosedError,
    errors.ConnectionReconnectingError,
    errors.NoRespondersError,
    errors.NoServersError,
    errors.OutboundBufferLimitError,
    errors.StaleConnectionError,
    NoStreamResponseError,
    ServiceUnavailableError,
)
"""What may be over in a moment: the server is away, starts, or chooses a leader."""

FULL = {10023, 10047, 10122}
"""The server's codes of errors about room: of the server, for a stream, and on its disk."""

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class NatsSession:
    """What can be asked while the connection lasts: streams, and the bucket of the network."""

    streams: JetStreamContext
    bucket: KeyValue
    most_bytes: int
    """The largest message that the server takes."""
    timeout: float


class Connection:
    """A connection that is made when it is first needed, and again when it was lost."""

    def __init__(self, options: NatsOptions) -> None:
        self._options = options
        self._loop = asyncio.new_event_loop()
        self._connecting = asyncio.Lock()
        self._client: Client | None = None
        self._session: NatsSession | None = None
        self._lost = asyncio.Event()
        self._reason: Exception | None = None
        threading.Thread(target=self._loop.run_forever, name="braid-nats", daemon=True).start()

    def run(self, what: str, action: Callable[[NatsSession], Awaitable[Answer]]) -> Answer:
        """The answer of the server. `what` says in errors what is done: "reading batch 3 of channel 'x'"."""
        started, pause = time.monotonic(), FIRST_PAUSE
        while True:
            try:
                answer = asyncio.run_coroutine_threadsafe(self._attempt(action), self._loop).result()
            except ssl.SSLCertVerificationError as problem:
                raise ChannelError(f"{self._place(what)}: {problem.strerror or problem}; check tls_ca") from problem
            except ModuleNotFoundError as problem:
                raise ChannelError(f"{self._place(what)}: credentials need the package {problem.name}") from problem
            except TROUBLE as problem:
                waited = time.monotonic() - started
                if waited >= self._options.patience:
                    raise self._unreachable(what, problem, waited) from problem
                logger.warning("%s: %s; trying again", self._place(what), self._told(problem))
            except errors.Error as problem:
                raise ChannelError(f"{self._place(what)}: {self._told(problem)}{_hint(problem)}") from problem
            else:
                if pause > FIRST_PAUSE:
                    logger.warning("%s: the server answers again", self._place(what))
                return answer
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    def close(self) -> None:
        with suppress(Exception):
            asyncio.run_coroutine_threadsafe(self._disconnect(), self._loop).result(timeout=5)
        self._loop.call_soon_threadsafe(self._loop.stop)

    async def _attempt(self, action: Callable[[NatsSession], Awaitable[Answer]]) -> Answer:
        """Run an action, but no longer than the connection lasts: the library would wait forever for an answer."""
        session = await self._connected()
        work = asyncio.ensure_future(action(session))
        lost = asyncio.ensure_future(self._lost.wait())
        await asyncio.wait({work, lost}, return_when=asyncio.FIRST_COMPLETED)
        lost.cancel()
        if not work.done():
            work.cancel()
            raise errors.ConnectionClosedError
        try:
            return work.result()
        except TimeoutError:
            # The other end may be gone without a word.
            await self._disconnect()
            raise

    async def _connected(self) -> NatsSession:
        async with self._connecting:
            if self._session is None or self._lost.is_set():
                await self._disconnect()
                self._lost = asyncio.Event()
                self._client = client = await nats.connect(**self._settings(self._lost))
                self._session = await self._open(client)
                self._reason = None
            return self._session

    async def _open(self, client: Client) -> NatsSession:
        streams = client.jetstream(timeout=self._options.timeout)
        name = self._options.prefix
        try:
            bucket = await streams.key_value(name)
        except BucketNotFoundError:
            # Not direct: a replica that is behind must not answer.
            bucket = await streams.create_key_value(
                bucket=name, history=1, direct=False, replicas=self._options.replicas
            )
        return NatsSession(streams, bucket, client.max_payload, self._options.timeout)

    async def _disconnect(self) -> None:
        client, self._client, self._session = self._client, None, None
        if client is not None:
            with suppress(Exception):
                await asyncio.wait_for(client.close(), timeout=1)

    def _settings(self, lost: asyncio.Event) -> dict[str, Any]:
        async def failed(problem: Exception) -> None:
            self._reason = problem

        async def gone() -> None:
            lost.set()

        options = self._options
        settings: dict[str, Any] = {
            "servers": list(options.urls),
            "name": "braid",
            "error_cb": failed,
            "closed_cb": gone,
            "allow_reconnect": False,
            # The library takes 0 for "for ever".
            "max_reconnect_attempts": 1,
            "reconnect_time_wait": 0,
            "connect_timeout": options.timeout,
            "user": options.user,
            "password": options.password,
            "token": options.token,
            "user_credentials": options.credentials,
            "tls": _tls(options),
        }
        return {name: value for name, value in settings.items() if value is not None}

    def _place(self, what: str) -> str:
        return f"{what} at the NATS server {self._options.shown_urls}"

    def _told(self, problem: Exception) -> str:
        """A reason in words. That no server is there is what the library says last; why is what it said before."""
        if isinstance(problem, errors.NoServersError) and self._reason is not None:
            problem = self._reason
        if isinstance(problem, APIError) and problem.description:
            return problem.description
        if isinstance(problem, TimeoutError):
            return f"no answer for {self._options.timeout:g} s"
        if isinstance(problem, OSError):
            return "it does not accept a connection" if problem.strerror is None else problem.strerror
        if isinstance(problem, errors.NoRespondersError | ServiceUnavailableError):
            return "JetStream does not answer; the server must run with JetStream enabled"
        return str(problem).removeprefix("nats: ")

    def _unreachable(self, what: str, problem: Exception, waited: float) -> ChannelError:
        return ChannelError(
            f"{self._place(what)}: {self._told(problem)}; tried for {waited:.1f} s; "
            f"{'make room' if _is_full(problem) else 'start the server or check the address'}; "
            "what was published stays, and nothing is lost"
        )


def _is_full(problem: Exception) -> bool:
    return isinstance(problem, ServiceUnavailableError) and problem.err_code in FULL


def _hint(problem: Exception) -> str:
    return "; check user, password, token or credentials" if "authoriz" in str(problem).lower() else ""


def _tls(options: NatsOptions) -> ssl.SSLContext | None:
    if options.tls_ca is None and options.tls_certificate is None:
        return None
    try:
        context = ssl.create_default_context(cafile=options.tls_ca)
        if options.tls_certificate is not None:
            context.load_cert_chain(options.tls_certificate, options.tls_key)
    except OSError as error:
        raise ChannelError(
            f"cannot use the TLS files {options.tls_ca}, {options.tls_certificate} and {options.tls_key} of the NATS "
            f"server: {error}; check the paths and what is in them"
        ) from error
    return context


_connections: dict[tuple[int, NatsOptions], Connection] = {}
_opening = threading.Lock()


def connection_of(options: NatsOptions) -> Connection:
    """The connection of this process to a server. All channels there share it; a forked process has its own."""
    key = (os.getpid(), options)
    with _opening:
        if key not in _connections:
            _connections[key] = Connection(options)
        return _connections[key]


def close_connections() -> None:
    """Close all connections of this process; who needs one later gets a new one."""
    with _opening:
        for process, options in list(_connections):
            if process == os.getpid():
                _connections.pop((process, options)).close()


atexit.register(close_connections)
