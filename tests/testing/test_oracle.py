"""The oracle against results worked out by hand from the definition of lifetimes."""

import sys
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

import braid
from braid import BraidError, QueryError
from braid.testing import assert_same_rows, oracle

NAN = float("nan")
SECOND = 1_000_000


def stream(times: Sequence[int | None], unit: str = "us", **columns: Sequence[object]) -> pa.Table:
    return pa.table({"ts": pa.array(times, pa.timestamp(unit))} | columns)


def moments(start: int, stop: int) -> pa.Table:
    """A stream with one row per microsecond. Joined under [NOW], it shows when other rows are alive."""
    return stream(range(start, stop), moment=list(range(start, stop)))


def alive(window: str, rows: pa.Table, start: int = 0, stop: int = 30) -> dict[object, list[int]]:
    """The moments between start and stop at which each row is alive, by the id of the row."""
    text = f"SELECT s.id, m.moment FROM s {window}, m [NOW]"
    results = oracle(text, {"s": rows, "m": moments(start, stop)}).to_pylist()
    moments_by_id: dict[object, list[int]] = {row_id: [] for row_id in rows.column("id").to_pylist()}
    for result in results:
        moments_by_id[result["id"]].append(result["moment"])
    return {row_id: sorted(times) for row_id, times in moments_by_id.items()}


def result_rows(text: str, **streams: pa.Table) -> list[tuple[object, ...]]:
    """The rows that the oracle returns, sorted."""
    result = oracle(text, streams)
    return sorted(zip(*(column.to_pylist() for column in result.columns), strict=True), key=repr)


class TestRange:
    def test_a_row_is_alive_from_its_time_for_the_length_of_the_window(self) -> None:
        rows = stream([3, 10], id=["a", "b"])
        assert alive("[RANGE 4 MICROSECONDS]", rows) == {"a": [3, 4, 5, 6], "b": [10, 11, 12, 13]}

    def test_lifetimes_that_only_touch_do_not_overlap(self) -> None:
        a, b = stream([0], id=["a"]), stream([5, 4], id=["touches", "overlaps"])
        text = "SELECT b.id FROM a [RANGE 5 MICROSECONDS], b [RANGE 5 MICROSECONDS]"
        assert result_rows(text, a=a, b=b) == [("overlaps",)]

    def test_three_streams_must_be_alive_at_one_moment(self) -> None:
        # a and b overlap at 5..9, b and c at 8..14: all three at 8 and 9 only.
        text = "SELECT c.id FROM a [RANGE 10us], b [RANGE 10us], c [RANGE 10us]"
        times = stream([8, 10, -5], id=["meets both", "too late for a", "gone before b"])
        assert result_rows(text, a=stream([0]), b=stream([5]), c=times) == [("meets both",)]

    def test_before_1970(self) -> None:
        assert alive("[RANGE 2us]", stream([-3], id=["a"]), -10, 10) == {"a": [-3, -2]}


class TestSlide:
    def test_the_start_is_rounded_up_to_the_slide(self) -> None:
        rows = stream([0, 1, 4, 5], id=["on", "after", "before", "next"])
        assert alive("[RANGE 3us SLIDE 5us]", rows) == {
            "on": [0, 1, 2],
            "after": [5, 6, 7],
            "before": [5, 6, 7],
            "next": [5, 6, 7],
        }

    def test_times_before_1970_are_rounded_up_too(self) -> None:
        rows = stream([-5, -4, -1, -6], id=["on", "after", "almost", "before"])
        assert alive("[RANGE 2us SLIDE 5us]", rows, -20, 20) == {
            "on": [-5, -4],
            "after": [0, 1],
            "almost": [0, 1],
            "before": [-5, -4],
        }


