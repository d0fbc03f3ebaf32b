"""Joins of four and five streams over Nexmark's rows, whose rates change while they run.

There are many new persons and few new auctions, then few new persons and many new auctions, and so on. Bids refer to
the last hundred of each. So where few are new, most of those that bids refer to are no longer alive, and it is best to
look there first.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from benchmarks.nexmark.query import Query
from braid.workloads.nexmark import SECOND, Nexmark

RATE = 10_000
PHASES = ((25, 1, 474), (1, 25, 474))
"""Persons, auctions and bids of 500 rows."""
SECONDS = 1
"""The length of all windows."""


@dataclass(frozen=True)
class MultiwayJoin:
    """A join by its conditions; `streams` maps aliases to streams, in the order of the text."""

    name: str
    asks: str
    streams: dict[str, str]
    conditions: tuple[str, ...]
    keys: tuple[str, ...]
    """The columns of a result."""

    @property
    def query(self) -> Query:
        return Query(self.name, self.asks, self.text, self.expected, self.spark)

    @property
    def text(self) -> str:
        streams = ", ".join(f"{stream} [RANGE {SECONDS} SECONDS] AS {alias}" for alias, stream in self.streams.items())
        return f"SELECT {self._selected}\nFROM {streams}\nWHERE {' AND '.join(self.conditions)}"

    @property
    def expected(self) -> str:
        """The same join over whole tables, in SQL."""
        times = ", ".join(f"{alias}.dateTime" for alias in self.streams)
        streams = ", ".join(f"{stream} AS {alias}" for alias, stream in self.streams.items())
        overlap = f"greatest({times}) < least({times}) + INTERVAL {SECONDS} SECONDS"
        return f"SELECT {self._selected} FROM {streams} WHERE {' AND '.join(self.conditions)} AND {overlap}"

    @property
    def spark(self) -> str:
        """A chain of Spark's joins in the order of the text.

        Columns are called `A_id` for `A.id`. One event time may be left after a join: that of the first stream. The
        other times become numbers, which later joins compare.
        """
        first, *others = self.streams
        chain, times = self._renamed(first), []
        for alias in others:
            window = f"INTERVAL {SECONDS} SECONDS"
            time = f"{alias}_dateTime"
            near = f"{time} > {first}_dateTime - {window} AND {time} < {first}_dateTime + {window}"
            apart = [f"abs(unix_micros({time}) - {other}) < {SECONDS * SECOND}" for other in times]
            on = [_flat(condition) for condition in self.conditions if self._joins(condition, alias)]
            joined = f"({chain}) JOIN ({self._renamed(alias)}) ON {' AND '.join([*on, near, *apart])}"
            chain = f"SELECT * EXCEPT ({time}), unix_micros({time}) AS {alias}_us FROM {joined}"
            times.append(f"{alias}_us")
        return f"SELECT {', '.join(_flat(key) for key in self.keys)} FROM ({chain})"

    def _renamed(self, alias: str) -> str:
        """A stream with the columns that the join reads, each called by its alias."""
        read = re.findall(rf"\b{alias}\.(\w+)", " ".join([*self.conditions, *self.keys, f"{alias}.dateTime"]))
        columns = ", ".join(f"{column} AS {alias}_{column}" for column in dict.fromkeys(read))
        return f"SELECT {columns} FROM {self.streams[alias]}"

    def _joins(self, condition: str, alias: str) -> bool:
        """Whether a chain checks a condition when it joins `alias`: the last stream that the condition reads."""
        order = list(self.streams)
        return alias == max(re.findall(r"\b(\w)\.", condition), key=order.index)

    @property
    def _selected(self) -> str:
        return ", ".join(f"{key} AS {_flat(key)}" for key in self.keys)


def _flat(text: str) -> str:
    return re.sub(r"\b(\w)\.(\w+)", r"\1_\2", text)


_SELLER = ("B.auction = A.id", "A.seller = S.id")
_FOUR = {"B": "bid", "A": "auction", "S": "person", "W": "person"}
_KEYS = ("A.id", "S.id", "W.id", "B.price", "B.dateTime")

JOINS = (
    MultiwayJoin(
        "j1", "bids with their auction, its seller and the bidder", _FOUR, (*_SELLER, "B.bidder = W.id"), _KEYS
    ),
    MultiwayJoin(
        "j2",
        "the same, where seller and bidder live in the same state",
        _FOUR,
        (*_SELLER, "S.state = W.state", "B.bidder = W.id"),
        _KEYS,
    ),
    MultiwayJoin(
        "j3",
        "the same, where the bidder sells something too",
        {**_FOUR, "O": "auction"},
        (*_SELLER, "S.state = W.state", "B.bidder = W.id", "O.seller = W.id"),
        (*_KEYS, "O.id"),
    ),
    MultiwayJoin(
        "j4",
        "bids with other offers of the seller in the same category, and the bidder",
        {"B": "bid", "A": "auction", "S": "person", "O": "auction", "W": "person"},
        (*_SELLER, "O.seller = S.id", "O.category = A.category", "A.category = 10", "O.id <> A.id", "B.bidder = W.id"),
        (*_KEYS, "O.id"),
    ),
)


def shifting(rows: int, phase_batches: int) -> Nexmark:
    """The rows of all streams, `rows` in a batch; the rates change every `phase_batches` batches."""
    return Nexmark(RATE, rows, phases=PHASES, phase_batches=phase_batches)
