"""A NATS server can be away, full, killed and written to by others."""

import asyncio
import logging
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Any
from uuid import uuid4

import pytest
from nats.errors import ConnectionClosedError

from braid.channels.batch import NONE, Batch
from braid.channels.channel import read_behind
from braid.channels.jetstream import marks
from braid.channels.jetstream.channel import JetStreamChannel
from braid.channels.jetstream.channels import NatsChannels
from braid.channels.jetstream.connection import NatsSession, close_connections, connection_of
from braid.channels.jetstream.marks import CHUNKS
from braid.channels.jetstream.publishing import Publishing
from braid.channels.kinds import channels_of
from braid.errors import ChannelError
from braid.testing.channel_batches import NAME, batch, fill, last_number, numbers_behind, publish_until_refused
from braid.testing.nats_server import NatsServer

ROOT = Path(__file__).parents[2]


@pytest.fixture
def channel(nats_server: NatsServer) -> JetStreamChannel:
    opened = NatsChannels(nats_server.url, prefix=f"test-{uuid4()}").open(NAME)
    fill(opened, 0, 1, 2)
    return opened


@pytest.fixture(autouse=True)
def closing() -> Iterator[None]:
    yield
    close_connections()


def ask(channel: JetStreamChannel, action: Callable[[NatsSession], Any]) -> Any:
    """Do something to the stream of a channel that is no business of channels."""
    return connection_of(channel._options).run("testing", action)


def reopened(channel: JetStreamChannel) -> JetStreamChannel:
    return JetStreamChannel(channel._options, channel.name)


def messages(channel: JetStreamChannel) -> int:
    return int(ask(channel, lambda session: session.streams.stream_info(channel._stream.name)).state.messages)


# The server.


def test_a_server_that_is_not_there_is_an_error_after_some_patience(caplog: pytest.LogCaptureFixture) -> None:
    channels = NatsChannels("nats://me:secret@127.0.0.1:1", patience=0.2)
    with caplog.at_level(logging.WARNING), pytest.raises(ChannelError) as caught:
        channels.open(NAME)
    told = f"opening channel '{NAME}' at the NATS server nats://127.0.0.1:1: "
    assert str(caught.value).startswith(told)
    assert "start the server or check the address" in str(caught.value)
    assert f"{told}Connect call failed" in caplog.text and "trying again" in caplog.text
    assert "secret" not in caplog.text + str(caught.value)


def test_who_may_not_enter_is_told_at_once(tmp_path: Path) -> None:
    with NatsServer(tmp_path, ['authorization { token: "right" }']) as server:
        fill(NatsChannels(server.url, token="right").open(NAME), 0)
        with pytest.raises(ChannelError, match=r"Authorization Violation.*; check user, password, token or credent"):
            NatsChannels(server.url, token="wrong").open(NAME)


def test_credentials_without_the_package_that_reads_them_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "site.creds").write_text("")
    with NatsServer(tmp_path, ['authorization { users: [{ user: "anna", password: "right" }] }']) as server:
        channels = NatsChannels(server.url, credentials=str(tmp_path / "site.creds"))
        with pytest.raises(ChannelError, match=r"opening channel .* credentials need the package nkeys"):
            channels.open(NAME)


def test_users_with_and_without_jetstream(tmp_path: Path) -> None:
    accounts = """accounts {
      A { jetstream: enabled, users: [ { user: "anna", password: "right" } ] }
      B { users: [ { user: "bert", password: "right" } ] }
    }"""
    with NatsServer(tmp_path, [accounts]) as server:
        fill(NatsChannels(server.url, user="anna", password="right").open(NAME), 0)
        with pytest.raises(ChannelError, match=r"opening channel .*[Jj]et[Ss]tream not enabled for account"):
            NatsChannels(server.url, user="bert", password="right", patience=0.1).open(NAME)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="makes a certificate with openssl")
