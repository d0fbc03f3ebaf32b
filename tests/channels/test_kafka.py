"""A Kafka cluster can be away, lose answers, be trimmed, and be written to by others."""

import json
import logging
import random
import shutil
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Timer
from typing import Any
from unittest.mock import Mock
from uuid import uuid4

import pytest

from braid.channels.batch import NONE, Batch
from braid.channels.channel import read_behind
from braid.channels.kafka import channel as channel_module
from braid.channels.kafka import topics
from braid.channels.kafka.channel import LOG, ROWS, KafkaChannel
from braid.channels.kafka.channel_state import ATTEMPT, CHUNKS, END, ChannelState
from braid.channels.kafka.channels import TOPIC, KafkaChannels
from braid.channels.kafka.connection import Connection, close_connections, connection_of
from braid.channels.kafka.documents import Documents
from braid.channels.kafka.records import NewRecord, Record
from braid.channels.kinds import channels_of
from braid.channels.memory import MemoryChannel
from braid.errors import ChannelError
from braid.testing.channel_batches import NAME, batch, fill, last_number, numbers_behind
from braid.testing.kafka_broker import KafkaBroker, PartitionLog, Topic
from braid.testing.kafka_cluster import KafkaCluster

ROOT = Path(__file__).parents[2]


@pytest.fixture
def channels(kafka_broker: KafkaBroker) -> KafkaChannels:
    return KafkaChannels.from_json({**kafka_broker.channels, "prefix": f"test-{uuid4()}"})


@pytest.fixture
def channel(channels: KafkaChannels) -> KafkaChannel:
    opened = channels.open(NAME)
    fill(opened, 0, 1, 2)
    return opened


def servers(broker: KafkaBroker) -> list[str]:
    return list(broker.channels["servers"])


def connected(channel: KafkaChannel) -> Connection:
    return connection_of(channel._options)


def partition(broker: KafkaBroker, channel: KafkaChannel, index: int) -> PartitionLog:
    return broker.topics[channel._topic].partitions[index]


def put(channel: KafkaChannel, key: str, value: bytes, **headers: bytes) -> None:
    """Write a record to the log of a channel that is no business of channels."""
    connected(channel).append(channel._topic, LOG, [NewRecord(value, key.encode(), headers)])


def reopened(channel: KafkaChannel) -> KafkaChannel:
    """The channel as another process opens it, which has read nothing before."""
    connected(channel).followers.clear()
    connected(channel)._ahead.clear()
    return KafkaChannels.from_json(channel._options.to_json()).open(channel.name)


# The cluster.


def test_a_cluster_that_is_not_there_is_an_error_after_some_patience(caplog: pytest.LogCaptureFixture) -> None:
    login = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": "me"}
    channels = KafkaChannels("127.0.0.1:1", client={**login, "sasl.password": "secret"}, timeout=0.2, patience=0.3)
    with caplog.at_level(logging.WARNING), pytest.raises(ChannelError) as caught:
        channels.open(NAME)
    told = f"opening channel '{NAME}' at the Kafka cluster 127.0.0.1:1: "
    assert str(caught.value).startswith(told)
    assert "start the brokers or check the addresses" in str(caught.value)
    assert told in caplog.text and "trying again" in caplog.text
    assert "secret" not in caplog.text + str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "need the 'servers' of a cluster"),
        ({"servers": "localhost"}, "'localhost' is no address of a Kafka broker; write host:port"),
        ({"servers": ["h:1", "kafka://h:1"]}, "'kafka://h:1' is no address"),
        ({"servers": 5}, "'servers' of Kafka channels must be a list of addresses, not 5"),
        ({"servers": None}, "need the 'servers' of a cluster"),
        ({"servers": "h:1", "prefix": "a.b"}, r"the prefix 'a\.b' of Kafka channels"),
        ({"servers": "h:1", "prefix": 5}, "the prefix of Kafka channels must be a string, not 5"),
        ({"servers": "h:1", "administer": "no"}, "administer of Kafka channels must be a bool, not 'no'"),
        ({"servers": "h:1", "replicas": 1.5}, "replicas of Kafka channels must be a whole number, not 1.5"),
        ({"servers": "h:1", "timeout": float("nan")}, "timeout of Kafka channels must be a number greater than 0; nan"),
        ({"servers": "h:1", "timeout": 0}, "timeout of Kafka channels must be a number greater than 0; 0 was given"),
        ({"servers": "h:1", "replicas": "two"}, "replicas of Kafka channels must be a whole number, not 'two'"),
        ({"servers": "h:1", "clients": {}}, "have no option 'clients'; did you mean 'client'"),
        ({"servers": "h:1", "client": "x"}, "'client' of Kafka channels must be a mapping of settings; 'x' was given"),
        ({"servers": "h:1", "topic": {"a": [1]}}, "the setting 'a' in 'topic' of Kafka channels must be a text"),
        ({"servers": "h:1", "client": {"bootstrap.servers": "h:2"}}, "is Braid's own; give 'servers' instead"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ChannelError, match=message):
        channels_of({"kind": "kafka", **options})


