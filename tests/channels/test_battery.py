"""What every kind of channel must do, and what it must refuse."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from braid.channels.batch import NONE, Batch
from braid.channels.channel import Channel, Lag
from braid.channels.directory import DirectoryChannel
from braid.channels.memory import MemoryChannel
from braid.engine.segment import Segment
from braid.errors import ChannelError

NAME = "flights ⋈ bags / 1"

Open = Callable[[], Channel]
"""Opens the same channel again, as another process would."""


@pytest.fixture(params=["memory", "directory"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    if request.param == "memory":
        channel = MemoryChannel(NAME)
        return lambda: channel
    return lambda: DirectoryChannel(tmp_path / "channel", NAME)


def batch(number: int, previous: int, rows: int = 3, watermark: int = 0) -> Batch:
    segment = Segment("f", pa.record_batch({"n": pa.array(range(rows), pa.int64())}), newest=number)
    return Batch(NAME, number, previous, (segment,) if rows else (), watermark)


def fill(channel: Channel, *numbers: int) -> None:
    previous = channel.last()
    for number in numbers:
        assert channel.publish(batch(number, previous, watermark=10 * number))
        previous = number


def test_batches_come_back_as_they_were_published_and_in_order(opened: Open) -> None:
    fill(opened(), 0, 3, 4)
    batches = opened().read(NONE)
    assert [part.number for part in batches] == [0, 3, 4]
    assert [part.previous for part in batches] == [NONE, 0, 3]
    assert [part.watermark for part in batches] == [0, 30, 40]
    assert batches[1].segments == batch(3, 0).segments
    assert batches[0].rows == 3
    assert opened().last() == 4


def test_a_subscriber_goes_on_behind_the_last_batch_it_took(opened: Open) -> None:
    fill(opened(), 0, 3, 4)
    assert [part.number for part in opened().read(0)] == [3, 4]
    assert opened().read(4) == []


def test_an_empty_channel_has_nothing(opened: Open) -> None:
    assert opened().last() == NONE
    assert opened().read(NONE) == []
    assert opened().lag(NONE) == Lag(0, 0)


def test_a_batch_without_rows_still_tells_how_far_the_stream_is(opened: Open) -> None:
    opened().publish(batch(7, NONE, rows=0, watermark=99))
    (only,) = opened().read(NONE)
    assert (only.rows, only.watermark) == (0, 99)


def test_publishing_again_changes_nothing(opened: Open) -> None:
    fill(opened(), 0, 1)
    assert not opened().publish(batch(1, 0, rows=50))
    assert not opened().publish(batch(0, NONE, rows=50))
    assert [part.rows for part in opened().read(NONE)] == [3, 3]


def test_a_batch_that_does_not_follow_the_newest_is_refused(opened: Open) -> None:
    fill(opened(), 0, 1)
    with pytest.raises(ChannelError, match=r"batch 5 of channel 'flights ⋈ bags / 1' follows batch 3, .* there is 1"):
        opened().publish(batch(5, 3))
    assert opened().last() == 1


def test_a_reader_takes_no_more_bytes_than_it_may_but_always_one_batch(opened: Open) -> None:
    fill(opened(), *range(5))
    size = len(batch(0, NONE).data)
    assert len(opened().read(NONE, most_bytes=1)) == 1
    assert len(opened().read(NONE, most_bytes=3 * size + 10)) == 3
    assert len(opened().read(NONE, most_bytes=100 * size)) == 5


def test_the_lag_of_a_subscriber_can_be_read(opened: Open) -> None:
    fill(opened(), *range(4))
    lag = opened().lag(1)
    assert lag.batches == 2
    assert lag.bytes == sum(len(part.data) for part in opened().read(1))


def test_what_every_subscriber_has_released_is_removed(opened: Open) -> None:
    opened().subscribe("lyon")
    opened().subscribe("nice")
    fill(opened(), *range(4))
    opened().release("lyon", 3)
    assert len(opened().read(NONE)) == 4, "nice has released nothing"
    opened().release("nice", 1)
    assert [part.number for part in opened().read(1)] == [2, 3]
    with pytest.raises(ChannelError, match="has no batch 1, which its batch 2 follows"):
        opened().read(NONE)
    opened().release("nice", 0)
    assert [part.number for part in opened().read(1)] == [2, 3], "a release is never taken back"


def test_numbers_go_on_when_all_batches_are_gone(opened: Open) -> None:
    opened().subscribe("lyon")
    fill(opened(), 0, 1)
    opened().release("lyon", 1)
    assert opened().last() == 1
    assert not opened().publish(batch(1, 0))
    assert opened().publish(batch(2, 1))
    assert [part.number for part in opened().read(1)] == [2]


def test_who_subscribes_again_has_released_what_it_had(opened: Open) -> None:
    opened().subscribe("lyon")
    opened().subscribe("nice")
    fill(opened(), *range(3))
    opened().release("lyon", 2)
    opened().subscribe("lyon")
    opened().release("nice", 2)
    assert opened().read(2) == []


# A directory can be damaged from outside.


@pytest.fixture
def directory(tmp_path: Path) -> DirectoryChannel:
    channel = DirectoryChannel(tmp_path / "channel", NAME)
    fill(channel, 0, 1, 2)
    return channel


def files(channel: DirectoryChannel) -> list[Path]:
    return sorted(channel._directory.glob("*.batch"))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda data: data[:-1], "batch 1 of channel .* is damaged: its checksum does not match its"),
        (lambda data: b"", r"batch 1 of channel .* is no batch: it begins with b''"),
        (lambda data: b"PAR1" + data[4:], "batch 1 of channel .* is no batch: it begins with b'PAR1'"),
        (lambda data: data[:-5] + bytes([data[-5] ^ 1]) + data[-4:], "batch 1 of channel .* is damaged"),
    ],
)
def test_a_damaged_batch_is_an_error_that_names_it(
    damage: Callable[[bytes], bytes], message: str, directory: DirectoryChannel
) -> None:
    path = files(directory)[1]
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ChannelError, match=message):
        directory.read(NONE)
    assert [part.number for part in directory.read(1)] == [2], "the others can still be read"


def test_a_missing_batch_is_an_error_that_names_it(directory: DirectoryChannel) -> None:
    files(directory)[1].unlink()
    with pytest.raises(ChannelError, match="has no batch 1, which its batch 2 follows; the last one taken is 0"):
        directory.read(0)


def test_a_batch_of_another_channel_is_an_error(directory: DirectoryChannel, tmp_path: Path) -> None:
    other = DirectoryChannel(tmp_path / "other", "sales")
    (tmp_path / "other" / files(directory)[0].name).write_bytes(files(directory)[0].read_bytes())
    with pytest.raises(ChannelError, match="says that it is batch 0 of channel 'flights ⋈ bags / 1'"):
        other.read(NONE)


def test_a_foreign_file_is_an_error_and_a_half_written_one_is_not(directory: DirectoryChannel) -> None:
    (directory._directory / "000000000009-none.batch.0a.unfinished").write_bytes(b"half")
    assert len(directory.read(NONE)) == 3
    directory.sweep()
    assert not list(directory._directory.glob("*.unfinished"))
    (directory._directory / "mine.batch").write_bytes(b"")
    with pytest.raises(ChannelError, match=r"has a file mine\.batch that is no batch"):
        directory.read(NONE)


def test_a_full_disk_is_an_error_and_nothing_is_published(tmp_path: Path) -> None:
    """In a process that can write no file beyond 100 bytes, as on a disk with so much room."""
    program = f"""
import resource, signal
from pathlib import Path
from tests.channels.test_battery import NAME, batch
from braid.channels.batch import NONE
from braid.channels.directory import DirectoryChannel
from braid.errors import ChannelError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
channel = DirectoryChannel(Path({str(tmp_path / "full")!r}), NAME)
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
try:
    channel.publish(batch(0, NONE))
except ChannelError as error:
    print(error)
assert channel.last() == NONE and channel.read(NONE) == []
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2]
    )
    assert done.returncode == 0, done.stderr
    assert "nothing was published" in done.stdout
    assert not list((tmp_path / "full").iterdir())
