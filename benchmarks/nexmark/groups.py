"""The queries of Nexmark that group bids by short windows of time."""

from __future__ import annotations

from benchmarks.nexmark.query import Impossible, Query

_FINAL = "An average over all time is never final: here there is one for every ten seconds"
_HOP = "HOP(TABLE bid, DESCRIPTOR(dateTime), INTERVAL '2' SECOND, INTERVAL '10' SECOND)"
_HOP_EXPECTED = "bid, LATERAL (SELECT unnest(range(5)) AS hop)"
"""Each bid once for each of its five windows of ten seconds."""
_HOP_START = "time_bucket(INTERVAL 2 SECONDS, dateTime) - hop * INTERVAL 2 SECONDS"

QUERIES = (
    Query(
        "q4",
        "the average of the highest bids on the auctions of a category",
        """\
SELECT Q.category, AVG(Q.final) AS price, window.start AS starttime
FROM (
  SELECT MAX(B.price) AS final, A.category
  FROM auction [UNTIL expires] AS A, bid [NOW] AS B
  WHERE A.id = B.auction
  GROUP BY A.id, A.category, WINDOW(event_time, '10 seconds')
) [NOW] AS Q
GROUP BY Q.category, WINDOW(event_time, '10 seconds')""",
        """\
SELECT category, AVG(final), starttime
FROM (
  SELECT MAX(B.price) AS final, A.category, time_bucket(INTERVAL 10 SECONDS, B.dateTime) AS starttime
  FROM auction AS A, bid AS B
  WHERE A.id = B.auction AND B.dateTime >= A.dateTime AND B.dateTime < A.expires
  GROUP BY A.id, A.category, starttime
)
GROUP BY category, starttime""",
        """\
SELECT category, AVG(final) AS price, w.start AS starttime
FROM (
  SELECT MAX(price) AS final, category, WINDOW(dateTime, '10 seconds') AS w
  FROM (
    SELECT A.id, A.category, B.price, B.dateTime
    FROM auction AS A JOIN bid AS B ON A.id = B.auction AND B.dateTime >= A.dateTime AND B.dateTime < A.expires
      AND B.dateTime < A.dateTime + INTERVAL 1 MINUTE
  )
  GROUP BY id, category, WINDOW(dateTime, '10 seconds')
)
GROUP BY category, w""",
        f"`[UNTIL expires]` for `BETWEEN`, without the last microsecond. {_FINAL}",
        waits=True,
        on_spark_only=True,
    ),
    Query(
        "q5",
        "the auctions with the most bids in ten seconds, every two seconds",
        f"""\
SELECT AuctionBids.auction, AuctionBids.num
FROM (
  SELECT auction, COUNT(*) AS num, window_start AS starttime
  FROM {_HOP}
  GROUP BY auction, window_start, window_end
) [NOW] AS AuctionBids
JOIN (
  SELECT MAX(CountBids.num) AS maxn, CountBids.starttime
  FROM (
    SELECT COUNT(*) AS num, window_start AS starttime
    FROM {_HOP}
    GROUP BY auction, window_start, window_end
  ) [NOW] AS CountBids
  GROUP BY CountBids.starttime, WINDOW(event_time, '2 seconds')
) [NOW] AS MaxBids
ON AuctionBids.starttime = MaxBids.starttime AND AuctionBids.num >= MaxBids.maxn""",
        f"""\
WITH counts AS (
  SELECT auction, COUNT(*) AS num, {_HOP_START} AS starttime FROM {_HOP_EXPECTED} GROUP BY auction, starttime
)
SELECT auction, num FROM counts QUALIFY num = MAX(num) OVER (PARTITION BY starttime)""",
        """\
SELECT AuctionBids.auction, AuctionBids.num
FROM (
  SELECT auction, COUNT(*) AS num, WINDOW(dateTime, '10 seconds', '2 seconds') AS w
  FROM bid GROUP BY auction, WINDOW(dateTime, '10 seconds', '2 seconds')
) AS AuctionBids
JOIN (
  SELECT MAX(num) AS maxn, w
  FROM (
    SELECT COUNT(*) AS num, WINDOW(dateTime, '10 seconds', '2 seconds') AS w
    FROM bid GROUP BY auction, WINDOW(dateTime, '10 seconds', '2 seconds')
  )
  GROUP BY w
) AS MaxBids
ON AuctionBids.w = MaxBids.w AND AuctionBids.num >= MaxBids.maxn""",
        "`[NOW]` after each SELECT: all counts of a window have the same event time. Their maximum is taken in the "
        "group of the two seconds in which the window ends",
        waits=True,
        on_spark_only=True,
    ),
    Impossible(
        "q6",
        "the average price of the last ten auctions of each seller",
        """\
WITH winning AS (
  SELECT A.id, A.seller, B.price
  FROM auction [UNTIL expires] AS A
  JOIN bid [RANGE 1 MINUTE] AS B ON A.id = B.auction AND B.dateTime >= A.dateTime
  LEFT ANTI JOIN bid [RANGE 1 MINUTE] AS C ON C.auction = A.id AND C.dateTime >= A.dateTime AND C.price > B.price
)
SELECT W.seller, W.id, AVG(L.price) AS price
FROM winning [NOW] AS W, winning [PARTITION BY seller ROWS 10] AS L
WHERE W.seller = L.seller
GROUP BY W.seller, W.id, WINDOW(event_time, '10 seconds')""",
        "A window that counts rows cannot read a SELECT whose results have to wait. Write q9 to files, and read these "
        "as a stream `[PARTITION BY seller ROWS 10]`. Flink refuses q6 too",
    ),
    Query(
        "q7",
        "the highest bids of every ten seconds",
        """\
SELECT B.auction, B.bidder, B.price, B.dateTime, B.extra
FROM bid [TUMBLE 10 SECONDS] AS B
JOIN (
  SELECT MAX(price) AS maxprice
  FROM TUMBLE(TABLE bid, DESCRIPTOR(dateTime), INTERVAL '10' SECOND)
  GROUP BY window_start, window_end
) [NOW] AS M
ON B.price = M.maxprice""",
        """\
SELECT auction, bidder, price, dateTime, extra FROM bid
QUALIFY price = MAX(price) OVER (PARTITION BY time_bucket(INTERVAL 10 SECONDS, dateTime))""",
        """\
SELECT B.auction, B.bidder, B.price, TIMESTAMP_MICROS(B.us) AS dateTime, B.extra
FROM (
  SELECT auction, bidder, price, UNIX_MICROS(dateTime) AS us, extra, WINDOW(dateTime, '10 seconds') AS w FROM bid
) AS B
JOIN (
  SELECT MAX(price) AS maxprice, WINDOW(dateTime, '10 seconds') AS w
  FROM bid GROUP BY WINDOW(dateTime, '10 seconds')
) AS M
ON B.price = M.maxprice AND B.w = M.w""",
        "`[TUMBLE 10 SECONDS]` for `BETWEEN`: a bid lives to the end of its ten seconds, when the maximum is known",
        waits=True,
        on_spark_only=True,
    ),
    Query(
        "q11",
        "the bids of each bidder in each session",
        """\
SELECT bidder, COUNT(*) AS bid_count, session_window.start AS starttime, session_window.end AS endtime
FROM bid [NOW]
GROUP BY bidder, SESSION_WINDOW(event_time, '10 seconds')""",
        """\
SELECT bidder, COUNT(*), MIN(dateTime) AS starttime, MAX(dateTime) + INTERVAL 10 SECONDS AS endtime
FROM (
  SELECT bidder, dateTime, SUM(begins) OVER (PARTITION BY bidder ORDER BY dateTime) AS session
  FROM (
    SELECT bidder, dateTime,
      CASE WHEN dateTime < LAG(dateTime) OVER (PARTITION BY bidder ORDER BY dateTime) + INTERVAL 10 SECONDS
        THEN 0 ELSE 1 END AS begins
    FROM bid
  )
) GROUP BY bidder, session""",
        """\
SELECT bidder, bid_count, w.start AS starttime, w.end AS endtime
FROM (
  SELECT bidder, COUNT(*) AS bid_count, SESSION_WINDOW(dateTime, '10 seconds') AS w
  FROM bid GROUP BY bidder, SESSION_WINDOW(dateTime, '10 seconds')
)""",
        "Spark's `SESSION_WINDOW` for Flink's `SESSION`",
        waits=True,
        on_spark_only=True,
    ),
    Query(
        "q12",
        "the bids of each bidder in every ten seconds",
        """\
SELECT bidder, COUNT(*) AS bid_count, window_start AS starttime, window_end AS endtime
FROM TUMBLE(TABLE bid, DESCRIPTOR(dateTime), INTERVAL '10' SECOND)
GROUP BY bidder, window_start, window_end""",
        """\
SELECT bidder, COUNT(*), time_bucket(INTERVAL 10 SECONDS, dateTime) AS starttime, starttime + INTERVAL 10 SECONDS
FROM bid GROUP BY bidder, starttime""",
        """\
SELECT bidder, bid_count, w.start AS starttime, w.end AS endtime
FROM (
  SELECT bidder, COUNT(*) AS bid_count, WINDOW(dateTime, '10 seconds') AS w
  FROM bid GROUP BY bidder, WINDOW(dateTime, '10 seconds')
)""",
        "event time for processing time: no result depends on the clock",
        waits=True,
    ),
)