class TestRows:
    def test_a_row_ends_at_the_time_of_the_nth_row_after_it(self) -> None:
        rows = stream([1, 3, 4, 8], id=["a", "b", "c", "d"])
        forever = list(range(8, 12))
        assert alive("[ROWS 2]", rows, 0, 12) == {
            "a": [1, 2, 3],
            "b": [3, 4, 5, 6, 7],
            "c": [4, 5, 6, 7, *forever],
            "d": forever,
        }

    def test_order_of_arrival_does_not_matter(self) -> None:
        rows = stream([8, 1, 4, 3], id=["d", "a", "c", "b"])
        assert alive("[ROWS 1]", rows, 0, 9) == {"a": [1, 2], "b": [3], "c": [4, 5, 6, 7], "d": [8]}

    def test_of_rows_with_equal_times_the_smaller_comes_first(self) -> None:
        # Three rows at time 2: with ROWS 1, all but the last end when they start and are never alive.
        rows = stream([2, 2, 2, 5], x=[7, 3, 5, 0], id=["largest", "smallest", "middle", "next"])
        assert alive("[ROWS 1]", rows, 0, 7) == {
            "largest": [2, 3, 4],
            "smallest": [],
            "middle": [],
            "next": [5, 6],
        }

    def test_ties_are_broken_by_the_columns_in_the_order_of_the_schema(self) -> None:
        rows = stream([2, 2, 5], x=[1, 1, 0], y=["b", "a", ""], id=[1, 2, 3])
        assert alive("[ROWS 1]", rows, 2, 5) == {1: [2, 3, 4], 2: [], 3: []}

    @pytest.mark.parametrize(
        ("small", "large"),
        [
            (None, -1.0),
            (float("inf"), NAN),
            (None, NAN),
            (None, ""),
            ("B", "a"),
            ("z", "ä"),
            (False, True),
            (Decimal("-1.5"), Decimal("-1.4")),
            (b"\x00", b"\x01"),
        ],
    )
    def test_nulls_come_first_and_nan_last(self, small: object, large: object) -> None:
        rows = stream([2, 2, 5], x=[large, small, None], id=["large", "small", "next"])
        assert alive("[ROWS 1]", rows, 2, 5) == {"large": [2, 3, 4], "small": [], "next": []}

    def test_duplicate_rows_are_counted_separately(self) -> None:
        rows = stream([2, 2, 5], id=["a", "a", "b"])
        result = result_rows("SELECT s.id FROM s [ROWS 1], m [NOW]", s=rows, m=moments(0, 5))
        assert result == [("a",)] * 3

    def test_rows_that_where_removes_are_counted_too(self) -> None:
        rows = stream([1, 2, 3], x=[1, 0, 1], id=["a", "b", "c"])
        text = "SELECT s.id, m.moment FROM s [ROWS 1], m [NOW] WHERE s.x = 1"
        assert result_rows(text, s=rows, m=moments(0, 5)) == [("a", 1), ("c", 3), ("c", 4)]

    def test_more_rows_than_there_are(self) -> None:
        assert alive("[ROWS 12345678901234567890]", stream([1], id=["a"]), 0, 3) == {"a": [1, 2]}

    @pytest.mark.parametrize("kind", [pa.float16(), pa.decimal256(50, 0)])
    def test_ties_of_types_that_duckdb_lacks(self, kind: pa.DataType) -> None:
        rows = stream([2, 2, 2, 5], x=pa.array([2, 1, None, None], kind), id=["large", "small", "none", "next"])
        assert alive("[ROWS 2]", rows, 2, 5) == {
            "large": [2, 3, 4],
            "small": [2, 3, 4],
            "none": [],
            "next": [],
        }


