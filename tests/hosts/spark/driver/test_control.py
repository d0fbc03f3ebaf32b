"""Control messages: their files may disappear, and some are for one checkpoint only."""

import json
from pathlib import Path

import pytest

from braid.errors import BraidError
from braid.hosts.spark.driver.control import Control, checkpoint_of
from braid.hosts.spark.shared.control_source import ControlReader
from braid.runtime.manifest import FORMAT
from braid.runtime.messages import PassIdle, parse_message

QUERY = {"text": "SELECT ..", "query": {"streams": []}, "streams": {}, "shards": {}}


def reader_of(directory: Path, **changes: object) -> ControlReader:
    return ControlReader(directory, QUERY | changes, FORMAT)


def test_a_file_that_cannot_be_read_is_skipped(tmp_path: Path) -> None:
    """Like a file that is removed between being listed and being read."""
    (tmp_path / "0.json").symlink_to("/proc/self/mem")
    (tmp_path / "1.json").write_text("first\nsecond\n")
    reader = reader_of(tmp_path)
    messages, end = reader.read(reader.initialOffset())
    assert list(messages) == [("first",), ("second",)]
    assert list(reader.read(end)[0]) == []


def test_a_stream_that_is_idle_on_one_checkpoint_is_not_idle_on_another(tmp_path: Path) -> None:
    """A query may run on several checkpoints, one after the other or at once, and be further on some than on others."""
    readers = [reader_of(tmp_path) for _ in range(2)]
    first, second = (reader.initialOffset() for reader in readers)
    Control(tmp_path).pass_idle({"a": 1}, checkpoint_of(["{}", json.dumps(first)]))
    messages, end = readers[0].read(first)
    assert [json.loads(message)["reached"] for (message,) in messages] == [{"a": 1}]
    assert checkpoint_of([json.dumps(end)]) == first["checkpoint"]
    messages, _ = readers[1].read(second)
    assert [json.loads(message)["reached"] for (message,) in messages] == [{}]


def test_a_new_checkpoint_is_greeted_once(tmp_path: Path) -> None:
    """The greeting makes Spark start its Python process for messages before a real message comes."""
    reader = reader_of(tmp_path)
    messages, end = reader.read(reader.initialOffset())
    ((greeting,),) = messages
    assert parse_message(greeting.encode()) == PassIdle({})
    assert reader.read(end)[1] == end
    other_run = reader_of(tmp_path / "other run")
    assert other_run.read(end)[1] == end


def test_a_checkpoint_is_refused_before_there_is_any_input(tmp_path: Path) -> None:
    """Of another query, or of the format that named no query; the same query may be written in another way."""
    _, end = reader_of(tmp_path).read(reader_of(tmp_path).initialOffset())
    rewritten = reader_of(tmp_path, text="select ..")
    assert rewritten.read(end)[1] == end
    other = reader_of(tmp_path, text="SELECT n ..", query={"streams": ["a"]})
    with pytest.raises(BraidError, match=r"it was for\nSELECT \.\.\nand this is\nSELECT n \.\."):
        other.read(end)
    unnumbered = {name: value for name, value in end.items() if name not in ("format", "query")}
    with pytest.raises(BraidError, match="the checkpoint has format 5 and this version of Braid reads formats 7 to 8"):
        rewritten.read(unnumbered)
