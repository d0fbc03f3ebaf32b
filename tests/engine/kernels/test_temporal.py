"""Functions and arithmetic of dates, timestamps and durations, value by value, with the meaning of Spark."""

from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from tests.engine.kernels.conftest import LEAP, assert_values


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("YEAR(ts)", [2024, 1969, None, 2024]),
        ("MONTH(day)", [1, 12, None, 2]),
        ("DAY(tz)", [31, 31, None, 29]),
        ("HOUR(tz)", [12, 23, None, 0]),
        ("MINUTE(ts)", [34, 59, None, 0]),
        ("SECOND(ts)", [56, 59, None, 0]),
        ("QUARTER(ts)", [1, 4, None, 1]),
        ("DAYOFWEEK(ts)", [4, 4, None, 5]),
        ("DAYOFYEAR(day)", [31, 365, None, 60]),
        ("WEEKOFYEAR(day)", [5, 1, None, 9]),
        ("EXTRACT(SECOND FROM ts)", [Decimal("56.789012"), Decimal("59.500000"), None, Decimal("0.000000")]),
        ("DATE_TRUNC('month', ts)", [datetime(2024, 1, 1), datetime(1969, 12, 1), None, datetime(2024, 2, 1)]),
        ("DATE_TRUNC('week', day)", [datetime(2024, 1, 29), datetime(1969, 12, 29), None, datetime(2024, 2, 26)]),
        ("DATE_TRUNC('HOUR', ts)", [datetime(2024, 1, 31, 12), datetime(1969, 12, 31, 23), None, LEAP]),
        ("UNIX_SECONDS(ts)", [1706704496, -1, None, 1709164800]),
        ("UNIX_MILLIS(tz)", [1706704496789, -500, None, 1709164800000]),
        ("UNIX_TIMESTAMP(ts)", [1706704496, 0, None, 1709164800]),
        ("UNIX_TIMESTAMP(COALESCE(ts, tz))", [1706704496, 0, None, 1709164800]),
        ("UNIX_TIMESTAMP(ts - INTERVAL 1 SECOND)", [1706704495, -1, None, 1709164799]),
        ("INTERVAL 1 DAY * l", [None, None, None, timedelta(days=5)]),
        ("j * INTERVAL 1 SECOND", [timedelta(seconds=count) for count in (2, 3, 0, -1)]),
        ("INTERVAL 1 DAY * 1e300", [None] * 4),
        (
            "ts - day",
            [timedelta(hours=12, minutes=34, seconds=56.789012), timedelta(seconds=86399.5), None, timedelta(0)],
        ),
        ("ts - tz", [timedelta(0), timedelta(0), None, timedelta(0)]),
        (
            "ts + INTERVAL 1 DAY",
            [
                datetime(2024, 2, 1, 12, 34, 56, 789012),
                datetime(1970, 1, 1, 23, 59, 59, 500000),
                None,
                datetime(2024, 3, 1),
            ],
        ),
        (
            "ts - INTERVAL '0.5' SECOND",
            [
                datetime(2024, 1, 31, 12, 34, 56, 289012),
                datetime(1969, 12, 31, 23, 59, 59),
                None,
                datetime(2024, 2, 28, 23, 59, 59, 500000),
            ],
        ),
        ("day + 1", [date(2024, 2, 1), date(1970, 1, 1), None, date(2024, 3, 1)]),
        ("day - j", [date(2024, 1, 29), date(1969, 12, 28), None, date(2024, 3, 1)]),
        ("day + INTERVAL 1 DAY", [date(2024, 2, 1), date(1970, 1, 1), None, date(2024, 3, 1)]),
        (
            "INTERVAL 1 HOUR + day",
            [datetime(2024, 1, 31, 1), datetime(1969, 12, 31, 1), None, datetime(2024, 2, 29, 1)],
        ),
        ("INTERVAL 1 HOUR * j", [timedelta(hours=2), timedelta(hours=3), timedelta(0), timedelta(hours=-1)]),
        ("INTERVAL 1 HOUR / j", [timedelta(minutes=30), timedelta(minutes=20), None, timedelta(hours=-1)]),
        ("INTERVAL 1 HOUR * 1.5e0", [timedelta(minutes=90)] * 4),
        ("1.5 * INTERVAL 1 HOUR", [timedelta(minutes=90)] * 4),
        ("-du", [timedelta(0), timedelta(microseconds=1), None, timedelta(microseconds=-1000)]),
        ("ABS(INTERVAL -5 SECONDS)", [timedelta(seconds=5)] * 4),
    ],
)
def test_dates_timestamps_and_durations(text: str, expected: list[Any]) -> None:
    assert_values(text, expected)