class TestPartitions:
    def test_rows_are_counted_within_their_partition(self) -> None:
        rows = stream([1, 2, 4, 5], k=["x", "y", "x", "y"], id=["a", "b", "c", "d"])
        assert alive("[PARTITION BY k ROWS 1]", rows, 0, 7) == {
            "a": [1, 2, 3],
            "b": [2, 3, 4],
            "c": [4, 5, 6],
            "d": [5, 6],
        }

    def test_nulls_are_one_partition(self) -> None:
        rows = stream([1, 2, 3], k=[None, None, "x"], id=["a", "b", "c"])
        assert alive("[PARTITION BY k ROWS 1]", rows, 0, 5) == {"a": [1], "b": [2, 3, 4], "c": [3, 4]}

    def test_nan_is_one_partition_and_so_are_both_zeros(self) -> None:
        rows = stream([1, 2, 3, 4], k=[NAN, NAN, 0.0, -0.0], id=["a", "b", "c", "d"])
        assert alive("[PARTITION BY k ROWS 1]", rows, 0, 5) == {"a": [1], "b": [2, 3, 4], "c": [3], "d": [4]}

    def test_several_columns_in_upper_or_lower_case(self) -> None:
        rows = stream([1, 2, 3], k=[1, 1, 1], l=["p", "q", "p"], id=["a", "b", "c"])
        expected = {"a": [1, 2], "b": [2, 3, 4], "c": [3, 4]}
        assert alive("[partition by K, L rows 1]", rows, 0, 5) == expected


def test_now_is_one_microsecond() -> None:
    assert alive("[NOW]", stream([3], id=["a"])) == {"a": [3]}


def test_unbounded_never_ends() -> None:
    assert alive("[UNBOUNDED]", stream([27], id=["a"])) == {"a": [27, 28, 29]}
    far = pa.table({"ts": pa.array([2**63 - 2], pa.timestamp("us"))})
    assert oracle("SELECT f.ts FROM f [UNBOUNDED], s [UNBOUNDED]", {"f": far, "s": stream([0])}).num_rows == 1


def test_an_end_that_does_not_fit_64_bits_is_the_largest_that_does() -> None:
    far = pa.table({"ts": pa.array([2**63 - 2], pa.timestamp("us"))})
    assert oracle("SELECT * FROM f [RANGE 1000 DAYS]", {"f": far}).num_rows == 1


class TestTime:
    def test_a_row_without_a_time_is_never_alive_and_not_counted(self) -> None:
        rows = stream([1, None, 3], id=["a", "b", "c"])
        assert alive("[ROWS 1]", rows, 0, 5) == {"a": [1, 2], "b": [], "c": [3, 4]}
        assert alive("[UNBOUNDED]", rows, 0, 5) == {"a": [1, 2, 3, 4], "b": [], "c": [3, 4]}

    def test_nanoseconds_are_rounded_down(self) -> None:
        rows = stream([1_999, 2_000, -1], "ns", id=["a", "b", "c"])
        assert alive("[NOW]", rows, -3, 5) == {"a": [1], "b": [2], "c": [-1]}

    def test_rows_within_one_microsecond_are_ties(self) -> None:
        rows = pa.table({"x": [2, 1], "ts": pa.array([1_000, 1_001], pa.timestamp("ns")), "id": ["a", "b"]})
        assert alive("[ROWS 1]", rows, 0, 3) == {"a": [1, 2], "b": []}

    @pytest.mark.parametrize(("unit", "one"), [("s", SECOND), ("ms", 1_000)])
    def test_coarser_units(self, unit: str, one: int) -> None:
        rows, others = stream([-1, 2], unit, id=["a", "b"]), stream([-one, 2 * one], other=["a", "b"])
        assert result_rows("SELECT id, other FROM s [NOW], m [NOW]", s=rows, m=others) == [("a", "a"), ("b", "b")]

    def test_times_that_do_not_fit_64_bits_become_the_largest_that_do(self) -> None:
        last = 2**63 - 1
        rows = stream([2**60, last, -last, 0], "s", id=["late", "later", "early", "now"])
        text = "SELECT x.id, y.id FROM s [RANGE 1 SECOND] x, s [RANGE 1us] y"
        expected = oracle(text, {"s": rows})
        assert expected.num_rows == 6
        assert_same_rows(braid.run(text, {"s": rows}), expected)

    def test_the_difference_of_two_dates_is_a_duration(self) -> None:
        days = [date(2024, 1, 31), date(2024, 2, 1), None, date(2024, 2, 3)]
        streams = {name: stream([1] * 4, day=pa.array(days, pa.date32())) for name in "ab"}
        text = (
            "SELECT a.day, b.day AS other, (a.day) - b.day AS days, a.day - DATE '2024-01-01' AS since "
            "FROM a [NOW], b [NOW] WHERE a.day - b.day BETWEEN INTERVAL 0 DAYS AND INTERVAL 1 DAY"
        )
        expected = oracle(text, streams)
        assert sorted(expected.column("days").to_pylist()) == [*[timedelta(0)] * 3, timedelta(days=1)]
        assert_same_rows(braid.run(text, streams), expected)

    def test_time_zones_do_not_matter(self) -> None:
        rows = pa.table({"ts": pa.array([5], pa.timestamp("us", "Europe/Berlin")), "id": ["a"]})
        assert alive("[NOW]", rows) == {"a": [5]}

    def test_each_stream_may_have_its_own_time_column(self) -> None:
        a = pa.table({"at": pa.array([5], pa.timestamp("us"))})
        result = oracle("SELECT b.ts FROM a [NOW], b [NOW]", {"a": a, "b": stream([5])}, time={"A": "at"})
        assert result.num_rows == 1


