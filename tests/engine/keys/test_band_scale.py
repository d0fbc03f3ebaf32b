"""No match is out of reach: two values that satisfy the conditions of a band have words at most `reach` apart."""

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from braid.engine.kernels.expression import compile_expression
from braid.engine.keys.band_scale import BandScale
from braid.language import parse
from braid.model.expressions.expression import Cast, Column
from braid.model.stream import Stream

NAN, INFINITY = float("nan"), float("inf")


def whole(bits: int) -> list[int]:
    """Small integers, the limits of integers of this width, halves and quarters of the limits, and their neighbours."""
    corners = {sign * (1 << power) for sign in (-1, 1) for power in (bits - 1, bits - 2, bits - 3, 0)} | {0}
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    near = {corner + step for corner in corners for step in (*range(-3, 4), 5, -6, 100)}
    return sorted(value for value in near if low <= value <= high)


FLOATS = [
    value * factor
    for value in (0.0, 0.1, 0.5, 1.0, 1.1, 1.5, 2.0, 2.6, 1e15, 2.0**53, 2.0**53 + 2, 1e18, 1e300, 1.7e308, INFINITY)
    for factor in (1.0, -1.0, 1.0000000000000002)
] + [NAN, 5e-324, 3.0000000000000004, 0.30000000000000004]
SMALL = [*range(-6, 7), *(0.1 * step for step in range(-30, 30, 3))]

VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "i8": (pa.int8(), whole(8)),
    "i16": (pa.int16(), whole(16)),
    "i32": (pa.int32(), whole(32)),
    "i64": (pa.int64(), whole(64)),
    "u8": (pa.uint8(), [0, 1, 2, 127, 128, 254, 255]),
    "u32": (pa.uint32(), [0, 1, 5, 2**31, 2**32 - 1]),
    "u64": (pa.uint64(), [0, 1, 2, 3, 5, 2**53, 2**53 + 1, 2**63, 2**64 - 2, 2**64 - 1]),
    "f16": (pa.float16(), np.array([0, 0.1, -0.1, 1, 1.001, 2.5, -3, 60_000, NAN, INFINITY], np.float16).tolist()),
    "f32": (pa.float32(), np.array([*SMALL, 16_777_216, 16_777_218, 3e38, -3e38, NAN, -INFINITY], np.float32).tolist()),
    "f64": (pa.float64(), FLOATS + SMALL),
    "cents": (pa.decimal128(10, 2), [Decimal(step) / 100 for step in (*range(-320, 320, 29), 10**10 - 1, 1 - 10**10)]),
    "fine": (pa.decimal128(38, 20), [Decimal(text) for text in ("0", "1", "1.99999999999999999999", "-2.5", "9" * 18)]),
    "huge": (pa.decimal256(76, 4), [Decimal(text) for text in ("0", "1", "2.5", "9" * 72, "-" + "9" * 72)]),
    "us": (pa.timestamp("us"), whole(64)),
    "s": (pa.timestamp("s"), [*range(-5, 6), 2**62, -(2**62), 9_223_372_036_854, -9_223_372_036_855]),
    "ns": (pa.timestamp("ns", "Asia/Tokyo"), [*range(-5_000, 5_000, 777), 2**63 - 1, 1 - 2**63]),
    "day": (pa.date32(), [*range(-5, 6), 106_751_990, 106_751_992, 106_751_991, -106_751_992, 2**31 - 1, -(2**31)]),
    "span": (pa.duration("us"), whole(64)),
}
NUMBERS = ("i8", "i16", "i32", "i64", "u8", "u32", "u64", "f16", "f32", "f64", "cents", "fine", "huge")
TIMES = ("us", "s", "ns", "day")