def test_a_setting_that_the_client_does_not_know_is_an_error() -> None:
    channels = KafkaChannels("127.0.0.1:1", client={"sasl.pasword": "secret"})
    with pytest.raises(ChannelError, match=r'opening channel .*No such configuration property: "sasl\.pasword"'):
        channels.open(NAME)


def test_options_come_back_from_json() -> None:
    client = {"security.protocol": "SSL", "ssl.ca.location": "ca.pem"}
    described = KafkaChannels("a:1, b:2", client=client, topic={"min.insync.replicas": 2}, replicas=3).to_json()
    assert channels_of(described).to_json() == described
    assert described == {
        "kind": "kafka",
        "servers": ["a:1", "b:2"],
        "client": client,
        "topic": {"min.insync.replicas": 2},
        "replicas": 3,
    }


def test_topics_keep_their_records_and_have_the_settings_that_are_given(kafka_broker: KafkaBroker) -> None:
    options = {**kafka_broker.channels, "prefix": f"test-{uuid4()}", "topic": {"min.insync.replicas": 2}}
    channel = KafkaChannels.from_json(options).open(NAME)
    topic = kafka_broker.topics[channel._topic]
    assert len(topic.partitions) == 2
    assert topic.settings == {
        "cleanup.policy": "delete",
        "retention.ms": "-1",
        "retention.bytes": "-1",
        "min.insync.replicas": "2",
    }
    assert kafka_broker.topics[f"{options['prefix']}.documents"].settings["cleanup.policy"] == "compact"


def test_a_topic_with_too_few_partitions_is_refused(channel: KafkaChannel, kafka_broker: KafkaBroker) -> None:
    kafka_broker.topics["narrow"] = Topic([PartitionLog()], {})
    with pytest.raises(ChannelError, match="the topic narrow has 1 partitions, but needs 2"):
        topics.create(connected(channel), channel._options, "narrow", 2, topics.KEPT)


def test_a_payload_larger_than_a_record_is_cut(kafka_broker: KafkaBroker) -> None:
    options = {**kafka_broker.channels, "prefix": f"test-{uuid4()}", "client": {"message.max.bytes": 32768}}
    channel = KafkaChannels.from_json(options).open(NAME)
    large = batch(0, NONE, rows=100_000)
    channel.publish(large)
    assert channel.read(0).segments == large.segments
    assert partition(kafka_broker, channel, ROWS).end > len(large.payload) // 32768


