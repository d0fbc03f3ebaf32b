"""Which conditions make a band, and the limits of the band."""

import pyarrow as pa
import pytest

from braid.language import parse
from braid.model.band import Band
from braid.model.plan import Plan
from braid.model.statistics import Statistics
from braid.model.stream import Stream

KINDS = {
    "tiny": pa.int8(),
    "i": pa.int32(),
    "l": pa.int64(),
    "u": pa.uint64(),
    "f": pa.float32(),
    "d": pa.float64(),
    "m": pa.decimal128(10, 2),
    "s": pa.string(),
    "at": pa.timestamp("us"),
    "day": pa.date32(),
    "span": pa.duration("us"),
}
SCHEMA = pa.schema([("ts", pa.timestamp("us")), *KINDS.items()])


def bands(condition: str) -> tuple[Band, ...]:
    text = f"SELECT a.i FROM a [NOW], b [NOW], c [NOW] WHERE {condition}"
    return parse(text, {name: Stream(name, SCHEMA, "ts") for name in "abc"}).graph.bands


def band_text(condition: str) -> str:
    (band,) = bands(condition)
    return f"{float(band.low):g} .. {float(band.high):g} of {band.left} - {band.right}, {band.bits} bits"


@pytest.mark.parametrize(
    ("condition", "band"),
    [
        ("abs(a.l - b.l) <= 1", "-1 .. 1 of a.l - b.l, 64 bits"),
        ("1 >= abs(b.l - a.l)", "-1 .. 1 of a.l - b.l, 64 bits"),
        ("abs(a.i - b.i) < 5", "-5 .. 5 of a.i - b.i, 32 bits"),
        ("abs(a.i - b.l) <= 1.5", "-2 .. 2 of a.i - b.l, 64 bits"),
        ("a.l - b.l BETWEEN -2 AND 3", "-2 .. 3 of a.l - b.l, 64 bits"),
        ("b.l - a.l BETWEEN -2 AND 3", "-3 .. 2 of a.l - b.l, 64 bits"),
        ("a.l - b.l = 7", "7 .. 7 of a.l - b.l, 64 bits"),
        ("a.l - b.l <= 1 AND b.l - a.l <= 2", "-2 .. 1 of a.l - b.l, 64 bits"),
        ("a.l BETWEEN b.l - 2 AND b.l + 3", "-2 .. 3 of a.l - b.l, 64 bits"),
        ("a.l BETWEEN b.l + 2 AND b.l + 3", "2 .. 3 of a.l - b.l, 64 bits"),
        ("a.l <= 3 + b.l AND b.l <= a.l + 2", "-2 .. 3 of a.l - b.l, 64 bits"),
        ("a.l - 3 <= b.l AND b.l < a.l", "0 .. 3 of a.l - b.l, 64 bits"),
        ("a.l <= b.l AND a.l >= b.l", "0 .. 0 of a.l - b.l, 64 bits"),
        ("a.l <= b.l + 9 AND a.l <= b.l + 3 AND a.l >= b.l - 2", "-2 .. 3 of a.l - b.l, 64 bits"),
        ("a.l * 2 <= b.l % 7 + 1 AND a.l * 2 >= b.l % 7 - 1", "-1 .. 1 of (a.l * 2) - (b.l % 7), 64 bits"),
        ("abs(a.d - b.d) <= 8", "-8 .. 8 of a.d - b.d, None bits"),
        ("a.m - b.f BETWEEN 1 AND 2", "1 .. 2 of a.m - b.f, None bits"),
        ("abs(a.u - b.i) <= 1", "-2 .. 2 of a.u - b.i, None bits"),
        ("abs(a.at - b.at) <= INTERVAL 1 SECOND", "-1e+06 .. 1e+06 of a.at - b.at, 64 bits"),
        ("a.at BETWEEN b.at - INTERVAL 1 SECOND AND b.at", "-1e+06 .. 0 of a.at - b.at, 64 bits"),
        ("a.day - b.at BETWEEN INTERVAL -1 DAY AND INTERVAL 0 DAY", "-8.64e+10 .. 0 of a.day - b.at, 64 bits"),
        ("a.l = b.l AND abs(a.i - b.i) <= 1", "-1 .. 1 of a.i - b.i, 32 bits"),
        ("abs(a.span - b.span) <= INTERVAL 1 SECOND", "-1e+06 .. 1e+06 of a.span - b.span, 64 bits"),
    ],
)
def test_conditions_that_make_a_band(condition: str, band: str) -> None:
    assert band_text(condition) == band


@pytest.mark.parametrize(
    "condition",
    [
        "a.l < b.l",
        "a.l - b.l <= 1",
        "a.l <= b.l + 1 AND a.l - b.l >= -1",  # a difference may wrap, the comparison of its operands does not
        "a.l + 5 <= b.l + 7 AND a.l >= b.l",  # the left sum may wrap and be less than anything
        "a.l >= b.l + 1 AND a.l - 3 <= b.l",
        "a.l >= b.l + 1 AND a.l <= b.l + CAST(3 AS INT) + 0.5",
        "abs(a.l - b.l) >= 1",
        "abs(a.l - b.l) <= -1",
        "abs(a.l - b.l) <> 1",
        "abs(a.l - b.l) <= 1 OR a.l = 5",
        "abs(a.l + b.l) <= 1",
        "abs(a.l - b.l) <= a.i",
        "abs(a.l - b.l - c.l) <= 1",
        "abs(a.tiny - b.tiny) <= 100",  # nearly all values of the type
        "a.l BETWEEN b.i - 1 AND b.l + 1",
        "a.f BETWEEN b.f - CAST(1 AS FLOAT) AND b.f + CAST(1 AS FLOAT)",
        "a.d BETWEEN b.i + 1 AND b.i + 2",
        "a.day BETWEEN b.day - INTERVAL 1 DAY AND b.day + INTERVAL 1 DAY",
        "a.s BETWEEN b.s AND b.s",
    ],
)
def test_conditions_that_make_no_band(condition: str) -> None:
    assert bands(condition) == ()


def test_one_band_for_each_pair_of_streams() -> None:
    condition = "abs(a.l - b.l) <= 1 AND abs(a.d - b.d) <= 1 AND abs(b.i - c.i) <= 1"
    assert [str(band.left) for band in bands(condition)] == ["a.l", "b.i"]


def test_an_unbound_query_has_no_bands() -> None:
    assert parse("SELECT a.i FROM a [NOW], b [NOW] WHERE abs(a.l - b.l) <= 1").graph.bands == ()


def test_explain_shows_which_probes_use_a_band_index() -> None:
    schemas = {name: Stream(name, SCHEMA, "ts") for name in "abc"}
    text = "SELECT a.i FROM a [NOW], b [NOW], c [NOW] WHERE abs(a.l - b.l) <= 1 AND b.i = c.i"
    explained = Plan.in_text_order(parse(text, schemas)).explain(Statistics())
    assert "1. probe b on ABS((a.l - b.l)) <= 1, by a band index: unknown rows/s" in explained
    assert "1. probe b on b.i = c.i: unknown rows/s" in explained