OF_NUMBERS = (
    "abs(x - y) <= 2",
    "abs(x - y) <= 0",
    "abs(x - y) < 1.5",
    "abs(x - y) <= 0.1e0",
    "abs(y - x) <= 100",
    "x - y BETWEEN 3 AND 5",
    "x - y BETWEEN -7 AND -6.5",
    "x - y = 1",
    "x - y >= -2 AND y - x >= -1",
    "x - y < 9007199254740993e0 AND x - y > 9007199254740991e0",
    "x BETWEEN y - 1 AND y + 2",
    "x BETWEEN y - 0.1 AND y + 0.1",
    "x BETWEEN y - 0.1e0 AND y + 0.1e0",
    "x BETWEEN y + 3 AND y + 5",
    "x BETWEEN y - 5 AND y - 3",
    "y + 3 <= x AND x <= y + 5",
    "x - 5 <= y AND x - 3 >= y",
    "x <= y + 1 AND y <= x + 1",
    "x - 1 <= y AND y - 1 <= x",
    "x <= y AND x >= y - 100",
    "x <= y AND x >= y",
    "x <= y + 1.99999999999999999999 AND x >= y - 0.5",
    "x - 1 <= y + 1 AND x >= y",
    # These two make no band: the sums of the first may wrap, and the bounds of the second are of different forms.
    "x + 5 <= y + 7 AND x >= y - 1",
    "x <= y + 1 AND x - y >= -1",
    "x * 2 <= y * 2 + 1 AND x * 2 >= y * 2 - 1",
)
OF_TIMES = (
    "abs(x - y) <= INTERVAL 2 SECONDS",
    "abs(x - y) < INTERVAL 3 DAYS",
    "x - y BETWEEN INTERVAL -1 SECOND AND INTERVAL 5 SECONDS",
    "x BETWEEN y - INTERVAL 2 SECONDS AND y + INTERVAL 3 SECONDS",
    "x BETWEEN y + INTERVAL 2 DAYS AND y + INTERVAL 3 DAYS",
    "x <= y + INTERVAL 1 DAY AND y <= x + INTERVAL 5 SECONDS",
    "x <= y AND x >= y - INTERVAL 1 SECOND",
)
PAIRS = (
    [(left, right, OF_NUMBERS) for left in NUMBERS for right in NUMBERS]
    + [(left, right, OF_TIMES) for left in TIMES for right in TIMES]
    + [("span", "span", OF_TIMES)]
)


def check(condition: str, left: pa.Array, right: pa.Array) -> int | None:
    """Check that all matching pairs are in reach. Returns how many match; None if the condition makes no band."""
    types = {"x": left.type, "y": right.type}
    schemas = {name: pa.schema([("ts", pa.timestamp("us")), (name, kind)]) for name, kind in types.items()}
    streams = {name: Stream(name, schema, "ts") for name, schema in schemas.items()}
    qualified = " ".join(condition.replace("x", "x.x").replace("y", "y.y").replace("daY.Y", "day").split())
    query = parse(f"SELECT x.x AS first FROM x [NOW], y [NOW] WHERE {qualified}", streams)
    if not query.graph.bands:
        return None
    (scale,) = (BandScale.of(band) for band in query.graph.bands)
    columns = {
        Column("x", "x"): left.take(np.repeat(np.arange(len(left)), len(right))),
        Column("y", "y"): right.take(np.tile(np.arange(len(right)), len(left))),
    }
    holds = np.full(len(left) * len(right), True)
    words, valid = [], np.full(len(holds), True)
    for predicate in query.graph.residuals:
        compiled = compile_expression(predicate.expression, lambda column: types[column.name])
        holds &= compiled(columns, len(holds)).fill_null(False).to_numpy(zero_copy_only=False)
    for source in ("x", "y"):
        key = compile_expression(Cast(scale.band.key(source), scale.band.type), lambda column: types[column.name])
        values = key(columns, len(holds))
        valid &= values.is_valid().to_numpy(zero_copy_only=False)
        words.append(scale.words(source, values.fill_null(0)))
    apart = (words[0] - words[1]).view(np.uint64) + np.uint64(scale.reach)
    in_reach = valid & (apart <= np.uint64(2 * scale.reach))
    lost = np.flatnonzero(holds & ~in_reach)
    examples = [[column[int(pair)].as_py() for column in columns.values()] for pair in lost[:3]]
    assert not examples, f"{condition}: {len(lost)} of {holds.sum()} matches are out of reach, such as {examples}"
    return int(holds.sum())