def test_tls_files_are_used(tmp_path: Path) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subject = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2"]
    make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*make, *subject], check=True, capture_output=True)
    tls = f'tls {{ cert_file: "{certificate}", key_file: "{key}", ca_file: "{certificate}", verify: true }}'
    files = {"tls_ca": str(certificate), "tls_certificate": str(certificate), "tls_key": str(key)}
    with NatsServer(tmp_path / "server", [tls]) as server:
        url = server.url.replace("nats:", "tls:")
        fill(NatsChannels(url, **files).open(NAME), 0)
        with pytest.raises(ChannelError, match="certificate verify failed"):
            NatsChannels(url).open(NAME)
    with pytest.raises(ChannelError, match=r"cannot use the TLS files .*nothing\.pem"):
        NatsChannels(server.url, tls_ca=str(tmp_path / "nothing.pem")).open(NAME)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "need the 'url' of a server"),
        ({"url": "localhost"}, "'localhost' is no address of a NATS server; write nats://host:port"),
        ({"url": "nats://h:99999"}, "'nats://h:99999' is no address"),
        ({"url": "nats://h", "prefix": "a b"}, "the prefix 'a b' of NATS channels"),
        ({"url": 5}, "'url' of NATS channels must be a list of addresses, not 5"),
        ({"url": "nats://h", "prefix": 5}, "the prefix of NATS channels must be a string, not 5"),
        ({"url": "nats://h", "user": 5}, "user of NATS channels must be .*, not 5"),
        ({"url": "nats://h", "replicas": 1.5}, "replicas of NATS channels must be a whole number, not 1.5"),
        ({"url": "nats://h", "timeout": 0}, "timeout of NATS channels must be a number greater than 0; 0 was given"),
        ({"url": "nats://h", "pasword": "x"}, "have no option 'pasword'; did you mean 'password'"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ChannelError, match=message):
        channels_of({"kind": "nats", **options})


def test_options_come_back_from_json() -> None:
    described = NatsChannels(["nats://a:1", "nats://b:2"], user="me", password="secret", timeout=3).to_json()
    assert channels_of(described).to_json() == described
    assert described == {
        "kind": "nats",
        "url": ["nats://a:1", "nats://b:2"],
        "user": "me",
        "password": "secret",
        "timeout": 3,
    }


def test_a_payload_larger_than_the_server_takes_is_cut(tmp_path: Path) -> None:
    with NatsServer(tmp_path, ["max_payload: 32768"]) as server:
        channel = NatsChannels(server.url).open(NAME)
        large = batch(0, NONE, rows=300_000)
        channel.publish(large)
        assert channel.read(0).segments == large.segments
        assert messages(channel) > len(large.payload) // 32768


