"""How the shards of a query form a grid, and which rows share a dimension of it."""

import pyarrow as pa
import pytest

from braid.language import parse
from braid.model.query import Query
from braid.model.stream import Stream
from braid.runtime.routing import CopyWatch, router_for

Side = tuple[int | None, list[str], int]
"""A dimension of the grid: its attribute class, the streams that it spreads, and its share."""


def sides_of(text: str) -> list[Side]:
    schema = pa.schema({"ts": pa.timestamp("us"), "k": pa.int64(), "l": pa.int32(), "t": pa.string()})
    router = router_for(parse(text, {name: Stream(name, schema, "ts") for name in "abcx"}), 4)
    return [(side.attribute_class, sorted(side.streams), side.share) for side in router.dimensions]


ONE = "SELECT a.k FROM a [NOW] WHERE NOT EXISTS (SELECT * FROM x [{}] WHERE {})"
TWO = "SELECT a.k FROM a [NOW], b [NOW] WHERE a.k = b.k AND NOT EXISTS (SELECT * FROM x [NOW] WHERE {})"


@pytest.mark.parametrize(
    ("text", "sides"),
    [
        (ONE.format("NOW", "x.k = a.k"), [(0, ["a", "x"], 4)]),
        (ONE.format("NOW", "x.k > a.k"), [(None, ["a"], 4)]),
        (ONE.format("ROWS 3", "x.k = a.k"), [(None, ["a"], 4)]),
        (TWO.format("x.k = b.k"), [(0, ["a", "b", "x"], 4)]),
        (TWO.format("b.k = x.l"), [(0, ["a", "b", "x"], 4)]),
        (TWO.format("x.t = b.t"), [(0, ["a", "b"], 4)]),
        (TWO.format("CAST(x.k AS DOUBLE) = b.k"), [(0, ["a", "b"], 4)]),
    ],
)
def test_a_tested_row_goes_to_the_shards_it_is_compared_in(text: str, sides: list[Side]) -> None:
    """It is spread with the class that it equals if both are compared in the same type; else it goes to all shards."""
    assert sides_of(text) == sides


CHAIN = "SELECT a.k FROM a [RANGE {} SECONDS], b [RANGE 20 SECONDS], c [RANGE {} SECONDS] WHERE a.k = b.k AND b.l = c.l"


def chain(first: int, last: int) -> Query:
    """A join on two keys, with windows of so many seconds on the first and the last stream."""
    schema = pa.schema({"ts": pa.timestamp("us"), "k": pa.int64(), "l": pa.int32()})
    return parse(CHAIN.format(first, last), {name: Stream(name, schema, "ts") for name in "abc"})


@pytest.mark.parametrize(
    ("first", "last", "rates", "copied"),
    [
        (60, 10, {}, "a"),
        (10, 60, {}, "c"),
        (10, 60, {"a": 1, "b": 3, "c": 46}, "a"),
        (60, 10, {"a": 46, "b": 3, "c": 1}, "c"),
    ],
)
def test_rows_of_slow_streams_are_copied(first: int, last: int, rates: dict[str, float], copied: str) -> None:
    """Of two streams, one must be copied: the slower one, or without rates the one with the longer window."""
    router = router_for(chain(first, last), 2, rates)
    assert [stream for stream in "abc" if router.copies([stream]) > 1] == [copied]


def test_copies_of_a_fast_stream_are_told_once() -> None:
    watch = CopyWatch(chain(10, 60), router_for(chain(10, 60), 2))
    told = [watch.update(rows) for rows in ({"a": 1, "b": 3, "c": 46}, {}, *[{"a": 1, "b": 3, "c": 46}] * 4)]
    assert told == [None, None, None, pytest.approx(96 / 51), None, None]
    assert watch.rows_of_streams() == {"a": 5, "b": 15, "c": 230}


def test_copies_of_a_slow_stream_are_not_worth_a_word() -> None:
    watch = CopyWatch(chain(60, 10), router_for(chain(60, 10), 2))
    assert [watch.update({"a": 1, "b": 3, "c": 46}) for _ in range(5)] == [None] * 5