@pytest.mark.parametrize(("left", "right", "conditions"), PAIRS, ids=[f"{left}-{right}" for left, right, _ in PAIRS])
def test_all_matching_pairs_are_in_reach(left: str, right: str, conditions: tuple[str, ...]) -> None:
    arrays = [pa.array(values, kind) for kind, values in (VALUES[left], VALUES[right])]
    matches = [check(condition, *arrays) for condition in conditions]
    assert any(matches), "no condition here has a band and matches, so nothing was tested"


TRAPS: dict[str, tuple[str, pa.DataType, Any, Any]] = {
    "the smallest integer is its own absolute value": ("abs(x - y) <= 1", pa.int64(), -(2**62), 2**62),
    "the smallest 32-bit integer is its own absolute value": ("abs(x - y) <= 1", pa.int32(), 2**31 - 1, -1),
    "a difference of integers wraps": ("abs(x - y) <= 1", pa.int64(), -(2**63), 2**63 - 1),
    "a difference wraps at the width of its type": ("x - y BETWEEN 1 AND 2", pa.int8(), -128, 126),
    "sums wrap together": ("x BETWEEN y + 2 AND y + 4", pa.int64(), 2 - 2**63, 2**63 - 1),
    "an integer that is rounded to a float": ("x BETWEEN y - 1e0 AND y + 1e0", pa.int64(), 10**18 + 60, 10**18),
    "a limit that is rounded to a float": ("x - y = 9007199254740992e0", pa.int64(), 2**53 + 1, 0),
    "a sum of floats is rounded": ("x BETWEEN y - 0.1e0 AND y + 0.1e0", pa.float64(), 0.30000000000000004, 0.2),
    "a sum of large floats is rounded by more": ("x BETWEEN y - 1e0 AND y + 1e0", pa.float64(), 2.0**53, 2.0**53 + 2),
    "single precision": ("x - y = 16777216", pa.float32(), 16_777_216.0, -1.0),
    "a decimal loses digits": (
        "x <= y + 1.99999999999999999999 AND x >= y",
        pa.decimal128(38, 2),
        Decimal(2),
        Decimal(0),
    ),
    "infinity equals infinity": ("x BETWEEN y - 1 AND y + 1", pa.float64(), INFINITY, INFINITY),
    "NaN equals NaN": ("x BETWEEN y - 1 AND y + 1", pa.float64(), NAN, NAN),
    "minus infinity equals minus infinity": ("x <= y + 1 AND y <= x + 1", pa.float64(), -INFINITY, -INFINITY),
    "minus zero": ("abs(x - y) <= 0", pa.float64(), -0.0, 0.0),
    "the smallest float": ("abs(x - y) <= 0", pa.float64(), 5e-324, 5e-324),
    "a difference of times wraps": ("abs(x - y) <= INTERVAL 1 SECOND", pa.timestamp("us"), -(2**63), 2**63 - 1),
    "times are rounded down": ("x - y = INTERVAL 0 SECOND", pa.timestamp("ns"), 1_999, 1_000),
    "days beyond the last timestamp": ("abs(x - y) < INTERVAL 2 DAYS", pa.date32(), 2**31 - 1, 2**31 - 2),
}


@pytest.mark.parametrize("name", TRAPS)
def test_traps(name: str) -> None:
    condition, kind, left, right = TRAPS[name]
    assert check(condition, pa.array([left], kind), pa.array([right], kind)) == 1


def test_nan_is_above_every_limit_both_ways() -> None:
    """A difference that is NaN is above any constant, in both directions: such a pair of conditions is no band."""
    assert check("x - y >= -2 AND y - x >= -1", pa.array([NAN]), pa.array([1.0])) is None
