"""Watermarks of streams that unite others."""

import pyarrow as pa

from braid.engine.segment import Segment, no_rows
from braid.language import parse
from braid.model.stream import Branch, Stream
from braid.model.window import FOREVER
from braid.runtime.declarations import streams_from_json, streams_to_json
from braid.runtime.watermarks import Watermarks

SCHEMA = pa.schema([("ts", pa.timestamp("us")), ("k", pa.int64())])
UNITED = Stream("x", SCHEMA, "ts", 3, (Branch("first", 3), Branch("second", 1)))


def watermarks() -> Watermarks:
    query = parse("SELECT x.k FROM x [NOW]", {"x": UNITED})
    return Watermarks(query, {}, {})


def segment(newest: int, branch: int) -> Segment:
    return Segment("x", no_rows(SCHEMA), newest=newest, branch=branch)


def test_a_stream_is_as_far_as_its_slowest_branch() -> None:
    known = watermarks()
    known.advance([segment(100, 0)])
    assert known.of("x") == -FOREVER, "nothing is known of the second branch"
    known.advance([segment(50, 1)])
    assert known.of("x") == 49
    known.advance([segment(200, 1)])
    assert known.of("x") == 97
    known.advance([segment(10, 0)])
    assert known.of("x") == 97, "watermarks never go back"


def test_an_idle_branch_holds_nothing_up() -> None:
    known = watermarks()
    known.advance([segment(100, 0)])
    known.reach_branch("x", 1, 98)
    known.advance([])
    assert known.of("x") == 97
    assert (known.of_branch("x", 0), known.of_branch("x", 1)) == (97, 97)


def test_branches_travel_with_declarations_and_segments() -> None:
    plain = Stream("y", SCHEMA, "ts", 2)
    content = streams_to_json([UNITED, plain])
    assert streams_from_json(content) == (UNITED, plain)
    assert len(content[1]) == 4, "declarations without branches are those of earlier versions"
    assert Segment.from_bytes(segment(5, 1).to_bytes()).branch == 1
    assert b"branch" not in segment(5, 0).to_bytes()
