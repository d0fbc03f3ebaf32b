"""Control messages in files that anybody may remove."""

from pathlib import Path

from braid.hosts.spark.control import ControlReader


def test_a_message_that_is_gone_when_it_is_read_was_never_there(tmp_path: Path) -> None:
    """Here it is a file that can be seen and cannot be read."""
    (tmp_path / "0.json").symlink_to("/proc/self/mem")
    (tmp_path / "1.json").write_text("first\nsecond\n")
    reader = ControlReader(tmp_path)
    messages, end = reader.read(reader.initialOffset())
    assert list(messages) == [("first",), ("second",)]
    assert list(reader.read(end)[0]) == []
