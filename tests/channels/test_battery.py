"""What every kind of channel must do, and what it must refuse."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import uuid4

import pytest

from braid.channels.batch import NONE, Batch
from braid.channels.channel import Channel, Lag, lag, read_behind
from braid.channels.channels import Channels
from braid.channels.directories import DirectoryChannels
from braid.channels.jetstream.channels import NatsChannels
from braid.channels.jetstream.connection import NatsSession, connection_of
from braid.channels.kafka.channels import KafkaChannels
from braid.channels.kafka.connection import connection_of as kafka_connection_of
from braid.channels.kafka.follower import LOG
from braid.channels.kafka.records import NewRecord
from braid.channels.kinds import channels_of
from braid.channels.memory import MemoryChannels
from braid.errors import ChannelError
from braid.testing.channel_batches import NAME, batch, fill, last_number, numbers_behind
from braid.testing.kafka_broker import KafkaBroker
from braid.testing.kafka_cluster import KafkaCluster
from braid.testing.nats_server import NatsServer

Open = Callable[..., Channel]
"""Opens the same channel again, as another process would."""


@pytest.fixture(params=["memory", "directory", "directory without links", "nats", "kafka", "kafka cluster"])
def channels(request: pytest.FixtureRequest, tmp_path: Path) -> Channels:
    match request.param:
        case "memory":
            return MemoryChannels()
        case "directory":
            return DirectoryChannels(tmp_path)
        case "directory without links":
            request.getfixturevalue("no_links")
            return DirectoryChannels(tmp_path)
        case "kafka":
            broker: KafkaBroker = request.getfixturevalue("kafka_broker")
            return KafkaChannels.from_json({**broker.channels, "prefix": f"test-{uuid4()}"})
        case "kafka cluster":
            cluster: KafkaCluster = request.getfixturevalue("kafka_cluster")
            return KafkaChannels.from_json({**cluster.channels, "prefix": f"test-{uuid4()}"})
    server: NatsServer = request.getfixturevalue("nats_server")
    return NatsChannels(server.url, prefix=f"test-{uuid4()}")


@pytest.fixture
def opened(channels: Channels) -> Open:
    return lambda keep=0: channels_of(channels.to_json()).open(NAME, keep)


def test_batches_come_back_as_they_were_published_and_in_order(opened: Open) -> None:
    fill(opened(), 0, 3, 4)
    batches = read_behind(opened(), NONE)
    assert [part.number for part in batches] == [0, 3, 4]
    assert [part.previous for part in batches] == [NONE, 0, 3]
    assert [part.watermark for part in batches] == [0, 30, 40]
    assert [part.newest for part in batches] == [0, 30, 40]
    assert batches[1].segments == batch(3, 0).segments
    assert batches[0].rows == 3


def test_entries_tell_what_batches_are_without_their_rows(opened: Open) -> None:
    fill(opened(), 0, 3, 4)
    assert opened().entries(NONE) == [opened().read(number).entry for number in (0, 3, 4)]
    entry = opened().entries(0)[0]
    assert (entry.number, entry.previous, entry.watermark, entry.newest, entry.rows) == (3, 0, 30, 30, 3)
    assert entry.bytes == len(opened().read(3).data)
    assert opened().last() == opened().entries(3)[0]


def test_a_subscriber_goes_on_behind_the_last_batch_it_took(opened: Open) -> None:
    fill(opened(), 0, 3, 4)
    assert numbers_behind(opened(), 0) == [3, 4]
    assert opened().entries(4) == []


def test_an_empty_channel_has_nothing(opened: Open) -> None:
    assert opened().last() is None
    assert opened().entries(NONE) == []
    assert lag(opened(), NONE) == Lag(0, 0, 0)
    with pytest.raises(ChannelError, match="channel 'flights ⋈ bags / 1' has no batch 0"):
        opened().read(0)


def test_a_batch_without_rows_still_tells_how_far_the_stream_is(opened: Open) -> None:
    opened().publish(batch(7, NONE, rows=0, watermark=99))
    only = opened().read(7)
    assert (only.rows, only.watermark) == (0, 99)


def test_a_large_batch_comes_back(opened: Open) -> None:
    large = batch(0, NONE, rows=300_000)
    assert len(large.data) > 1_000_000
    opened().publish(large)
    assert opened().read(0).segments == large.segments


def test_publishing_again_changes_nothing(opened: Open) -> None:
    fill(opened(), 0, 1)
    assert not opened().publish(batch(1, 0, rows=50))
    assert not opened().publish(batch(0, NONE, rows=50))
    assert [part.rows for part in read_behind(opened(), NONE)] == [3, 3]


def test_a_batch_that_does_not_follow_the_newest_is_refused(opened: Open) -> None:
    fill(opened(), 0, 1)
    with pytest.raises(ChannelError, match=r"batch 5 of channel 'flights ⋈ bags / 1' follows batch 3, .* there is 1"):
        opened().publish(batch(5, 3))
    assert last_number(opened()) == 1


def test_a_reader_takes_no_more_bytes_than_it_may_but_always_one_batch(opened: Open) -> None:
    fill(opened(), *range(5))
    size = opened().entries(NONE)[0].bytes
    assert len(opened().entries(NONE, most_bytes=1)) == 1
    assert len(opened().entries(NONE, most_bytes=3 * size + 10)) == 3
    assert len(opened().entries(NONE, most_bytes=100 * size)) == 5


def test_the_lag_of_a_subscriber_can_be_read(opened: Open) -> None:
    fill(opened(), *range(4))
    assert lag(opened(), 1) == Lag(2, sum(len(part.data) for part in read_behind(opened(), 1)), 6)


def test_what_every_subscriber_has_released_is_removed(opened: Open) -> None:
    opened().subscribe("lyon")
    opened().subscribe("nice")
    fill(opened(), *range(4))
    opened().release("lyon", 3)
    assert len(opened().entries(NONE)) == 4, "nice has released nothing"
    opened().release("nice", 1)
    assert numbers_behind(opened(), 1) == [2, 3]
    with pytest.raises(ChannelError, match="has no batch 1"):
        opened().read(1)
    opened().release("nice", 0)
    assert numbers_behind(opened(), 1) == [2, 3], "a release is never taken back"


def test_who_held_a_position_notices_that_batches_behind_it_are_gone(opened: Open) -> None:
    opened().subscribe("lyon")
    fill(opened(), *range(4))
    opened().release("lyon", 2)
    with pytest.raises(ChannelError, match="has no batch 2, which its batch 3 follows; the last one before is 0"):
        opened().entries(0)


def test_numbers_go_on_when_all_batches_are_gone(opened: Open) -> None:
    opened().subscribe("lyon")
    fill(opened(), 0, 1)
    before = opened().last()
    opened().release("lyon", 1)
    assert opened().entries(NONE) == []
    assert opened().last() == before
    assert not opened().publish(batch(1, 0))
    assert opened().publish(batch(2, 1))
    assert numbers_behind(opened(), 1) == [2]
    assert numbers_behind(opened(), NONE) == [2], "a newcomer begins with what is kept"


def test_batches_stay_for_newcomers_as_long_as_the_channel_keeps_them(opened: Open) -> None:
    opened(keep=20)
    opened().subscribe("lyon")
    fill(opened(), *range(6))
    opened().release("lyon", 5)
    assert numbers_behind(opened(), NONE) == [4, 5], "rows that start at 30 and earlier left the window at 50"
    opened().subscribe("nice")
    fill(opened(), *range(6, 10))
    opened().release("lyon", 9)
    assert numbers_behind(opened(), NONE) == [4, 5, 6, 7, 8, 9], "nice has released nothing"


def test_the_longest_keep_counts_whoever_releases(opened: Open) -> None:
    opened(keep=30)
    opened(keep=10)
    opened().subscribe("lyon")
    fill(opened(), *range(6))
    opened().release("lyon", 5)
    assert numbers_behind(opened(), NONE) == [3, 4, 5]


def test_only_the_oldest_batches_are_removed_so_that_no_gap_appears(opened: Open) -> None:
    opened().subscribe("lyon")
    opened().publish(batch(0, NONE, newest=90, watermark=50))
    opened().publish(batch(1, 0, newest=10, watermark=50))
    opened().release("lyon", 1)
    assert numbers_behind(opened(), NONE) == [0, 1]


def test_who_unsubscribes_holds_nothing_any_more(opened: Open) -> None:
    opened().subscribe("lyon")
    opened().subscribe("nice")
    fill(opened(), *range(4))
    opened().release("lyon", 2)
    opened().unsubscribe("nice")
    assert numbers_behind(opened(), NONE) == [3]
    opened().release("nice", 1)
    opened().release("lyon", 3)
    assert opened().entries(NONE) == [], "a late word of nice does not bring it back"
    opened().unsubscribe("lyon")
    opened().unsubscribe("lyon")


def test_without_subscribers_nothing_is_removed_before_one_leaves(opened: Open) -> None:
    fill(opened(), *range(4))
    opened().release("lyon", 3)
    assert numbers_behind(opened(), NONE) == [0, 1, 2, 3]


def test_who_subscribes_again_has_released_what_it_had(opened: Open) -> None:
    opened().subscribe("lyon")
    opened().subscribe("nice")
    fill(opened(), *range(3))
    opened().release("lyon", 2)
    opened().subscribe("lyon")
    opened().release("nice", 2)
    assert opened().entries(2) == []


def test_a_publisher_subscribers_and_newcomers_at_the_same_time(opened: Open) -> None:
    """Each subscriber gets everything once and in order, and a newcomer an unbroken part of it up to the end."""
    count = 80
    taken: dict[str, list[int]] = {"lyon": [], "nice": []}
    newcomers: list[list[int]] = []

    def follow(subscriber: str) -> None:
        channel, numbers = opened(), taken[subscriber]
        ended = False
        while not ended:
            published = publishing.done()
            new = channel.entries(numbers[-1] if numbers else NONE, most_bytes=3_000)
            numbers += [channel.read(entry.number).number for entry in new]
            channel.release(subscriber, numbers[-1] if numbers else NONE)
            ended = published and not new

    def come_and_go() -> None:
        while len(newcomers) < 20 or not publishing.done():
            channel, name = opened(), f"newcomer {len(newcomers)}"
            channel.subscribe(name)
            newcomers.append([part.number for part in read_behind(channel, NONE)])
            channel.unsubscribe(name)

    for subscriber in taken:
        opened(keep=50).subscribe(subscriber)
    with ThreadPoolExecutor() as threads:
        publishing = threads.submit(fill, opened(), *range(count))
        running = [publishing, threads.submit(come_and_go)]
        running += [threads.submit(follow, subscriber) for subscriber in taken]
        for done in running:
            done.result()
    assert taken == {"lyon": list(range(count)), "nice": list(range(count))}
    for numbers in newcomers:
        assert numbers == list(range(numbers[0], numbers[-1] + 1)) if numbers else True
    assert numbers_behind(opened(), NONE) == [75, 76, 77, 78, 79]


def test_of_two_publishers_one_wins_every_batch(opened: Open) -> None:
    def publish(number: int, rows: int) -> bool:
        try:
            return opened().publish(batch(number, number - 1, rows))
        except ChannelError:
            return False

    with ThreadPoolExecutor() as threads:
        for number in range(20):
            won: list[bool] = []
            while not any(won):
                won = list(threads.map(publish, [number, number], [10, 20]))
            assert sum(won) == 1
            assert opened().read(number).rows == (10 if won[0] else 20)
    assert numbers_behind(opened(), NONE) == list(range(20))


def test_channels_of_one_place_do_not_touch_each_other(channels: Channels) -> None:
    names = ["a", "b", "A", "a.b", "a b", "a/b", "..", "", "~", "é" * 200, "é" * 201]
    for number, name in enumerate(names):
        fill(channels.open(name), number)
    assert [last_number(channels.open(name)) for name in names] == list(range(len(names)))


def test_a_channel_that_was_removed_begins_anew(channels: Channels) -> None:
    channels.open(NAME, keep=100).subscribe("lyon")
    fill(channels.open(NAME), 0, 1)
    channels.remove(NAME)
    channels.remove(NAME)
    assert channels.open(NAME).last() is None
    fill(channels.open(NAME), 0)
    channels.open(NAME).subscribe("nice")
    channels.open(NAME).release("nice", 0)
    assert channels.open(NAME).entries(NONE) == []


def test_of_documents_that_are_announced_as_new_the_first_one_counts(channels: Channels) -> None:
    assert channels.announce_new("verdicts", "first", {"go": True})
    assert not channels_of(channels.to_json()).announce_new("verdicts", "first", {"go": False})
    assert channels.announced("verdicts") == {"first": {"go": True}}
    channels.withdraw("verdicts", "first")
    assert channels.announce_new("verdicts", "first", {"go": False})
    assert channels.announced("verdicts") == {"first": {"go": False}}


def test_of_programs_that_announce_at_once_one_is_first(channels: Channels) -> None:
    def announce(number: int, program: int) -> bool:
        return channels_of(channels.to_json()).announce_new("verdicts", str(number), {"by": program})

    with ThreadPoolExecutor() as threads:
        for number in range(20):
            won = list(threads.map(announce, [number] * 4, range(4)))
            assert sum(won) == 1
            assert channels.announced("verdicts")[str(number)] == {"by": won.index(True)}


def test_documents_are_announced_replaced_and_withdrawn(channels: Channels) -> None:
    assert channels.announced("deployments") == {}
    channels.announce("deployments", "f ⋈ b", {"sites": ["lyon"], "since": 3})
    channels.announce("deployments", "s", {"sites": []})
    channels.announce("sites", "f ⋈ b", {"up": True})
    channels.announce("deployments", "s", {"sites": ["nice"]})
    again = channels_of(channels.to_json())
    assert again.announced("deployments") == {"f ⋈ b": {"sites": ["lyon"], "since": 3}, "s": {"sites": ["nice"]}}
    again.withdraw("deployments", "s")
    again.withdraw("deployments", "never")
    assert list(channels.announced("deployments")) == ["f ⋈ b"]
    assert channels.announced("sites") == {"f ⋈ b": {"up": True}}


Spoil = Callable[[str, str, bytes], None]
"""Puts something in the place of a document, which has a kind and a key."""


@pytest.fixture
def spoil(channels: Channels, tmp_path: Path) -> Spoil:
    match channels:
        case DirectoryChannels():
            return lambda kind, key, data: spoil_file(tmp_path, kind, key, data)
        case NatsChannels():
            return lambda kind, key, data: spoil_entry(channels, kind, key, data)
        case KafkaChannels():
            return lambda kind, key, data: spoil_record(channels, kind, key, data)
    pytest.skip("only documents get into the memory of this process")


def spoil_file(directory: Path, kind: str, key: str, data: bytes) -> None:
    path = directory / "announced" / kind / f"{key}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def spoil_entry(channels: NatsChannels, kind: str, key: str, data: bytes) -> None:
    async def put(session: NatsSession) -> None:
        await session.bucket.put(f"announced.{kind}.{key}", data)

    connection_of(channels._options).run("a test", put)


def spoil_record(channels: KafkaChannels, kind: str, key: str, data: bytes) -> None:
    record = NewRecord(data, json.dumps([kind, key]).encode())
    channels.announced(kind)  # makes the topic
    kafka_connection_of(channels._options).append(f"{channels._options.prefix}.documents", LOG, [record])


GARBAGE = [b"not json", b"[]", b'"lyon"', b"\xff\xfe", b"{", b"[" * 100_000, b"7"]


@pytest.mark.parametrize("garbage", GARBAGE, ids=range(len(GARBAGE)))
def test_a_damaged_document_is_told_of_once_and_the_others_are_read(
    garbage: bytes, channels: Channels, spoil: Spoil, caplog: pytest.LogCaptureFixture
) -> None:
    channels.announce("sites", "lyon", {"up": True})
    channels.announce("sites", "nice", {"up": True})
    spoil("sites", "lyon", garbage)
    spoil("sites", "zzz", garbage)
    for _ in range(3):
        announced = channels.announced("sites")
        assert announced == {"nice": {"up": True}}
        assert announced.is_damaged("lyon") and announced.is_damaged("zzz")
        assert not announced.is_damaged("nice") and not announced.is_damaged("rome")
    assert channels.damaged_documents == len(caplog.messages) == 2
    for name, warning in zip(("lyon", "zzz"), caplog.messages, strict=True):
        assert "the announced sites" in warning and name in warning
        assert "restore it, or remove it" in warning
    assert channels.announced("other") == {}


def test_a_damaged_document_is_there_until_it_is_replaced_or_withdrawn(channels: Channels, spoil: Spoil) -> None:
    spoil("verdicts", "first", b"garbage")
    assert not channels.announce_new("verdicts", "first", {"go": True})
    channels.announce("verdicts", "first", {"go": False})
    assert channels.announced("verdicts") == {"first": {"go": False}}
    assert not channels.announced("verdicts").damaged
    spoil("verdicts", "first", b"garbage")
    channels.withdraw("verdicts", "first")
    assert not channels.announced("verdicts").damaged
    assert channels.announce_new("verdicts", "first", {"go": True})


def test_a_channel_tells_how_far_its_subscribers_are_and_what_it_has_carried(opened: Open) -> None:
    channel = opened()
    for subscriber in ("lyon", "nice"):
        channel.subscribe(subscriber)
    last = None
    for number in (0, 2, 5):
        published = Batch.behind(last, NAME, number, batch(number, NONE).segments, watermark=10 * number)
        assert channel.publish(published)
        last = channel.last()
    channel.release("lyon", 2)
    channel.release("nice", 5)
    assert sorted(opened().released().values()) == [2, 5]
    final = opened().last()
    assert final is not None
    assert (final.carried.batches, final.carried.rows) == (3, 9)
    assert final.carried.bytes > final.bytes
    assert opened().read(5).before == final.before