def test_small_batches_that_are_read_one_by_one_are_fetched_together(
    channel: KafkaChannel, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(channel, *range(3, 60))
    reader = reopened(channel)
    entries = reader.entries(NONE)
    fetch = Mock(side_effect=connected(channel)._fetch)
    monkeypatch.setattr(connected(channel), "_fetch", fetch)
    assert [reader.read(entry.number).rows for entry in entries] == [3] * 60
    assert 0 < fetch.call_count < 30


def test_other_processes_read_and_a_forked_one_has_a_connection_of_its_own(kafka_cluster: KafkaCluster) -> None:
    """As Spark's Python workers are."""
    location = {**kafka_cluster.channels, "prefix": f"test-{uuid4()}"}
    program = f"""
import os
from braid.channels.kinds import channels_of
from braid.testing.channel_batches import NAME, fill, last_number
channel = channels_of({location!r}).open(NAME)
fill(channel, 0)
child = os.fork()
if child == 0:
    fill(channel, 1)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
assert last_number(channel) == 1
"""
    subprocess.run([sys.executable, "-c", program], check=True, cwd=ROOT)
    assert [part.rows for part in read_behind(channels_of(location).open(NAME), NONE)] == [3, 3]


QUICK = {
    "retry.backoff.ms": 10,
    "retry.backoff.max.ms": 10,
    "reconnect.backoff.ms": 0,
    "reconnect.backoff.max.ms": 10,
}
"""Settings of the client for a broker that is often away."""


@pytest.fixture
def closing() -> Iterator[None]:
    """For tests with a broker of their own: clients would look for it after it has ended."""
    yield
    close_connections()


@pytest.mark.usefixtures("closing")
def test_a_broker_that_comes_back_is_waited_for() -> None:
    with KafkaBroker() as broker:
        channel = KafkaChannels.from_json({**broker.channels, "timeout": 1, "client": QUICK}).open(NAME)
        fill(channel, 0)
        broker.stop()
        starting = Timer(0.5, broker.start)
        starting.start()
        assert last_number(channel) == 0
        fill(channel, 1)
        starting.join()
        assert [part.rows for part in read_behind(channel, NONE)] == [3, 3]


@pytest.mark.usefixtures("closing")
def test_who_may_not_enter_is_told_why() -> None:
    login = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": "anna"}
    with KafkaBroker(login=("anna", "right")) as broker:
        fill(KafkaChannels(servers(broker), client={**login, "sasl.password": "right"}).open(NAME), 0)
        with pytest.raises(ChannelError, match=r"wrong user or password.*; check the settings security\.protocol"):
            KafkaChannels(servers(broker), client={**login, "sasl.password": "wrong"}, timeout=1).open(NAME)


@pytest.mark.usefixtures("closing")
@pytest.mark.skipif(shutil.which("openssl") is None, reason="makes a certificate with openssl")
def test_tls_files_are_used(tmp_path: Path) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subject = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2"]
    make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*make, *subject], check=True, capture_output=True)
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(certificate))
    tls.load_cert_chain(certificate, key)
    tls.verify_mode = ssl.CERT_REQUIRED
    client = {
        "security.protocol": "SSL",
        "ssl.ca.location": str(certificate),
        "ssl.certificate.location": str(certificate),
        "ssl.key.location": str(key),
    }
    with KafkaBroker(tls=tls) as broker:
        fill(KafkaChannels(servers(broker), client=client).open(NAME), 0)
        with pytest.raises(ChannelError, match=r"certificate verify failed.*; check the settings security\.protocol"):
            KafkaChannels(servers(broker), client={"security.protocol": "SSL"}, timeout=1).open(NAME)


@pytest.mark.usefixtures("closing")
@pytest.mark.parametrize("idempotent", [True, False])
def test_nothing_is_lost_or_twice_when_answers_get_lost(idempotent: bool) -> None:
    """The broker appends again what it has taken already: which record counts must not depend on that."""
    count = 40
    with KafkaBroker(losing=0.3) as broker:
        location = {**broker.channels, "client": {**QUICK, "enable.idempotence": idempotent}}
        channel = KafkaChannels.from_json(location).open(NAME)
        channel.subscribe("lyon")
        taken: list[int] = []
        for number in range(count):
            assert channel.publish(batch(number, number - 1, number, number, number))
            taken += [part.rows for part in read_behind(channel, number - 1)]
            channel.release("lyon", number)
        assert taken == list(range(count))
        assert partition(broker, channel, LOG).end > 2 * count + 5, "answers were lost"
        assert last_number(reopened(channel)) == count - 1
        assert channel.entries(count - 1) == []


# Other publishers.


def test_what_a_publisher_left_that_was_killed_is_ignored_and_deleted(
    channel: KafkaChannel, kafka_broker: KafkaBroker
) -> None:
    rows = partition(kafka_broker, channel, ROWS)
    connected(channel).append(channel._topic, ROWS, [NewRecord(b"half a batch")])
    assert numbers_behind(reopened(channel), NONE) == [0, 1, 2]
    channel.subscribe("lyon")
    fill(channel, 3)
    assert [part.rows for part in read_behind(reopened(channel), NONE)] == [3, 3, 3, 3]
    channel.release("lyon", 3)
    assert (rows.first, rows.end, rows.batches) == (5, 5, [])