class TestNames:
    def test_a_stream_may_occur_twice(self) -> None:
        rows = stream([1, 2], id=["a", "b"])
        text = "SELECT x.id, y.id FROM s [RANGE 5us] AS x, s [NOW] AS y"
        assert result_rows(text, s=rows) == [("a", "a"), ("a", "b"), ("b", "b")]

    def test_a_star_selects_only_the_columns_of_the_streams(self) -> None:
        streams = {"a": stream([1], x=[1]), "b": stream([1], x=[2])}
        assert oracle("SELECT * FROM a [NOW], b [NOW]", streams).column_names == ["ts", "x", "ts", "x"]
        result = oracle("SELECT b.*, a.x AS y FROM a [NOW], b [NOW]", streams)
        assert result.column_names == ["ts", "x", "y"]
        assert [column.to_pylist() for column in result.columns[1:]] == [[2], [1]]

    def test_columns_of_one_name_keep_their_order(self) -> None:
        streams = {"a": stream([1], x=[1]), "b": stream([1], x=[2])}
        result = oracle("SELECT b.x, a.x, b.x FROM a [NOW], b [NOW]", streams)
        assert result.column_names == ["x", "x", "x"]
        assert [column.to_pylist() for column in result.columns] == [[2], [1], [2]]

    def test_names_ignore_case(self) -> None:
        streams = {"Bids": stream([1], Price=[3])}
        result = oracle("SELECT B.PRICE FROM bids [now] b WHERE b.price > 2", streams)
        assert result.columns[0].to_pylist() == [3]

    def test_join_on(self) -> None:
        streams = {"a": stream([1, 1], x=[1, 2]), "b": stream([1, 1], x=[2, 3])}
        text = "SELECT a.x, b.x FROM a [NOW] JOIN b [NOW] ON a.x = b.x"
        assert result_rows(text, **streams) == [(2, 2)]


class TestTypes:
    @pytest.mark.parametrize(
        "column",
        [
            pa.array([1], pa.int8()),
            pa.array([1], pa.uint64()),
            pa.array([1.5], pa.float16()),
            pa.array(["a"], pa.large_string()),
            pa.array(["a"], pa.string_view()),
            pa.array(["a"]).dictionary_encode(),
            pa.array([Decimal("1.5")], pa.decimal256(60, 1)),
            pa.array([1], pa.timestamp("ns", "Asia/Tokyo")),
            pa.array([1], pa.time32("s")),
            pa.array([1], pa.duration("ns")),
            pa.array([[{"x": [1, None]}]]),
            pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int8())),
            pa.nulls(1),
        ],
        ids=lambda column: str(column.type),
    )
    def test_a_column_keeps_its_type_and_value(self, column: pa.Array) -> None:
        rows = stream([1], p=column)
        result = oracle("SELECT p FROM s [RANGE 1 SECOND]", {"s": rows})
        assert result.schema.field("p").type == column.type
        assert result.column("p").combine_chunks().equals(column)

    def test_streams_without_rows(self) -> None:
        nothing = stream([1], x=["a"]).slice(0, 0)
        result = oracle("SELECT x, x = 'b' AS y FROM s [ROWS 3]", {"s": nothing})
        assert result.num_rows == 0
        assert result.schema.types == [pa.string(), pa.bool_()]

    def test_batches(self) -> None:
        batches = stream([1, 2], id=["a", "b"]).to_batches(max_chunksize=1)
        assert oracle("SELECT id FROM s [NOW]", {"s": iter(batches)}).num_rows == 2
        assert oracle("SELECT id FROM s [NOW]", {"s": batches[0]}).num_rows == 1


