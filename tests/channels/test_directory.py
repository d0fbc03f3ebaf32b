"""A directory can be damaged, filled up and changed by others."""

import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from braid.channels.batch import NONE
from braid.channels.channel import read_behind
from braid.channels.directories import DirectoryChannels
from braid.channels.directory import DirectoryChannel
from braid.channels.listing import ChannelFiles
from braid.errors import ChannelError
from braid.testing.channel_batches import NAME, batch, fill, numbers_behind, publish_until_refused


@pytest.fixture
def directory(tmp_path: Path) -> DirectoryChannel:
    channel = DirectoryChannel(tmp_path / "channel", NAME)
    fill(channel, 0, 1, 2)
    return channel


def files(channel: DirectoryChannel) -> list[Path]:
    return sorted(channel._directory.glob("*.batch"))


def reopened(channel: DirectoryChannel) -> DirectoryChannel:
    return DirectoryChannel(channel._directory, channel.name)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda data: data[:-1], "batch 1 of channel .* is damaged: its .* bytes of rows do not match"),
        (lambda data: data[:40], "batch 1 of channel .* is damaged: the checksum of its header"),
        (lambda data: b"", r"batch 1 of channel .* is no batch: it begins with b''"),
        (lambda data: b"PAR1" + data[4:], "batch 1 of channel .* is no batch: it begins with b'PAR1'"),
        (lambda data: data[:-5] + bytes([data[-5] ^ 1]) + data[-4:], "batch 1 of channel .* is damaged"),
        (lambda data: data + b"more", "batch 1 of channel .* is damaged"),
    ],
)
def test_a_damaged_batch_is_an_error_that_names_it(
    damage: Callable[[bytes], bytes], message: str, directory: DirectoryChannel
) -> None:
    path = files(directory)[1]
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ChannelError, match=message):
        read_behind(reopened(directory), NONE)
    assert [part.number for part in read_behind(reopened(directory), 1)] == [2], "the others can still be read"


def test_what_is_missing_is_looked_for_as_long_as_others_change_the_directory(directory: DirectoryChannel) -> None:
    looks: list[int] = []

    def last_number(listing: ChannelFiles) -> int:
        looks.append(listing.numbers[-1])
        if listing.numbers[-1] < 9:
            fill(reopened(directory), listing.numbers[-1] + 1)
            raise ChannelError("a batch is missing")
        return listing.numbers[-1]

    assert directory._look("list", last_number) == 9
    assert looks == list(range(2, 10))


def test_a_missing_batch_is_an_error_that_names_it(directory: DirectoryChannel) -> None:
    files(directory)[1].unlink()
    with pytest.raises(ChannelError, match="has no batch 1, which its batch 2 follows; the last one before is 0"):
        directory.entries(0)
    with pytest.raises(ChannelError, match="has no batch 1: it was removed or lost"):
        directory.read(1)


def test_a_first_batch_that_was_lost_is_not_taken_for_one_that_was_removed(directory: DirectoryChannel) -> None:
    files(directory)[0].unlink()
    with pytest.raises(ChannelError, match="has no batch 0, which its batch 1 follows"):
        directory.entries(NONE)


def test_a_batch_of_another_channel_is_an_error(directory: DirectoryChannel, tmp_path: Path) -> None:
    other = DirectoryChannel(tmp_path / "other", "sales")
    (tmp_path / "other" / files(directory)[0].name).write_bytes(files(directory)[0].read_bytes())
    with pytest.raises(ChannelError, match="says that it is batch 0 of channel 'flights ⋈ bags / 1'"):
        other.entries(NONE)


def test_a_foreign_file_is_an_error_and_a_half_written_one_is_not(directory: DirectoryChannel) -> None:
    (directory._directory / "000000000003.batch.0a.unfinished").write_bytes(b"half")
    assert len(reopened(directory).entries(NONE)) == 3
    fill(reopened(directory), 3)
    assert not list(directory._directory.glob("*.unfinished"))
    (directory._directory / "mine.batch").write_bytes(b"")
    with pytest.raises(ChannelError, match=r"has a file mine\.batch that is none of its own"):
        directory.entries(NONE)


def test_heads_are_read_once_by_a_channel_that_stays_open(directory: DirectoryChannel) -> None:
    before = directory.entries(NONE)
    for path in files(directory):
        path.write_bytes(b"")
    assert directory.entries(NONE) == before


def test_removed_batches_leave_one_small_file(directory: DirectoryChannel) -> None:
    directory.subscribe("lyon")
    for upto in range(3):
        directory.release("lyon", upto)
    names = sorted(path.name for path in directory._directory.iterdir())
    assert names == ["000000000002.removed", "lyon.000000000002.subscriber"]


def test_a_removal_that_was_cut_short_is_completed(directory: DirectoryChannel) -> None:
    """Another process has said that batches up to 1 are removed, and died."""
    directory.subscribe("lyon")
    content = files(directory)[1].read_bytes()
    (directory._directory / "000000000001.removed").write_bytes(content)
    assert numbers_behind(directory, NONE) == [2]
    directory.release("lyon", 1)
    assert [path.name for path in files(directory)] == ["000000000002.batch"]


def test_a_newcomer_that_has_seen_batches_can_read_them_although_others_remove_them(
    directory: DirectoryChannel,
) -> None:
    """The other process has read the subscribers before the newcomer came, and says what is removed after that."""
    directory.subscribe("lyon", 1)
    newcomer = reopened(directory)
    newcomer.subscribe("nice")
    seen = newcomer.entries(NONE)
    (directory._directory / "000000000002.removed").write_bytes(files(directory)[2].read_bytes())
    directory.release("lyon", 2)
    assert [newcomer.read(entry.number).number for entry in seen] == [0, 1, 2]
    newcomer.release("nice", 2)
    assert files(directory) == []


