"""The queries of Nexmark that join persons, auctions and bids."""

from __future__ import annotations

from benchmarks.nexmark.query import Query

_FOREVER = "`[UNBOUNDED]` after each stream says what the public text means: rows are kept forever"

_ITEM = """\
SELECT P.name, P.city, P.state, A.id
FROM {auction} AS A INNER JOIN {person} AS P ON A.seller = P.id
WHERE A.category = 10 AND (P.state = 'OR' OR P.state = 'ID' OR P.state = 'CA')"""

_EXPAND = """\
SELECT B.auction, B.bidder, B.price, B.channel, B.url, {bid_time} AS bid_dateTime, B.extra AS bid_extra,
  A.itemName, A.description, A.initialBid, A.reserve, {auction_time} AS auction_dateTime, A.expires, A.seller,
  A.category, A.extra AS auction_extra
FROM {bid} AS B INNER JOIN {auction} AS A ON B.auction = A.id
WHERE A.category = 10"""

_SELLING_BIDDERS = """\
SELECT B.bidder, B.price, B.channel, B.url, B.extra AS bid_extra,
  P.id AS person_id, P.name, P.emailAddress, P.creditCard, P.city, P.state, P.extra AS person_extra,
  A.itemName, A.description, A.initialBid, A.reserve, {auction_time} AS auction_dateTime, A.expires, A.seller,
  A.category, A.extra AS auction_extra
FROM {bid} AS B JOIN {person} AS P ON P.id = B.bidder JOIN {auction} AS A ON A.seller = B.bidder"""

_WINNING = "A.*, B.auction, B.bidder, B.price, B.dateTime AS bid_dateTime, B.extra AS bid_extra"


def _regular(name: str, asks: str, text: str) -> Query:
    """A join without windows; `{bid}` and the others are its streams."""
    streams = ("person", "auction", "bid")
    unbounded = {stream: f"{stream} [UNBOUNDED]" for stream in streams}
    plain = {stream: stream for stream in streams}
    times = {"bid_time": "B.dateTime", "auction_time": "A.dateTime"}
    # One event time at most may be left after a join of Spark's.
    stamps = {name: f"TIMESTAMP_MICROS(UNIX_MICROS({time}))" for name, time in times.items()}
    return Query(
        name,
        asks,
        text.format(**unbounded, **times),
        text.format(**plain, **times),
        text.format(**plain, **stamps),
        _FOREVER,
    )


QUERIES = (
    _regular("q3", "who sells in three states in a category", _ITEM),
    Query(
        "q8",
        "new people who opened an auction in the same ten seconds",
        """\
SELECT P.id, P.name, P.window_start AS starttime
FROM TUMBLE(TABLE person, DESCRIPTOR(dateTime), INTERVAL '10' SECOND) AS P
LEFT SEMI JOIN TUMBLE(TABLE auction, DESCRIPTOR(dateTime), INTERVAL '10' SECOND) AS A
  ON P.id = A.seller AND P.window_start = A.window_start AND P.window_end = A.window_end""",
        """\
SELECT P.id, P.name, time_bucket(INTERVAL 10 SECONDS, P.dateTime) AS starttime
FROM person AS P SEMI JOIN auction AS A
  ON P.id = A.seller AND time_bucket(INTERVAL 10 SECONDS, P.dateTime) = time_bucket(INTERVAL 10 SECONDS, A.dateTime)""",
        """\
SELECT P.id, P.name, P.w.start AS starttime
FROM (SELECT id, name, WINDOW(dateTime, '10 seconds') AS w FROM person) AS P
LEFT SEMI JOIN (SELECT seller, WINDOW(dateTime, '10 seconds') AS w FROM auction) AS A
  ON P.id = A.seller AND P.w = A.w""",
        "a semi join for the groups on both sides: it gives each person once, as soon as an auction comes",
        waits=True,
    ),
    Query(
        "q9",
        "the winning bid of each auction",
        f"""\
SELECT {_WINNING}
FROM auction [UNTIL expires] AS A
JOIN bid [RANGE 1 MINUTE] AS B ON A.id = B.auction AND B.dateTime >= A.dateTime
LEFT ANTI JOIN bid [RANGE 1 MINUTE] AS C ON C.auction = A.id AND C.dateTime >= A.dateTime
  AND (C.price > B.price OR (C.price = B.price AND C.dateTime < B.dateTime))""",
        f"""\
SELECT {_WINNING}
FROM auction AS A JOIN bid AS B ON A.id = B.auction AND B.dateTime >= A.dateTime AND B.dateTime < A.expires
QUALIFY ROW_NUMBER() OVER (PARTITION BY A.id ORDER BY B.price DESC, B.dateTime) = 1""",
        """\
SELECT A.id, B.auction, B.price
FROM auction AS A JOIN bid AS B ON A.id = B.auction AND B.dateTime >= A.dateTime AND B.dateTime < A.expires
LEFT ANTI JOIN bid AS C ON C.auction = A.id AND C.dateTime >= A.dateTime AND C.dateTime < A.expires
  AND (C.price > B.price OR (C.price = B.price AND C.dateTime < B.dateTime))""",
        "`[UNTIL expires]` for `BETWEEN`, without the last microsecond. The best bid is the one that no bid beats: "
        "it is known when the auction ends, and never taken back. Bids live longer than auctions",
        waits=True,
    ),
    _regular("q20", "bids with their auction, of one category", _EXPAND),
    _regular("q23", "bids of people who sell something too, with both", _SELLING_BIDDERS),
)
