"""`braid.run`: its arguments, the layouts of columns, its warnings and its errors."""

from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import braid
from braid.testing import oracle

TEXT = "SELECT a.n AS an, b.n AS bn FROM a [RANGE 10 SECONDS], b [RANGE 10 SECONDS] WHERE a.k = b.k"


def rows(*seconds: int, key: int = 1) -> pa.Table:
    times = [datetime(2024, 1, 1) + timedelta(seconds=second) for second in seconds]
    schema = pa.schema({"ts": pa.timestamp("us"), "k": pa.int64(), "n": pa.int64()})
    return pa.table({"ts": times, "k": [key] * len(seconds), "n": list(seconds)}, schema)


def pairs(result: pa.Table) -> list[tuple[int, int]]:
    return sorted((row["an"], row["bn"]) for row in result.to_pylist())


def test_tables_and_iterables_of_batches_are_streams() -> None:
    a, b = rows(0, 5, 30), rows(2, 14, 39)
    expected = [(0, 2), (5, 2), (5, 14), (30, 39)]
    assert pairs(braid.run(TEXT, {"a": a, "b": b})) == expected
    assert pairs(braid.run(TEXT, {"a": iter(a.to_batches(1)), "b": b.to_batches()[0]})) == expected
    assert pairs(braid.run(TEXT, {"a": iter(a.to_batches(1)), "b": b.to_reader()}, batch_rows=2)) == expected


def test_a_parsed_query_is_accepted() -> None:
    assert pairs(braid.run(braid.parse(TEXT), {"a": rows(0), "b": rows(1)})) == [(0, 1)]


def test_streams_that_the_query_does_not_name_are_not_read() -> None:
    assert braid.run(TEXT, {"a": rows(0), "b": rows(1), "other": 7}).num_rows == 1  # type: ignore[dict-item]


def test_an_empty_stream_gives_an_empty_result_with_its_columns() -> None:
    result = braid.run(TEXT, {"a": rows(0), "b": rows()})
    assert result.num_rows == 0
    assert result.schema == pa.schema({"an": pa.int64(), "bn": pa.int64()})


def test_time_and_lateness_may_differ_by_stream() -> None:
    b = rows(20, 1, 12).rename_columns(["at", "k", "n"])
    result = braid.run(
        TEXT, {"a": rows(0, 5, 30), "b": b}, time={"b": "at"}, lateness={"b": "19 seconds"}, batch_rows=1
    )
    assert pairs(result) == [(0, 1), (5, 1), (5, 12)]


def test_late_rows_are_dropped_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    result = braid.run(TEXT, {"a": rows(0, 20, 1, 21), "b": rows(1, 20, 22, 23)}, batch_rows=1)
    assert pairs(result) == [(0, 1), (20, 20), (20, 22), (20, 23), (21, 20), (21, 22), (21, 23)]
    assert caplog.messages == ["1 of 4 rows of 'a' came too late and were dropped"]


def test_without_batch_rows_no_row_is_late(caplog: pytest.LogCaptureFixture) -> None:
    assert pairs(braid.run(TEXT, {"a": rows(20, 0), "b": rows(1)})) == [(0, 1)]
    assert caplog.messages == []


LAYOUTS = {
    "string view": pa.array(["x", None, "y"], pa.string_view()),
    "binary view": pa.array([b"x", None, b"y"], pa.binary_view()),
    "run-end encoded": pc.run_end_encode(pa.array(["x", "x", "y"])),
    "decimal32": pa.array([Decimal("1.5"), None, Decimal("1.5")], pa.decimal32(5, 2)),
    "decimal256": pa.array([Decimal("1.5"), None, Decimal("1.5")], pa.decimal256(50, 2)),
}


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("window", ["[RANGE 1 MINUTE]", "[ROWS 2]", "[PARTITION BY v ROWS 1]"])
def test_columns_of_unusual_layouts_are_selected_and_compared(name: str, window: str) -> None:
    values = LAYOUTS[name]
    table = rows(0, 0, 1).append_column("v", values)
    text = f"SELECT a.v AS av, b.n AS bn FROM a {window}, b {window} WHERE a.v = b.v"
    result = braid.run(text, {"a": table, "b": table}, batch_rows=1, lateness="1 minute")
    plain = table.set_column(3, "v", pa.array(values.to_pylist()))
    expected = oracle(text, {"a": plain, "b": plain})
    assert sorted(map(str, result.to_pylist())) == sorted(map(str, expected.to_pylist()))


