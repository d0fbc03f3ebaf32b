"""The queries of Nexmark that look at one bid at a time: filters, projections, a table beside the stream."""

from __future__ import annotations

from benchmarks.nexmark.query import Query

_WINDOW = "`[NOW]` after the stream: single rows need no state"

_TIME_OF_DAY = """\
  CASE
    WHEN HOUR(dateTime) >= 8 AND HOUR(dateTime) <= 18 THEN 'dayTime'
    WHEN HOUR(dateTime) <= 6 OR HOUR(dateTime) >= 20 THEN 'nightTime'
    ELSE 'otherTime'
  END AS bidTimeType"""

_CHANNEL_ID = "REGEXP_EXTRACT(url, '(&|^)channel_id=([^&]*)', 2)"
_CHANNEL = f"""\
SELECT auction, bidder, price, channel,
  CASE
    WHEN LOWER(channel) = 'apple' THEN '0'
    WHEN LOWER(channel) = 'google' THEN '1'
    WHEN LOWER(channel) = 'facebook' THEN '2'
    WHEN LOWER(channel) = 'baidu' THEN '3'
    ELSE {_CHANNEL_ID}
  END AS channel_id
FROM {{bid}}
WHERE {_CHANNEL_ID} <> '' OR LOWER(channel) IN ('apple', 'google', 'facebook', 'baidu')"""

_CALCULATION = f"""\
SELECT auction, bidder, 0.908 * price AS price,
{_TIME_OF_DAY},
  dateTime, extra, {{count}} AS c_counts
FROM {{bid}}
WHERE 0.908 * price > 1000000 AND 0.908 * price < 50000000"""

_SIDE_INPUT = """\
SELECT B.auction, B.bidder, B.price, B.dateTime, S.value
FROM {bid} AS B JOIN side_input AS S ON B.auction % 10000 = S.key"""


def _of_rows(name: str, asks: str, text: str, rewritten: str = _WINDOW) -> Query:
    """A query that has the same text for all systems, except for the window of the stream, `{bid}` in the text."""
    return Query(name, asks, text.format(bid="bid [NOW]"), text.format(bid="bid"), text.format(bid="bid"), rewritten)


QUERIES = (
    _of_rows("q0", "all bids, unchanged", "SELECT auction, bidder, price, dateTime, extra FROM {bid}"),
    _of_rows(
        "q1",
        "prices in another currency",
        "SELECT auction, bidder, 0.908 * price AS price, dateTime, extra FROM {bid}",
    ),
    _of_rows("q2", "bids on some auctions", "SELECT auction, price FROM {bid} WHERE auction % 123 = 0"),
    Query(
        "q10",
        "all bids, with the day and the minute by which they are stored",
        """\
SELECT auction, bidder, price, dateTime, extra,
  DATE_FORMAT(dateTime, 'yyyy-MM-dd') AS dt, DATE_FORMAT(dateTime, 'HH:mm') AS hm
FROM bid [NOW]""",
        "SELECT auction, bidder, price, dateTime, extra, strftime(dateTime, '%Y-%m-%d'), strftime(dateTime, '%H:%M') "
        "FROM bid",
        "SELECT auction, bidder, price, dateTime, extra, DATE_FORMAT(dateTime, 'yyyy-MM-dd') AS dt, "
        "DATE_FORMAT(dateTime, 'HH:mm') AS hm FROM bid",
        f"{_WINDOW}. The sink divides the files: `writeStream.partitionBy('dt', 'hm')`",
        on_spark_only=True,
    ),
    _of_rows(
        "q13",
        "bids with a value from a table",
        _SIDE_INPUT,
        "`FOR SYSTEM_TIME AS OF` a processing time is left out: a row meets the table as it is when the row is read",
    ),
    Query(
        "q14",
        "bids of some prices, with the time of day and a user's function",
        _CALCULATION.format(bid="bid [NOW]", count="count_char(extra, 'c')"),
        _CALCULATION.format(bid="bid", count="LENGTH(extra) - LENGTH(REPLACE(extra, 'c', ''))"),
        _CALCULATION.format(bid="bid", count="count_char(extra, 'c')"),
        f"{_WINDOW}. `count_char` is registered in Spark",
        on_spark_only=True,
    ),
    Query(
        "q21",
        "bids with the number of their channel",
        _CHANNEL.format(bid="bid [NOW]"),
        _CHANNEL.format(bid="bid"),
        _CHANNEL.format(bid="bid"),
        f"{_WINDOW}. Spark's `REGEXP_EXTRACT` gives an empty text where Flink's gives null: `<> ''` for `IS NOT NULL`",
        on_spark_only=True,
    ),
    Query(
        "q22",
        "the directories of the address of a bid",
        """\
SELECT auction, bidder, price, channel,
  SPLIT(url, '/')[3] AS dir1, SPLIT(url, '/')[4] AS dir2, SPLIT(url, '/')[5] AS dir3
FROM bid [NOW]""",
        "SELECT auction, bidder, price, channel, split_part(url, '/', 4), split_part(url, '/', 5), "
        "split_part(url, '/', 6) FROM bid",
        "SELECT auction, bidder, price, channel, SPLIT(url, '/')[3] AS dir1, SPLIT(url, '/')[4] AS dir2, "
        "SPLIT(url, '/')[5] AS dir3 FROM bid",
        f"{_WINDOW}. `SPLIT(url, '/')[3]` for Flink's `SPLIT_INDEX(url, '/', 3)`",
        on_spark_only=True,
    ),
)