class TestMeaning:
    """Expressions have the meaning of Spark with ANSI mode off."""

    @pytest.mark.parametrize(
        ("expression", "value"),
        [
            ("x / 0", None),
            ("x % 0", None),
            ("x div 0", None),
            ("w / 0", None),
            ("w % 0", None),
            ("x / 2", -3.5),
            ("x div 2", -3),
            ("x % 2", -1),
            ("x div 2 / 2", -1.5),
            ("10 div (x div 2)", -3),
            ("d div 0.6", 4),
            ("sign(nan) = nan", True),
            ("substring(t, 1, CAST(n AS INT))", None),
            ("unix_seconds(TIMESTAMP '1969-12-31 23:59:59.5')", -1),
            ("unix_timestamp(TIMESTAMP '1969-12-31 23:59:58.5')", -1),
            ("bigint('5') + tinyint('-1')", 4),
            ("isnull(n)", True),
            ("extract(SECOND FROM TIMESTAMP '1970-01-01 00:00:01.25')", Decimal("1.25")),
            ("extract(SECONDS FROM TIMESTAMP '1970-01-01 00:00:01.25')", Decimal("1.25")),
            ("date_part('second', TIMESTAMP '1970-01-01 00:00:01.25')", Decimal("1.25")),
            ("extract(DAYS FROM DATE '1970-01-04') + extract(HOURS FROM TIMESTAMP '1970-01-01 05:00:00')", 9),
            ("date_part('WEEKS', DATE '1970-01-04') + date_part('months', DATE '1970-03-04')", 4),
            ("extract(DOW FROM DATE '1970-01-04')", 1),
            ("extract(DAYOFWEEK FROM TIMESTAMP '1970-01-03 12:00:00')", 7),
            ("date_part('dow', DATE '1970-01-04') * 2", 2),
            ("date_part('doy', DATE '1970-02-01')", 32),
            ("unix_timestamp(TIMESTAMP '1970-01-01 00:00:59.5')", 59),
            ("CAST(DATE '1970-01-02' AS TIMESTAMP)", datetime(1970, 1, 2)),
            ("d / 2", 1.25),
            ("f / 10.0", 0.25),
            ("t LIKE 'a\\\\%b'", True),
            ("t LIKE 'a\\\\_b'", False),
            ("t NOT LIKE 'a\\\\_b'", True),
            ("t LIKE 'a_b'", True),
            ("n = n", None),
            ("n <=> n", True),
            ("nan = nan", True),
            ("nan > 1e300", True),
            ("zero = -0.0D", True),
            ("concat(t, n)", None),
            ("n IN ('a', 'b')", None),
            ("floor(-w)", -3),
            ("ceil(w)", 3),
            ("floor(nan)", 0),
            ("CAST(nan AS INT)", 0),
            ("CAST(1e20D AS INT)", 2**31 - 1),
            ("CAST(-1e20D AS BIGINT)", -(2**63)),
            ("ceil(1e20D)", 2**63 - 1),
            ("round(w)", 3.0),
            ("sign(x)", -1.0),
            ("ln(zero)", None),
            ("log10(x)", None),
            ("log(2, 8)", 3.0),
            ("substring(t, 0, 2)", "a%"),
            ("substring(t, -2, 2)", "%b"),
            ("substring(t, 2, -1)", ""),
            ("substring(t, 2)", "%b"),
            ("replace(t, '%')", "ab"),
            ("CAST(w AS INT)", 2),
            ("CAST(-w AS BIGINT)", -2),
            ("CAST('3.7' AS INT)", 3),
            ("CAST(d AS INT)", 2),
            ("CAST('x' AS INT)", None),
            ("CAST(x AS STRING)", "-7"),
            ("dayofweek(DATE '1970-01-04')", 1),
            ("ts - TIMESTAMP '1970-01-01 00:00:00'", timedelta(microseconds=1)),
            ("greatest(n, 'a')", "a"),
            ("abs(TIMESTAMP '1970-01-01 00:00:00' - ts)", timedelta(microseconds=1)),
            ("abs(x - 1) + abs(-w)", 10.5),
            ("x < 0 = w > 2", True),
        ],
    )
    def test_expression(self, expression: str, value: object) -> None:
        rows = stream(
            [1],
            x=[-7],
            w=[2.5],
            d=pa.array([Decimal("2.50")]),
            f=pa.array([2.5], pa.float32()),
            t=["a%b"],
            n=pa.array([None], pa.string()),
            nan=[NAN],
            zero=[0.0],
        )
        result = oracle(f"SELECT {expression} AS value FROM s [NOW]", {"s": rows})
        assert result.column("value").to_pylist() == [value]


