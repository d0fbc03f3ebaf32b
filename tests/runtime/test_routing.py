"""How the shards of a query form a grid, and which rows share a dimension of it."""

import pyarrow as pa
import pytest

from braid.language import parse
from braid.model.stream import Stream
from braid.runtime.routing import router_for

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
def test_an_excluded_row_goes_to_the_shards_it_is_compared_in(text: str, sides: list[Side]) -> None:
    """It is spread with the class that it equals if both are compared in the same type; else it goes to all shards."""
    assert sides_of(text) == sides