@pytest.fixture
def interrupted(channel: KafkaChannel, monkeypatch: pytest.MonkeyPatch) -> Callable[[Batch], None]:
    """Lets another site publish a batch after the publisher has asked what is there, before it writes its mark."""
    send = KafkaChannel._send

    def interrupt(other: Batch) -> None:
        def send_later(self: KafkaChannel, connection: Connection, batch: Batch, attempt: str) -> Record:
            monkeypatch.setattr(KafkaChannel, "_send", send)
            assert channel.publish(other)
            return send(self, connection, batch, attempt)

        monkeypatch.setattr(KafkaChannel, "_send", send_later)

    return interrupt


def test_of_two_publishers_at_the_same_time_one_wins(
    channel: KafkaChannel, interrupted: Callable[[Batch], None]
) -> None:
    interrupted(batch(3, 2, rows=50))
    assert channel.publish(batch(3, 2, rows=400)) is False
    assert channel.read(3).rows == 50
    fill(channel, 4)
    assert [part.rows for part in read_behind(reopened(channel), 2)] == [50, 3]


def test_a_publisher_that_has_lost_its_place_is_refused(
    channel: KafkaChannel, interrupted: Callable[[Batch], None]
) -> None:
    interrupted(batch(3, 2, rows=50))
    with pytest.raises(ChannelError, match=r"batch 4 of channel .* follows batch 2, but the newest one there is 3"):
        channel.publish(batch(4, 2))
    assert numbers_behind(reopened(channel), NONE) == [0, 1, 2, 3]


@pytest.mark.usefixtures("closing", "snapshots")
def test_of_two_processes_that_publish_one_wins_every_batch_also_when_answers_get_lost() -> None:
    """Each with a connection of its own, beside a subscriber with another one, whose releases trim the log."""
    with KafkaBroker(losing=0.1) as broker:
        first, second, reader = (
            KafkaChannels.from_json({**broker.channels, "client": QUICK, "timeout": timeout}).open(NAME)
            for timeout in (10, 11, 12)
        )
        reader.subscribe("lyon")
        with ThreadPoolExecutor() as threads:
            for number in range(30):
                published = threads.map(
                    lambda channel, rows, number=number: channel.publish(batch(number, number - 1, rows)),
                    [first, second],
                    [10, 20],
                )
                won = list(published)
                assert sorted(won) == [False, True]
                assert [part.rows for part in read_behind(reader, number - 1)] == [10 if won[0] else 20]
                reader.release("lyon", number)
        assert partition(broker, reader, LOG).first > 20
        assert first.entries(29) == second.entries(29) == []


def test_many_change_the_subscribers_at_once(channel: KafkaChannel) -> None:
    def subscribe(name: str) -> None:
        other = KafkaChannels.from_json(channel._options.to_json()).open(NAME)
        other.subscribe(name)
        other.release(name, 1)

    with ThreadPoolExecutor() as threads:
        list(threads.map(subscribe, [f"site {number}" for number in range(8)]))
    assert numbers_behind(reopened(channel), NONE) == [2]


# Removal.


def check_trimming(seed: int, channels: KafkaChannels) -> KafkaChannel:
    """Random publishing, subscribing and releasing, beside a channel in memory; now and then in another process."""
    choose, model, tested = random.Random(seed), MemoryChannel(NAME, keep=20), channels.open(NAME, keep=20)
    for step in range(150):
        last = last_number(model)
        subscriber = choose.choice(["lyon", "nice", "metz"])
        match choose.choice(["publish", "publish", "subscribe", "release", "release", "release", "leave", "reopen"]):
            case "publish":
                new = batch(step, last, choose.randrange(4), 10 * step, 10 * step)
                assert tested.publish(new) and model.publish(new)
            case "subscribe":
                tested.subscribe(subscriber)
                model.subscribe(subscriber)
            case "release":
                upto = choose.randint(NONE, last)
                tested.release(subscriber, upto)
                model.release(subscriber, upto)
            case "leave":
                if subscriber in model.released():
                    tested.unsubscribe(subscriber)
                    model.unsubscribe(subscriber)
            case "reopen":
                tested = reopened(tested)
        assert tested.last() == model.last()
        assert tested.released() == model.released()
        assert tested.entries(NONE) == model.entries(NONE)
        assert [part.segments for part in read_behind(tested, NONE)] == [
            part.segments for part in read_behind(model, NONE)
        ]
    return tested