def test_a_column_that_is_not_read_may_be_of_any_type() -> None:
    union = pa.UnionArray.from_sparse(pa.array([0, 1], pa.int8()), [pa.array([1, 2]), pa.array(["x", "y"])])
    table = rows(0, 1).append_column("u", union)
    assert braid.run(TEXT, {"a": table, "b": table}).num_rows == 4
    with pytest.raises(braid.BraidError, match=r"column 'a\.u' is a union"):
        braid.run("SELECT a.u FROM a [NOW]", {"a": table})


def test_a_decimal_equals_the_double_with_the_same_digits() -> None:
    at = rows(0)["ts"]
    streams = {
        "a": pa.table({"ts": at, "x": [Decimal("99.99")]}),
        "b": pa.table({"ts": at, "x": [99.99]}),
    }
    assert braid.run("SELECT a.x FROM a [NOW], b [NOW] WHERE a.x = b.x", streams).num_rows == 1


def test_dictionaries_of_several_batches_are_combined() -> None:
    chunks = [
        pa.DictionaryArray.from_arrays(pa.array(range(100), pa.int8()), [f"{chunk}-{number}" for number in range(100)])
        for chunk in range(3)
    ]
    table = rows(*range(300)).append_column("d", pa.chunked_array(chunks))
    text = "SELECT a.d FROM a [ROWS 500], b [ROWS 500] WHERE a.d = b.d AND a.n = b.n"
    for batch_rows in (None, 10, 100):
        result = braid.run(text, {"a": table, "b": table}, batch_rows=batch_rows)
        assert sorted(result["d"].to_pylist()) == sorted(table["d"].to_pylist())


def test_one_key_and_short_windows_over_a_long_table() -> None:
    """Comparing all 40 billion pairs would take far too long."""
    count = 200_000
    times = pa.array(range(count)).cast(pa.timestamp("us"))
    table = pa.table({"ts": times, "k": pa.array([1] * count), "n": range(count)})
    for window in ("[NOW]", "[ROWS 1]", "[RANGE 3 MICROSECONDS]"):
        text = f"SELECT a.n FROM a {window}, b {window} WHERE a.k = b.k"
        assert braid.run(text, {"a": table, "b": table}).num_rows >= count


@pytest.mark.parametrize(
    "condition", ["NULL", "a.k = 1 AND NULL", "CASE WHEN a.k = 1 THEN NULL END", "IF(true, NULL, NULL)"]
)
def test_a_condition_that_is_null_selects_no_row(condition: str) -> None:
    assert braid.run(f"SELECT a.k FROM a [UNBOUNDED] WHERE {condition}", {"a": rows(0, 1)}).num_rows == 0
    text = f"SELECT a.k FROM a [UNBOUNDED], b [UNBOUNDED] WHERE a.k = b.k AND {condition.replace('a.k', 'a.k + b.k')}"
    assert braid.run(text, {"a": rows(0, 1), "b": rows(0)}).num_rows == 0


def test_aliases_may_have_any_characters() -> None:
    text = """SELECT 1 AS one FROM s [UNBOUNDED] AS a, s [UNBOUNDED] AS c, s [UNBOUNDED] AS `a>c`
              WHERE a.k = c.k AND c.k = `a>c`.k"""
    assert braid.run(text, {"s": rows(0, 1)}).num_rows == 8


@pytest.mark.parametrize("window", ["[ROWS 1]", "[PARTITION BY k ROWS 1]"])
@pytest.mark.parametrize(
    "values", [[[2], [10]], [{"x": 10}, {"x": 1}], [[None, 1], [5]], [[float("nan")], [7.0]]], ids=str
)
def test_ties_are_broken_by_nested_values(values: list[object], window: str) -> None:
    table = rows(0, 0).append_column("v", pa.array(values)).select(["ts", "k", "v"])
    table = table.append_column("i", pa.array([0, 1]))
    text = f"SELECT x.i FROM s {window} AS x, s [UNBOUNDED] AS y WHERE x.i = y.i"
    assert braid.run(text, {"s": table}).to_pylist() == oracle(text, {"s": table}).to_pylist()


def test_a_plan_object_is_accepted() -> None:
    query = braid.parse(TEXT)
    assert pairs(braid.run(query, {"a": rows(0), "b": rows(1)}, plan=braid.Plan.in_text_order(query))) == [(0, 1)]


def test_the_earliest_timestamp_is_an_event_time() -> None:
    table = pa.table({"ts": pa.array([-(2**63)], pa.timestamp("us")), "k": [1], "n": [1]})
    for batch_rows in (None, 1):
        assert braid.run(TEXT, {"a": table, "b": table}, batch_rows=batch_rows).num_rows == 1


