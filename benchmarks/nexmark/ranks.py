"""The queries of Nexmark that count the bids of a day, and those that rank bids."""

from __future__ import annotations

from benchmarks.nexmark.query import Query

_RANKS = {
    "total": "",
    "rank1": " FILTER (WHERE price < 10000)",
    "rank2": " FILTER (WHERE price >= 10000 AND price < 1000000)",
    "rank3": " FILTER (WHERE price >= 1000000)",
}
"""The levels of prices that q15 and q16 count."""

_DAY = "The groups of a day are complete when the day is over: `WINDOW(event_time, '1 day')` says so"
_DIFFERENT = f"{_DAY}. Spark refuses `COUNT(DISTINCT ..)` on streams: its text has `SIZE(COLLECT_SET(..))`"


def _counts(different: str) -> str:
    """The counts of q15 and q16, given how a system counts different values."""
    counts = [f"COUNT(*){level} AS {rank}_bids" for rank, level in _RANKS.items()]
    for column in ("bidder", "auction"):
        for rank, level in _RANKS.items():
            counts.append(f"{different.format(column=column, level=level)} AS {rank}_{column}s")
    return ",\n  ".join(counts)


_COUNTS = _counts("COUNT(DISTINCT {column}){level}")
_SPARK = _counts("SIZE(COLLECT_SET({column}){level})")