def test_a_damaged_announcement_is_told_of_with_its_file(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    channels = DirectoryChannels(tmp_path)
    channels.announce("sites", "lyon", {})
    whole = next(tmp_path.rglob("*.json"))
    whole.with_name("copy of lyon.json").write_bytes(whole.read_bytes())
    whole.with_name("bare.json").write_text('{"up": true}')
    whole.with_name("folder.json").mkdir()
    assert channels.announced("sites") == {"lyon": {}}
    assert channels.announced("sites") == {"lyon": {}}
    told = "\n".join(caplog.messages)
    assert channels.damaged_documents == len(caplog.messages) == 3
    assert f"{tmp_path}/announced/sites/copy of lyon.json is damaged" in told
    assert "it has the key of another document, 'lyon'; restore it, or remove it" in told
    assert f"{tmp_path}/announced/sites/bare.json is damaged" in told
    assert f"{tmp_path}/announced/sites/folder.json is damaged" in told


def test_a_document_that_cannot_be_read_now_is_not_taken_for_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    channels = DirectoryChannels(tmp_path)
    channels.announce("sites", "lyon", {})

    def refuse(path: Path) -> bytes:
        raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))

    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(ChannelError, match=r"cannot read the announced sites .*lyon\.json: Input/output error"):
        channels.announced("sites")


def run(program: str) -> str:
    """What a program prints, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2]
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_file_that_cannot_grow_is_an_error_and_nothing_is_published(tmp_path: Path) -> None:
    """In a process that can write no file beyond 100 bytes."""
    output = run(f"""
import resource, signal
from pathlib import Path
from braid.testing.channel_batches import NAME, batch
from braid.channels.batch import NONE
from braid.channels.directory import DirectoryChannel
from braid.channels.listing import ChannelFiles
from braid.errors import ChannelError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
channel = DirectoryChannel(Path({str(tmp_path / "full")!r}), NAME)
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
try:
    channel.publish(batch(0, NONE))
except ChannelError as error:
    print(error)
assert channel.last() is None and channel.entries(NONE) == []
""")
    assert "cannot write batch 0 to channel" in output and "nothing was published" in output
    assert not list((tmp_path / "full").iterdir())


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system with room for a few batches."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", disk], check=False)
    if mounted.returncode != 0:
        pytest.skip("may not mount a file system")
    yield disk
    subprocess.run(["umount", disk], check=True)


def test_a_full_disk_refuses_a_batch_and_takes_it_when_there_is_room_again(small_disk: Path) -> None:
    channel = DirectoryChannel(small_disk / "channel", NAME)
    channel.subscribe("lyon")
    published, problem = publish_until_refused(channel, rows=10_000)
    assert f"cannot write batch {published} to channel '{NAME}' in {small_disk / 'channel'}: No space left" in problem
    assert problem.endswith("nothing was published")
    (small_disk / "rest").write_bytes(b"0" * shutil.disk_usage(small_disk).free)
    assert [part.number for part in read_behind(channel, NONE)] == list(range(published))
    channel.release("lyon", published - 1)
    assert channel.entries(NONE) == [], "releasing makes room, and needs none"
    assert channel.publish(batch(published, published - 1, rows=10_000))
    assert reopened(channel).read(published).rows == 10_000


def test_a_directory_that_cannot_be_written_is_an_error_that_names_it() -> None:
    with TemporaryDirectory(dir="/var/tmp") as directory:
        output = run(f"""
import os
from pathlib import Path
from braid.testing.channel_batches import NAME, batch, fill, numbers_behind
from braid.channels.batch import NONE
from braid.channels.directories import DirectoryChannels
from braid.errors import ChannelError
root = Path({directory!r})
channels = DirectoryChannels(root)
channel = channels.open(NAME)
channel.subscribe("lyon")
fill(channel, 0)
for path in [*root.rglob("*"), root]:
    path.chmod(0o555)
if os.getuid() == 0:
    os.setuid(65534)
for attempt in [
    lambda: channel.publish(batch(1, 0)),
    lambda: channel.release("lyon", 0),
    lambda: channel.subscribe("nice"),
    lambda: channels.open("other"),
    lambda: channels.remove(NAME),
    lambda: channels.announce("sites", "lyon", {{}}),
]:
    try:
        attempt()
    except ChannelError as error:
        print(error)
assert numbers_behind(channel, NONE) == [0]
""").splitlines()
    actions = ["write batch 1 to", "release batches of", "subscribe to", "open", "remove", "announce sites 'lyon'"]
    assert len(output) == len(actions)
    for line, action in zip(output, actions, strict=True):
        assert line.startswith(f"cannot {action}") and "Permission denied" in line and directory in line


def test_a_place_that_is_no_directory_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ChannelError, match=r"cannot open channel .* in .*file/channels/.*: Not a directory"):
        DirectoryChannels(tmp_path / "file").open(NAME)


def test_a_second_publisher_that_is_behind_is_refused(directory: DirectoryChannel) -> None:
    fill(reopened(directory), 3)
    with pytest.raises(ChannelError, match=r"batch 4 of channel .* follows batch 2, but the newest one there is 3"):
        directory.publish(batch(4, 2))