@pytest.fixture
def snapshots(monkeypatch: pytest.MonkeyPatch) -> None:
    """A log needs few records to get a snapshot."""
    monkeypatch.setattr(channel_module, "SNAPSHOT_EVERY", 5)


@pytest.mark.usefixtures("snapshots")
def test_a_log_that_is_trimmed_says_the_same_as_one_that_is_not(
    channels: KafkaChannels, kafka_broker: KafkaBroker
) -> None:
    tested = check_trimming(0, channels)
    assert partition(kafka_broker, tested, LOG).first > 20
    assert partition(kafka_broker, tested, ROWS).first > 20


@pytest.mark.sweep
@pytest.mark.usefixtures("snapshots")
@pytest.mark.parametrize("seed", range(1, 100))
def test_sweep_of_trimmed_logs(seed: int, channels: KafkaChannels) -> None:
    check_trimming(seed, channels)


@pytest.mark.usefixtures("snapshots")
def test_a_reader_that_was_away_while_the_log_was_trimmed_goes_on(
    channel: KafkaChannel, kafka_broker: KafkaBroker
) -> None:
    location = {**channel._options.to_json(), "timeout": 9}  # so it has a connection of its own
    away = KafkaChannels.from_json(location).open(NAME)
    assert numbers_behind(away, NONE) == [0, 1, 2]
    channel.subscribe("lyon")
    fill(channel, *range(3, 10))
    channel.release("lyon", 8)
    assert partition(kafka_broker, channel, LOG).first > 5
    assert numbers_behind(away, NONE) == [9]
    with pytest.raises(ChannelError, match="has no batch 8, which its batch 9 follows; the last one before is 2"):
        away.entries(2)


def test_a_snapshot_that_did_not_know_all_records_before_it_does_not_count() -> None:
    state = ChannelState(NAME, 0)
    state.apply(Record(0, b"subscribe", b'{"subscriber": "lyon", "after": -1}', {}))
    snapshot = state.snapshot(1)
    state.apply(Record(1, b"subscribe", b'{"subscriber": "nice", "after": -1}', {}))
    state.apply(Record(2, b"snapshot", snapshot, {}))
    assert state.subscribers.released == {"lyon": NONE, "nice": NONE}


def test_a_cluster_that_deletes_no_records_is_told_of_and_the_channel_goes_on(
    kafka_cluster: KafkaCluster, caplog: pytest.LogCaptureFixture
) -> None:
    location = {**kafka_cluster.channels, "prefix": f"test-{uuid4()}"}
    channels_of(location).open(NAME)
    channel = channels_of({**location, "administer": True}).open(NAME)
    channel.subscribe("lyon")
    fill(channel, 0, 1)
    with caplog.at_level(logging.WARNING):
        channel.release("lyon", 0)
    assert "records before 1 of partition 1 of topic" in caplog.text and "stay: " in caplog.text
    assert numbers_behind(channel, NONE) == [1]


def test_a_channel_that_others_removed_is_an_error(
    channel: KafkaChannel, channels: KafkaChannels, kafka_broker: KafkaBroker
) -> None:
    channels.remove(NAME)
    assert channel._topic not in kafka_broker.topics
    for call in (channel.last, lambda: channel.read(2), lambda: channel.publish(batch(3, 2))):
        with pytest.raises(ChannelError, match=f"channel '{NAME}' was removed"):
            call()


def test_a_channel_whose_topic_could_not_be_deleted_is_an_error_too(kafka_cluster: KafkaCluster) -> None:
    channels = KafkaChannels.from_json({**kafka_cluster.channels, "prefix": f"test-{uuid4()}"})
    channel = channels.open(NAME)
    fill(channel, 0)
    channels.remove(NAME)
    with pytest.raises(ChannelError, match=f"channel '{NAME}' was removed"):
        channel.publish(batch(1, 0))
    fill(channels.open(NAME), 0)


def test_a_channel_whose_removal_was_cut_short_begins_anew(channel: KafkaChannel, kafka_broker: KafkaBroker) -> None:
    put(channel, END, b"{}")
    again = reopened(channel)
    fill(again, 0, 1)
    assert numbers_behind(reopened(channel), NONE) == [0, 1]
    assert channel._topic not in kafka_broker.topics