class TestErrors:
    def test_unknown_stream(self) -> None:
        with pytest.raises(QueryError, match="unknown stream 'bid'\ndid you mean 'bids'"):
            oracle("SELECT * FROM bid [NOW]", {"bids": stream([1])})

    def test_an_error_of_duckdb_is_reported_with_the_statement(self) -> None:
        wide = pa.array([Decimal(1)], pa.decimal256(60, 0))
        with pytest.raises(BraidError, match=r"(?s)DuckDB cannot answer.*WITH"):
            oracle("SELECT x + 1 AS z FROM s [NOW]", {"s": stream([1], x=wide)})

    def test_unknown_column(self) -> None:
        with pytest.raises(QueryError, match="unknown column 'y'"):
            oracle("SELECT y + 1 AS z FROM s [NOW]", {"s": stream([1])})

    def test_without_duckdb(self, monkeypatch: pytest.MonkeyPatch) -> None:
        module = sys.modules["braid.testing.oracle"]
        module._database.cache_clear()
        monkeypatch.setitem(sys.modules, "duckdb", None)
        with pytest.raises(BraidError, match=r"pip install 'braid\[testing\]'"):
            oracle("SELECT * FROM s [NOW]", {"s": stream([1])})


@pytest.mark.parametrize(
    "text",
    [
        "SELECT id, Id FROM s [NOW]",
        "SELECT s.Id AS a, id FROM s [ROWS 1] WHERE s.Id > 1",
        "SELECT * FROM s [PARTITION BY Id ROWS 1] a, s [NOW] A WHERE a.Id = A.id",
        "SELECT a.Id, A.* FROM s [UNBOUNDED] a, S [UNBOUNDED] A WHERE a.id < A.X AND A.x = a.Id + 1",
        "SELECT abs(b.X) FROM S [NOW] B, s [NOW] c WHERE b.x = c.ID2",
    ],
)
def test_names_that_differ_only_in_case_mean_the_same_as_in_the_engine(text: str) -> None:
    times = pa.array([1, 1, 2], pa.timestamp("us"))
    streams = {
        "s": pa.table({"ts": times, "id": [1, 2, 3], "Id": [3, 2, 1], "Id2": [1, 2, 4]}),
        "S": pa.table({"ts": times, "x": [2, 3, 4]}),
    }
    expected = oracle(text, streams)
    assert expected.num_rows
    assert_same_rows(braid.run(text, streams), expected)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("SELECT ID FROM s [NOW]", "column 'ID'"),
        ("SELECT a.ID FROM s [NOW] a", "column 'ID'"),
        ("SELECT id FROM s [PARTITION BY ID ROWS 1]", "column 'ID'"),
        ("SELECT AB.id FROM s [NOW] ab, s [NOW] Ab", "'AB'"),
        ("SELECT 1 FROM T [NOW]", "T"),
    ],
)
def test_oracle_and_engine_refuse_ambiguous_names(text: str, problem: str) -> None:
    rows = pa.table({"ts": pa.array([1], pa.timestamp("us")), "id": [1], "Id": [2]})
    streams = {"s": rows, "tT": rows, "TT": rows}
    for answer in (oracle, braid.run):
        with pytest.raises(QueryError, match=problem):
            answer(text, streams)


