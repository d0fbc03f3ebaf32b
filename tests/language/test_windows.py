"""Windows in brackets: the ways to write lengths, and the columns that end rows."""

from datetime import timedelta

import pyarrow as pa
import pytest

import braid
from braid import QueryError
from braid.language.default_window import with_default_window
from braid.model.stream import Stream
from braid.model.window import Range, Tumble, Until, Window

SCHEMA = pa.schema({"ts": pa.timestamp("us"), "Ends": pa.timestamp("ms", "UTC"), "k": pa.int64()})
STREAMS = {"s": Stream("s", SCHEMA, "ts")}


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("[RANGE 0.5 SECONDS]", Range(500_000)),
        ("[RANGE 1.5s SLIDE 0.25 SECONDS]", Range(1_500_000, 250_000)),
        ("[RANGE 0.001 MILLISECONDS]", Range(1)),
        ("[RANGE INTERVAL '5' MINUTES]", Range(300_000_000)),
        ("[RANGE INTERVAL 5 MINUTES]", Range(300_000_000)),
        ("[RANGE INTERVAL '5 minutes' SLIDE INTERVAL '30' SECOND]", Range(300_000_000, 30_000_000)),
        ("[range interval '1.5' hours]", Range(5_400_000_000)),
        ("[TUMBLE 10 SECONDS]", Tumble(10_000_000)),
        ("[tumble interval '1' minute]", Tumble(60_000_000)),
        ("[UNTIL ends]", Until("Ends")),
        ("[until `Ends`]", Until("Ends")),
    ],
)
def test_windows(written: str, expected: Window) -> None:
    query = braid.parse(f"SELECT k FROM s {written}", STREAMS)
    assert query.sources[0].window == expected
    assert braid.parse(f"SELECT k FROM s {expected}", STREAMS).sources == query.sources


@pytest.mark.parametrize(
    ("written", "problem", "at"),
    [
        ("[UNTIL k]", "'k' is int64, and a row ends at a timestamp", "k"),
        ("[UNTIL end]", "stream 's' has no column 'end'", "end"),
    ],
)
def test_columns_that_cannot_end_a_row(written: str, problem: str, at: str) -> None:
    text = f"SELECT k FROM s {written}"
    with pytest.raises(QueryError) as caught:
        braid.parse(text, STREAMS)
    assert caught.value.problem == problem
    span = caught.value.span
    assert span is not None and text[span.start : span.end] == at


@pytest.mark.parametrize(
    ("window", "hint"),
    [("[SESSION 5 MINUTES]", "[UNTIL")],
)
def test_windows_of_other_systems_are_refused_with_what_to_write_instead(window: str, hint: str) -> None:
    with pytest.raises(QueryError) as caught:
        braid.parse(f"SELECT k FROM s {window}", STREAMS)
    assert hint in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT * FROM s", "SELECT * FROM s [RANGE 90 SECONDS]"),
        ("SELECT * FROM s AS x JOIN `s` y ON x.k = y.k", "SELECT * FROM s [] AS x JOIN `s` [] y ON x.k = y.k"),
        (
            "SELECT k FROM s x [NOW] LEFT JOIN s AS y ON x.k = y.k WHERE EXISTS (SELECT 1 FROM s z)",
            "SELECT k FROM s x [NOW] LEFT JOIN s [] AS y ON x.k = y.k WHERE EXISTS (SELECT 1 FROM s [] z)",
        ),
        ("SELECT k FROM s [ROWS 2] EXCEPT SELECT k FROM s y", "SELECT k FROM s [ROWS 2] EXCEPT SELECT k FROM s [] y"),
        ("SELECT k FROM s [NOW]", "SELECT k FROM s [NOW]"),
    ],
)
def test_a_window_for_streams_that_have_none(text: str, expected: str) -> None:
    filled = with_default_window(text, "90 seconds")
    assert filled == expected.replace("[]", "[RANGE 90 SECONDS]")


def test_a_default_window_is_a_duration() -> None:
    with pytest.raises(braid.BraidError, match="the window of streams without one is 'soon'"):
        with_default_window("SELECT * FROM s", "soon")


def test_a_default_window_in_a_local_run() -> None:
    times = pa.array([0, 60, 100], pa.timestamp("s"))
    tables = {"s": pa.table({"ts": times, "k": [1, 2, 3]})}
    text = "SELECT a.k AS ak, b.k AS bk FROM s AS a JOIN s [NOW] AS b ON a.k < b.k"
    result = braid.run(text, tables, window=timedelta(seconds=90))
    assert sorted(zip(*result.to_pydict().values(), strict=True)) == [(1, 2), (2, 3)]