def test_of_many_who_open_a_new_channel_one_creates_it(channels: KafkaChannels, kafka_broker: KafkaBroker) -> None:
    before = set(kafka_broker.topics)
    with ThreadPoolExecutor(8) as threads:
        opened = list(threads.map(lambda _: channels.open(NAME), range(8)))
    assert {channel._topic for channel in opened} == {channels.announced(TOPIC)[NAME]["topic"]}
    assert len(set(kafka_broker.topics) - before) == 2, "its topic and that of the documents"


# What does not belong there.


def test_a_foreign_mark_is_an_error_that_names_it(channel: KafkaChannel) -> None:
    put(channel, "mark 7", b"hello")
    for call in (channel.last, lambda: channel.entries(2), lambda: channel.read(7), lambda: fill(channel, 9)):
        with pytest.raises(ChannelError, match=r"batch 7 of channel .* is no batch: it begins with b'hell'"):
            call()


@pytest.mark.parametrize(("key", "value"), [("hello", b"{}"), ("mark x", b"{}"), ("release", b"hello")])
def test_a_foreign_record_is_an_error_that_names_it_and_the_channel_can_be_removed(
    key: str, value: bytes, channel: KafkaChannel, channels: KafkaChannels
) -> None:
    put(channel, key, value)
    with pytest.raises(ChannelError, match=rf"channel '{NAME}' has a record 3 with the key b'{key}' that it cannot"):
        channel.entries(NONE)
    channels.remove(NAME)
    fill(channels.open(NAME), 0)


def test_a_mark_without_its_chunks_is_an_error(channel: KafkaChannel) -> None:
    put(channel, "mark 3", batch(3, 2).head)
    with pytest.raises(ChannelError, match=r"batch 3 of channel .* is damaged: its mark does not tell its chunks"):
        channel.read(3)


@pytest.mark.parametrize("change", ["corrupt", "truncated", "out of order", "of another batch"])
def test_damaged_content_is_an_error_that_names_the_batch(change: str, channel: KafkaChannel) -> None:
    damaged = batch(3, 2)
    half = len(damaged.payload) // 2
    first, second = damaged.payload[:half], damaged.payload[half:]
    parts = {
        "corrupt": [first, second[:-1] + b"?"],
        "truncated": [first, second[:-1]],
        "out of order": [second, first],
        "of another batch": [first, second],
    }[change]
    offsets = connected(channel).append(channel._topic, ROWS, [NewRecord(part) for part in parts])
    chunks = "0-1" if change == "of another batch" else f"{offsets[0]}-{offsets[1]}"
    put(channel, "mark 3", damaged.head, **{ATTEMPT: b"x", CHUNKS: chunks.encode()})
    with pytest.raises(ChannelError, match=r"batch 3 of channel .* is damaged"):
        channel.read(3)
    assert channel.read(2).rows == 3


def test_rows_that_were_lost_are_an_error_that_names_the_batch(
    channel: KafkaChannel, kafka_broker: KafkaBroker
) -> None:
    partition(kafka_broker, channel, ROWS).delete(before=2)
    with pytest.raises(ChannelError, match="has no batch 1: it was removed or lost"):
        channel.read(1)
    assert channel.read(2).rows == 3


def test_a_log_that_has_lost_its_beginning_is_an_error(channel: KafkaChannel, kafka_broker: KafkaBroker) -> None:
    partition(kafka_broker, channel, LOG).delete(before=1)
    with pytest.raises(ChannelError, match="has no record before record 1 of its topic, and no snapshot"):
        reopened(channel).entries(NONE)


def test_a_log_that_has_lost_batches_behind_a_snapshot_is_an_error(
    channel: KafkaChannel, kafka_broker: KafkaBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channel_module, "SNAPSHOT_EVERY", 1)
    channel.subscribe("lyon")
    fill(channel, 3)
    partition(kafka_broker, channel, LOG).delete(before=1)
    with pytest.raises(ChannelError, match="has no batch 0, which its batch 1 follows; the last one before is -1"):
        reopened(channel).entries(NONE)


def test_a_log_that_has_lost_its_end_is_an_error(channel: KafkaChannel, kafka_broker: KafkaBroker) -> None:
    log = partition(kafka_broker, channel, LOG)
    log.batches.pop()
    log.end -= 1
    with pytest.raises(ChannelError, match=r"the topic .* ends before record 2, but had 3 records before"):
        channel.entries(NONE)


# Documents.