@pytest.mark.parametrize(
    ("condition", "rows"),
    [
        ("s.x < 16777217", 2),
        ("16777217 > (s.x)", 2),
        ("s.x <= 0.1", 0),
        ("s.x BETWEEN 0.09 AND 0.1", 0),
        ("s.x IN (0.1, 16777217)", 0),
        ("s.x = s.y", 2),
    ],
)
@pytest.mark.parametrize("kind", [pa.float16(), pa.float32()], ids=str)
def test_floats_are_compared_with_other_numbers_in_double(condition: str, rows: int, kind: pa.DataType) -> None:
    largest = 16777216.0 if kind == pa.float32() else 2048.0
    values = pa.array(np.array([0.1001, largest], kind.to_pandas_dtype()))
    streams = {"s": stream([1, 1], x=values, y=values)}
    text = f"SELECT s.x FROM s [NOW] WHERE {condition}"
    assert oracle(text, streams).num_rows == braid.run(text, streams).num_rows == rows


@pytest.mark.parametrize("kind", [pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()], ids=str)
def test_differences_of_unsigned_numbers_may_be_negative(kind: pa.DataType) -> None:
    streams = {
        "a": stream([0, 0], k=pa.array([0, 4], kind), id=[1, 2]),
        "b": stream([0, 0], k=pa.array([1, 6], kind), id=[3, 4]),
    }
    text = "SELECT a.id AS x, b.id AS y FROM a [NOW], b [NOW] WHERE ABS(a.k - b.k) <= 2 AND a.k - b.k < 0"
    assert result_rows(text, **streams) == [(1, 3), (2, 4)]
    assert_same_rows(braid.run(text, streams), oracle(text, streams))


@pytest.mark.parametrize(
    "joins",
    [
        "a [NOW] JOIN b [NOW] JOIN c [NOW] ON b.k = c.k ON a.k = b.k",
        "(a [NOW] JOIN b [NOW] ON a.k = b.k) JOIN c [NOW] ON b.k = c.k",
        "a [NOW] JOIN (b [NOW] JOIN (c [NOW]) ON b.k = c.k) ON a.k = b.k",
    ],
)
def test_nested_joins(joins: str) -> None:
    streams = {
        "a": stream([0, 0], k=[1, 2], id=["a1", "a2"]),
        "b": stream([0, 0, 0], k=[1, 2, 3], id=["b1", "b2", "b3"]),
        "c": stream([0, 0], k=[2, 3], id=["c2", "c3"]),
    }
    text = f"SELECT a.id AS x, b.id AS y, c.id AS z FROM {joins}"
    assert result_rows(text, **streams) == [("a2", "b2", "c2")]
    everything = f"SELECT * FROM {joins}"
    assert_same_rows(braid.run(everything, streams), oracle(everything, streams))


def test_except_compares_whole_expressions() -> None:
    streams = {"a": stream([0, 0], x=[1, 2], y=[False, False]), "b": stream([0], z=[False])}
    text = "SELECT a.x = 1 OR a.y AS v FROM a [NOW] EXCEPT SELECT b.z FROM b [NOW]"
    assert result_rows(text, **streams) == [(True,)]
    assert_same_rows(braid.run(text, streams), oracle(text, streams))