@pytest.mark.parametrize("dies", [False, True], ids=["publisher lives", "publisher dies"])
def test_a_full_server_refuses_a_batch_and_takes_it_when_there_is_room_again(
    dies: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A publisher that dies when it is refused cannot take back the chunks that have filled the server."""
    if dies:
        monkeypatch.setattr(Publishing, "_take_back", lambda *arguments: asyncio.sleep(0))
    with NatsServer(tmp_path, storage=4_000_000) as server:
        channel = NatsChannels(server.url, patience=0.1).open(NAME)
        channel.subscribe("lyon")
        published, problem = publish_until_refused(channel, rows=100_000)
        assert problem.startswith(f"publishing batch {published} on channel '{NAME}' at the NATS server")
        assert "insufficient resources" in problem and "make room" in problem
        assert published > 2
        assert numbers_behind(channel, NONE) == list(range(published)), "what was published is there"
        channel.release("lyon", published - 1)
        assert channel.publish(batch(published, published - 1, rows=100_000))
        assert channel.read(published).rows == 100_000


def test_nothing_is_lost_or_twice_when_the_server_is_killed(tmp_path: Path) -> None:
    """A publisher and a subscriber with a connection each go on while the server dies three times."""
    count, dice = 150, random.Random(1)
    sizes = [dice.choice([0, 3, 1_000, 200_000]) for _ in range(count)]
    with NatsServer(tmp_path) as server:
        published = []

        def publish() -> None:
            channel = NatsChannels(server.url, timeout=9).open(NAME)
            for number, rows in enumerate(sizes):
                published.append(channel.publish(batch(number, number - 1, rows, number, number)))

        channel = NatsChannels(server.url, timeout=8).open(NAME)
        channel.subscribe("lyon")
        taken: list[Batch] = []
        new: list[Batch] = []
        kills = [20, 60, 100]
        with ThreadPoolExecutor() as threads:
            publishing = threads.submit(publish)
            while new or not publishing.done():
                if kills and len(taken) >= kills[0]:
                    kills.pop(0)
                    server.kill()
                    server.start()
                new = read_behind(channel, taken[-1].number if taken else NONE, most_bytes=3_000_000)
                taken += new
                channel.release("lyon", taken[-1].number if taken else NONE)
            publishing.result()
        taken += read_behind(channel, taken[-1].number)
        channel.release("lyon", taken[-1].number)
        assert kills == []
        assert published == [True] * count
        assert [part.number for part in taken] == list(range(count))
        assert [part.rows for part in taken] == sizes
        assert channel.entries(count - 1) == []
        assert messages(channel) <= 3, "the mark of the last batch, and what a killed server had left of a batch"


def test_a_server_that_comes_later_is_waited_for(tmp_path: Path) -> None:
    server = NatsServer(tmp_path)
    with server:
        channel = NatsChannels(server.url).open(NAME)
        fill(channel, 0)
    starting = Thread(target=lambda: (asyncio.run(asyncio.sleep(0.5)), server.start()))
    starting.start()
    assert last_number(channel) == 0
    starting.join()
    server.stop()


def test_a_forked_process_has_a_connection_of_its_own(nats_server: NatsServer) -> None:
    """As Spark's Python workers are."""
    program = f"""
import os
from braid.channels.jetstream.channels import NatsChannels
from braid.testing.channel_batches import NAME, fill, last_number
channel = NatsChannels({nats_server.url!r}, prefix={f"test-{uuid4()}"!r}).open(NAME)
fill(channel, 0)
child = os.fork()
if child == 0:
    fill(channel, 1)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
assert last_number(channel) == 1
"""
    subprocess.run([sys.executable, "-c", program], check=True, cwd=ROOT)


def test_a_long_log_is_read_in_parts(channel: JetStreamChannel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(marks, "AT_ONCE", 10)
    fill(channel, *range(3, 60))
    assert numbers_behind(reopened(channel), NONE) == list(range(60))
    assert numbers_behind(reopened(channel), 20) == list(range(21, 60))
    size = channel.entries(58)[0].bytes
    assert len(reopened(channel).entries(NONE, most_bytes=30 * size)) == 30
    readers = ask(channel, lambda session: session.streams.consumers_info(channel._stream.name))
    assert readers == []


# Other publishers.


def test_what_a_publisher_left_that_was_killed_is_ignored_and_purged(channel: JetStreamChannel) -> None:
    program = f"""
import os, signal
from braid.channels.jetstream.publishing import Publishing
from braid.channels.kinds import channels_of
from braid.testing.channel_batches import NAME, batch
async def die(*arguments):
    os.kill(os.getpid(), signal.SIGKILL)
Publishing._put = die
channels_of({channel._options.to_json()!r}).open(NAME).publish(batch(3, 2, rows=400_000))
"""
    done = subprocess.run([sys.executable, "-c", program], check=False, cwd=ROOT)
    assert done.returncode == -signal.SIGKILL
    before = messages(channel)
    assert before > 8, "three batches, and chunks without a mark"
    assert numbers_behind(reopened(channel), NONE) == [0, 1, 2]
    fill(channel, 3)
    assert messages(channel) == 9, "four batches and the fence"
    assert [part.rows for part in read_behind(reopened(channel), NONE)] == [3, 3, 3, 3]


class Interrupted(Publishing):
    """Another site publishes a batch after the chunks of this one, before its mark."""

    other: Batch

    async def _put(self, session: NatsSession, *arguments: Any) -> None:
        if last := getattr(self, "other", None):
            del self.other
            assert await Publishing(self._stream, last)(session)
        await super()._put(session, *arguments)


def test_of_two_publishers_at_the_same_time_one_wins(channel: JetStreamChannel) -> None:
    publishing = Interrupted(channel._stream, batch(3, 2, rows=400_000))
    publishing.other = batch(3, 2, rows=50)
    assert ask(channel, publishing) is False
    assert channel.read(3).rows == 50
    fill(channel, 4)
    assert [part.rows for part in read_behind(channel, 2)] == [50, 3]


def test_a_publisher_that_has_lost_its_place_is_refused(channel: JetStreamChannel) -> None:
    publishing = Interrupted(channel._stream, batch(4, 2))
    publishing.other = batch(3, 2, rows=50)
    with pytest.raises(ChannelError, match=r"batch 4 of channel .* follows batch 2, but the newest one there is 3"):
        ask(channel, publishing)


class Unanswered(Publishing):
    """The connection is lost after the server has taken the mark, before its answer comes."""

    lost = 0

    async def _put(self, session: NatsSession, *arguments: Any) -> None:
        await super()._put(session, *arguments)
        if not self.lost:
            self.lost += 1
            raise ConnectionClosedError


def test_a_batch_whose_answer_was_lost_is_found_and_not_published_again(channel: JetStreamChannel) -> None:
    publishing = Unanswered(channel._stream, batch(3, 2))
    assert ask(channel, publishing) is True
    assert publishing.lost == 1
    assert messages(channel) == 8


def test_the_server_takes_every_message_only_behind_the_one_before(channel: JetStreamChannel) -> None:
    """Chunks that came in another order would be a batch that nobody can read."""
    channel.publish(batch(3, 2, rows=600_000))
    count = messages(channel)
    assert count > 9
    for sequence in range(1, count + 1):
        message = ask(channel, lambda session, at=sequence: session.streams.get_msg(channel._stream.name, at))
        assert message.headers["Nats-Expected-Last-Sequence"] == str(sequence - 1)


# What does not belong there.


def test_a_foreign_mark_is_an_error_that_names_it(channel: JetStreamChannel) -> None:
    subject = channel._stream.subject("mark", 7)
    ask(channel, lambda session: session.streams.publish(subject, b"hello"))
    for call in (channel.last, lambda: channel.entries(2), lambda: channel.read(7), lambda: fill(channel, 9)):
        with pytest.raises(ChannelError, match=r"batch 7 of channel .* is no batch: it begins with b'hell'"):
            call()
    assert channel.read(2).rows == 3


def test_a_foreign_message_is_an_error_that_names_it(channel: JetStreamChannel) -> None:
    subject = channel._stream.subject("mark", "hello")
    ask(channel, lambda session: session.streams.publish(subject, b"hello"))
    with pytest.raises(ChannelError, match=r"has a message 7 on .*\.mark\.hello that is no batch"):
        channel.entries(NONE)


def test_a_mark_without_its_number_of_chunks_is_an_error(channel: JetStreamChannel) -> None:
    subject = channel._stream.subject("mark", 3)
    ask(channel, lambda session: session.streams.publish(subject, batch(3, 2).head))
    with pytest.raises(ChannelError, match=r"batch 3 of channel .* is damaged: its mark does not tell its chunks"):
        channel.read(3)


@pytest.mark.parametrize("change", ["corrupt", "truncated", "out of order", "of another batch"])
def test_damaged_content_is_an_error_that_names_the_batch(change: str, channel: JetStreamChannel) -> None:
    damaged = batch(3, 2)
    half = len(damaged.payload) // 2
    first, second = damaged.payload[:half], damaged.payload[half:]
    parts = {
        "corrupt": [first, second[:-1] + b"?"],
        "truncated": [first, second[:-1]],
        "out of order": [second, first],
        "of another batch": [first, second],
    }[change]
    number = 8 if change == "of another batch" else 3

    async def write(session: NatsSession) -> None:
        for part in parts:
            await session.streams.publish(channel._stream.subject("chunk", number), part)
        await session.streams.publish(channel._stream.subject("mark", 3), damaged.head, headers={CHUNKS: "2"})

    ask(channel, write)
    with pytest.raises(ChannelError, match=r"batch 3 of channel .* is damaged"):
        channel.read(3)
    assert channel.read(2).rows == 3


def test_a_batch_that_was_lost_is_an_error_that_names_it(channel: JetStreamChannel) -> None:
    """The messages of three batches are 1 to 6, a chunk and a mark each."""
    ask(channel, lambda session: session.streams.delete_msg(channel._stream.name, 3))
    with pytest.raises(ChannelError, match="has no batch 1: it was removed or lost"):
        channel.read(1)
    ask(channel, lambda session: session.streams.delete_msg(channel._stream.name, 4))
    with pytest.raises(ChannelError, match="has no batch 1, which its batch 2 follows; the last one before is 0"):
        reopened(channel).entries(NONE)


def test_a_channel_that_others_removed_is_an_error(channel: JetStreamChannel) -> None:
    NatsChannels.from_json(channel._options.to_json()).remove(NAME)
    for call in (channel.last, lambda: channel.read(2), lambda: channel.publish(batch(3, 2))):
        with pytest.raises(ChannelError, match=f"channel '{NAME}' was removed"):
            call()


def test_a_stream_that_drops_messages_is_refused(channel: JetStreamChannel) -> None:
    async def limit(session: NatsSession) -> None:
        config = (await session.streams.stream_info(channel._stream.name)).config
        await session.streams.update_stream(config.evolve(max_msgs=100))

    ask(channel, limit)
    with pytest.raises(ChannelError, match="has a limit by age or by number of messages"):
        reopened(channel)


def test_a_damaged_document_is_an_error(channel: JetStreamChannel) -> None:
    async def spoil(session: NatsSession) -> None:
        for key in await session.bucket.keys():
            await session.bucket.put(key, b"{")

    ask(channel, spoil)
    with pytest.raises(ChannelError, match="what the bucket of the NATS server holds on channel"):
        channel.entries(NONE)


def test_a_damaged_announcement_is_told_of_with_its_subject(
    channel: JetStreamChannel, caplog: pytest.LogCaptureFixture
) -> None:
    async def spoil(session: NatsSession) -> None:
        await session.bucket.put("announced.sites.lyon", b'{"key": "nice", "document": {}}')

    ask(channel, spoil)
    channels = NatsChannels.from_json(channel._options.to_json())
    assert channels.announced("sites") == {}
    (warning,) = caplog.messages
    assert "announced.sites.lyon on the NATS server is damaged" in warning
    assert "it has the key of another document, 'nice'" in warning


def test_a_channel_whose_removal_was_cut_short_begins_anew(channel: JetStreamChannel) -> None:
    channel.subscribe("lyon")
    channel.release("lyon", 2)
    ask(channel, lambda session: session.streams.delete_stream(channel._stream.name))
    fill(reopened(channel), 0, 1)
    assert numbers_behind(reopened(channel), NONE) == [0, 1]


def test_many_change_the_subscribers_at_once(channel: JetStreamChannel) -> None:
    def subscribe(name: str) -> None:
        with suppress(ChannelError):
            other = reopened(channel)
            other.subscribe(name)
            other.release(name, 1)

    threads = [Thread(target=subscribe, args=(f"site {number}",)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert numbers_behind(channel, NONE) == [2]