QUERIES = (
    Query(
        "q15",
        "bids, different bidders and different auctions by level of price, each day",
        f"""\
SELECT DATE_FORMAT(window.start, 'yyyy-MM-dd') AS day,
  {_COUNTS}
FROM bid [NOW]
GROUP BY WINDOW(event_time, '1 day')""",
        f"""\
SELECT strftime(dateTime, '%Y-%m-%d') AS "day",
  {_COUNTS}
FROM bid GROUP BY "day\"""",
        f"""\
SELECT DATE_FORMAT(w.start, 'yyyy-MM-dd') AS day, * EXCEPT (w)
FROM (
  SELECT WINDOW(dateTime, '1 day') AS w,
  {_SPARK}
  FROM bid GROUP BY WINDOW(dateTime, '1 day')
)""",
        _DIFFERENT,
        waits=True,
        on_spark_only=True,
    ),
    Query(
        "q16",
        "the same for each channel",
        f"""\
SELECT channel, DATE_FORMAT(window.start, 'yyyy-MM-dd') AS day,
  MAX(DATE_FORMAT(dateTime, 'HH:mm')) AS minute,
  {_COUNTS}
FROM bid [NOW]
GROUP BY channel, WINDOW(event_time, '1 day')""",
        f"""\
SELECT channel, strftime(dateTime, '%Y-%m-%d') AS "day", MAX(strftime(dateTime, '%H:%M')),
  {_COUNTS}
FROM bid GROUP BY channel, "day\"""",
        f"""\
SELECT channel, DATE_FORMAT(w.start, 'yyyy-MM-dd') AS day, * EXCEPT (channel, w)
FROM (
  SELECT channel, WINDOW(dateTime, '1 day') AS w, MAX(DATE_FORMAT(dateTime, 'HH:mm')) AS minute,
  {_SPARK}
  FROM bid GROUP BY channel, WINDOW(dateTime, '1 day')
)""",
        _DIFFERENT,
        waits=True,
        on_spark_only=True,
    ),
    Query(
        "q17",
        "the bids on each auction in a day",
        """\
SELECT auction, DATE_FORMAT(window.start, 'yyyy-MM-dd') AS day,
  COUNT(*) AS total_bids,
  COUNT(*) FILTER (WHERE price < 10000) AS rank1_bids,
  COUNT(*) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_bids,
  COUNT(*) FILTER (WHERE price >= 1000000) AS rank3_bids,
  MIN(price) AS min_price, MAX(price) AS max_price, AVG(price) AS avg_price, SUM(price) AS sum_price
FROM bid [NOW]
GROUP BY auction, WINDOW(event_time, '1 day')""",
        """\
SELECT auction, strftime(dateTime, '%Y-%m-%d') AS "day", COUNT(*), COUNT(*) FILTER (price < 10000),
  COUNT(*) FILTER (price >= 10000 AND price < 1000000), COUNT(*) FILTER (price >= 1000000),
  MIN(price), MAX(price), AVG(price), SUM(price)::BIGINT
FROM bid GROUP BY auction, "day\"""",
        """\
SELECT auction, DATE_FORMAT(w.start, 'yyyy-MM-dd') AS day, total_bids, rank1_bids, rank2_bids, rank3_bids,
  min_price, max_price, avg_price, sum_price
FROM (
  SELECT auction, WINDOW(dateTime, '1 day') AS w, COUNT(*) AS total_bids,
    COUNT(*) FILTER (WHERE price < 10000) AS rank1_bids,
    COUNT(*) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_bids,
    COUNT(*) FILTER (WHERE price >= 1000000) AS rank3_bids,
    MIN(price) AS min_price, MAX(price) AS max_price, AVG(price) AS avg_price, SUM(price) AS sum_price
  FROM bid GROUP BY auction, WINDOW(dateTime, '1 day')
)""",
        _DAY,
        waits=True,
        on_spark_only=True,
    ),
    Query(
        "q18",
        "the last bid of each bidder on each auction",
        """\
SELECT auction, bidder, price, channel, url, dateTime, extra
FROM (
  SELECT *, ROW_NUMBER() OVER (
    PARTITION BY window_start, window_end, bidder, auction ORDER BY dateTime DESC) AS rank_number
  FROM TUMBLE(TABLE bid, DESCRIPTOR(dateTime), INTERVAL '10' SECOND)
)
WHERE rank_number <= 1""",
        """\
SELECT auction, bidder, price, channel, url, dateTime, extra FROM bid
QUALIFY ROW_NUMBER() OVER (
  PARTITION BY time_bucket(INTERVAL 10 SECONDS, dateTime), bidder, auction ORDER BY dateTime DESC) <= 1""",
        """\
SELECT auction, bidder, last.*
FROM (
  SELECT auction, bidder, WINDOW(dateTime, '10 seconds') AS w,
    MAX_BY(STRUCT(price, channel, url, TIMESTAMP_MICROS(UNIX_MICROS(dateTime)) AS dateTime, extra), dateTime) AS last
  FROM bid GROUP BY auction, bidder, WINDOW(dateTime, '10 seconds')
)""",
        "`window_start, window_end` in `PARTITION BY`. A later bid may always come: here it is the last of ten seconds",
        waits=True,
    ),
    Query(
        "q19",
        "the ten highest bids on each auction",
        """\
SELECT auction, bidder, price, channel, url, dateTime, extra, rank_number
FROM (
  SELECT *, ROW_NUMBER() OVER (
    PARTITION BY window_start, window_end, auction ORDER BY price DESC, dateTime) AS rank_number
  FROM TUMBLE(TABLE bid, DESCRIPTOR(dateTime), INTERVAL '10' SECOND)
)
WHERE rank_number <= 10""",
        """\
SELECT *, ROW_NUMBER() OVER (
  PARTITION BY time_bucket(INTERVAL 10 SECONDS, dateTime), auction ORDER BY price DESC, dateTime) AS rank_number
FROM bid QUALIFY rank_number <= 10""",
        """\
SELECT * FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY w, auction ORDER BY price DESC, dateTime) AS rank_number
  FROM (SELECT *, WINDOW(dateTime, '10 seconds') AS w FROM bid)
)
WHERE rank_number <= 10""",
        "`window_start, window_end` in `PARTITION BY`, and the earlier of two equal bids first. A higher bid may "
        "always come: here they are the highest of ten seconds",
        waits=True,
    ),
)