@pytest.mark.parametrize("key", [b"{", b'"ab"', b"[]", b'["sites"]', b'["sites", 7]', b"\xff"])
def test_a_record_that_is_no_document_is_told_of_once(
    key: bytes, channels: KafkaChannels, caplog: pytest.LogCaptureFixture
) -> None:
    channels.announce("sites", "lyon", {})
    topic = f"{channels.to_json()['prefix']}.documents"
    connection_of(channels._options).append(topic, LOG, [NewRecord(b"{}", key)])
    channels.announce("sites", "nice", {})
    assert list(channels.announced("sites")) == list(channels.announced("sites")) == ["lyon", "nice"]
    (warning,) = caplog.messages
    assert f"record 1 of the topic {topic} is damaged" in warning
    assert channels.damaged_documents == 1
    connection_of(channels._options).append(topic, LOG, [NewRecord(None, key)])
    assert KafkaChannels.from_json(channels.to_json()).announced("sites").keys() == {"lyon", "nice"}
    assert len(caplog.messages) == 1


def test_a_damaged_attempt_to_be_first_stays_the_first(channels: KafkaChannels) -> None:
    """Otherwise programs that have read the record before it was damaged would know another first one."""
    channels.announce("sites", "nice", {})
    topic = f"{channels.to_json()['prefix']}.documents"
    connection_of(channels._options).append(topic, LOG, [NewRecord(b"{", b'["sites", "lyon", "1f"]')])
    assert not channels.announce_new("sites", "lyon", {})
    assert channels.announced("sites").is_damaged("lyon")
    channels.withdraw("sites", "lyon")
    assert channels.announce_new("sites", "lyon", {"up": True})
    assert channels.announced("sites") == {"nice": {}, "lyon": {"up": True}}


def test_a_channel_whose_topic_is_not_known_gets_no_other_one(channels: KafkaChannels) -> None:
    channels.open(NAME)
    topic = f"{channels.to_json()['prefix']}.documents"
    connection_of(channels._options).append(topic, LOG, [NewRecord(b"{", json.dumps([TOPIC, NAME]).encode())])
    with pytest.raises(ChannelError, match="names the topic of channel 'flights ⋈ bags / 1' is damaged"):
        channels.open(NAME)


def test_attempts_that_were_replaced_are_deleted(channels: KafkaChannels, kafka_broker: KafkaBroker) -> None:
    documents = kafka_broker.topics
    assert channels.announce_new("verdicts", "first", {"go": True})
    channels.withdraw("verdicts", "first")
    assert documents[f"{channels.to_json()['prefix']}.documents"].partitions[0].end == 3
    channels.withdraw("verdicts", "first")
    channels.announce("verdicts", "first", {"go": True})
    channels.announce("verdicts", "first", {"go": True})
    assert documents[f"{channels.to_json()['prefix']}.documents"].partitions[0].end == 4, "nothing else is news"


@pytest.mark.parametrize("seed", range(20))
def test_compaction_changes_no_document(seed: int) -> None:
    """At any time compaction may drop, from the oldest part of the log, records with a newer one of the same key."""
    choose, whole, log = random.Random(seed), Documents("t"), list[Record]()
    for offset in range(60):
        key = choose.choice("ab")
        replaced = whole.replaced.get(("kind", key))
        match choose.choice(["announce", "withdraw", "new", "new", "delete"]):
            case "announce":
                record = Record(offset, f'["kind", "{key}"]'.encode(), f'{{"n": {offset}}}'.encode(), {})
            case "delete" if replaced:
                record = Record(offset, f'["kind", "{key}", "{replaced[0]}"]'.encode(), None, {})
            case "withdraw":
                record = Record(offset, f'["kind", "{key}"]'.encode(), b"null", {})
            case _:
                record = Record(offset, f'["kind", "{key}", "{offset}"]'.encode(), f'{{"n": {offset}}}'.encode(), {})
        whole.apply(record)
        log.append(record)
        if choose.random() < 0.3:
            cleaned = choose.randrange(len(log) + 1)
            newest = {kept.key: kept.offset for kept in log}
            log = [kept for kept in log[:cleaned] if newest[kept.key] == kept.offset] + log[cleaned:]
            log = [kept for kept in log[:cleaned] if kept.value is not None] + log[cleaned:]
        compacted = Documents("t")
        for kept in log:
            compacted.apply(kept)
        assert compacted.texts == whole.texts