@pytest.mark.parametrize(
    ("call", "error", "problem"),
    [
        (lambda: braid.run(None, {}), braid.QueryError, "a query is text or what braid.parse returns, not NoneType"),
        (
            lambda: braid.run(TEXT, {"a": rows(0), "b": rows(1)}, lateness={"c": "1 s"}),
            braid.StreamError,
            "lateness names stream 'c', which is not among the streams",
        ),
        (
            lambda: braid.run(TEXT, {"a": rows(0), "b": rows(1)}, time=5),
            braid.StreamError,
            "the event time of stream 'a' is the name of a column, not 5",
        ),
        (
            lambda: braid.run(TEXT, {"a": rows(0), "b": rows(1)}, batch_rows="2"),
            braid.BraidError,
            "batch_rows must be a number of rows, 1 or more, or None for all at once, not '2'",
        ),
        (
            lambda: braid.run(TEXT, {"a": rows(0), "b": rows(1)}, strategy=["jisc"]),
            braid.PlanError,
            "there is no strategy '['jisc']' to change a plan",
        ),
        (
            lambda: braid.run(TEXT, {"a": rows(0), "b": rows(1)}, adapt="never"),
            braid.PlanError,
            "adapt must be a bool or Policy, not 'never'",
        ),
        (
            lambda: braid.run(TEXT, {"a": rows(0), "b": rows(1)}, adapt=[]),
            braid.PlanError,
            "adapt must be a bool or Policy, not []",
        ),
        (
            lambda: braid.run(TEXT, {"a": rows(0), "b": rows(1)}, switches={True: ("a", "b")}),
            braid.PlanError,
            "plans change at steps counted from 0, not at True",
        ),
        (
            lambda: braid.run(TEXT, {"a": rows(0), "b": rows(1)}, hash_bits="4"),
            braid.BraidError,
            "hash_bits must be a number of bits from 0 to 64, not '4'",
        ),
        (
            lambda: braid.run(TEXT, {"a": rows(0), "b": rows(1)}, plan={"a": [1], "b": ["a"]}),
            braid.PlanError,
            "a step of head 'a' is a stream, or a stream with its access path such as {'b': 'key'}, not 1",
        ),
        (lambda: braid.run(TEXT, {"a": rows(0)}), braid.QueryError, "there is no stream 'b'"),
        (lambda: braid.run(TEXT, [rows(0)]), braid.StreamError, "streams must map names to Arrow tables, not list"),
        (lambda: braid.run(TEXT, {1: rows(0)}), braid.StreamError, "the name of a stream is a text, not 1"),
        (
            lambda: braid.run(TEXT, {"a": [{"k": 1}], "b": rows(1)}),
            braid.StreamError,
            "stream 'a' gives dict; give Arrow record batches",
        ),
        (
            lambda: braid.run(TEXT, {"a": 7, "b": rows(1)}),
            braid.StreamError,
            "stream 'a' is int; give an Arrow table, or an iterable of Arrow record batches",
        ),
        (
            lambda: braid.run(TEXT, {"a": iter([]), "b": rows(1)}),
            braid.StreamError,
            "stream 'a' has no batch, so its columns are unknown; give an empty Arrow table",
        ),
        (
            lambda: braid.run(TEXT, {"a": rows(0), "b": rows(1)}, time="at"),
            braid.StreamError,
            "stream 'a' has no event-time column 'at'",
        ),
        (
            lambda: braid.run(TEXT, {"a": rows(0), "b": rows(1)}, time="k"),
            braid.StreamError,
            "the event-time column 'k' of stream 'a' is int64, not a timestamp",
        ),
        (
            lambda: braid.run(TEXT, {"a": rows(0), "b": rows(1)}, lateness="soon"),
            braid.StreamError,
            "the lateness of stream 'a' is 'soon', which is not a duration; write it like '5 seconds'",
        ),
        (
            lambda: braid.run(TEXT, {"a": rows(0), "b": rows(1)}, batch_rows=0),
            braid.BraidError,
            "batch_rows must be a number of rows, 1 or more, or None for all at once, not 0",
        ),
        (
            lambda: braid.run(TEXT, {"a": rows(0), "b": rows(1)}, plan={"a": ["b"]}),
            braid.PlanError,
            "the plan has no probe sequence for head 'b'",
        ),
        (
            lambda: braid.run(TEXT, {"a": rows(0), "b": rows(1)}, switches=[1]),
            braid.PlanError,
            "switches must map steps to plans, not list",
        ),
    ],
)
def test_wrong_input_is_refused(call: Callable[[], pa.Table], error: type[Exception], problem: str) -> None:
    with pytest.raises(error) as caught:
        call()
    assert problem in str(caught.value)
