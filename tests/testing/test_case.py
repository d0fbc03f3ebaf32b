"""Cases: which rows are late, and whether the repr of a case makes the same case."""

from decimal import Decimal

import pyarrow as pa
import pytest

from braid.testing import Case, assert_same_rows, random_case, without_late_rows


def case(times: list[int | None], lateness: int, batch_rows: int | None, unit: str = "us") -> Case:
    rows = pa.table({"ts": pa.array(times, pa.timestamp(unit)), "id": list(range(len(times)))})
    return Case("SELECT id FROM s [NOW]", {"s": rows}, {"s": "ts"}, {"s": lateness}, None, batch_rows)


def ids_in_time(times: list[int | None], lateness: int, batch_rows: int | None, unit: str = "us") -> list[int]:
    ids: list[int] = without_late_rows(case(times, lateness, batch_rows, unit))["s"].column("id").to_pylist()
    return ids


class TestLateRows:
    def test_nothing_is_late_in_a_single_batch(self) -> None:
        assert ids_in_time([5, 1, 0], 0, None) == [0, 1, 2]

    def test_one_row_at_a_time(self) -> None:
        assert ids_in_time([5, 4, 3, 5, 9, 7], 1, 1) == [0, 1, 3, 4]

    def test_a_row_exactly_the_lateness_behind_is_in_time(self) -> None:
        assert ids_in_time([5, 3, 2], 2, 1) == [0, 1]

    def test_rows_of_one_batch_are_not_late_against_each_other(self) -> None:
        assert ids_in_time([5, 0, 4, 5], 0, 2) == [0, 1, 3]

    def test_rows_without_a_time_are_never_late_and_make_no_row_late(self) -> None:
        assert ids_in_time([None, 5, None, 4], 0, 1) == [0, 1, 2]

    def test_nanoseconds_are_rounded_down_before_the_comparison(self) -> None:
        assert ids_in_time([5_999, 5_000, 4_999], 0, 1, "ns") == [0, 1]

    def test_no_rows(self) -> None:
        assert ids_in_time([], 0, 3) == []


@pytest.mark.parametrize("seed", range(40))
def test_the_repr_makes_the_same_case(seed: int) -> None:
    original = random_case(seed)
    names = {"Case": Case, "pa": pa, "Decimal": Decimal}
    copy = eval(repr(original), names)
    assert (copy.text, copy.options) == (original.text, original.options)
    for name, rows in original.streams.items():
        assert copy.streams[name].schema.equals(rows.schema)
        assert_same_rows(copy.streams[name], rows)


def test_options_are_the_arguments_of_run() -> None:
    assert case([], 1_500_000, 3).options == {
        "time": {"s": "ts"},
        "lateness": {"s": "1500 MILLISECONDS"},
        "plan": None,
        "batch_rows": 3,
    }
