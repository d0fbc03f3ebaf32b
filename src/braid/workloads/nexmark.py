"""Nexmark: an auction site. Of fifty rows, one is a person, three are auctions and forty-six are bids.

The rows follow Nexmark's generator. Ids count up. Three of four auctions are of the hot seller, half of the bids go to
the hot auction, and 99 of 100 come from the hot bidder: every hundred ids another one is hot. The others are drawn from
the people and auctions of late, and from a few that are still to come. `benchmarks.nexmark` adds the other columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Ids = NDArray[np.int64]

QUERIES = {
    "3-way": """\
SELECT P.id AS person, A.id AS auction, B.row AS bid
FROM persons [RANGE 60 SECONDS] AS P, auctions [RANGE 20 SECONDS] AS A, bids [RANGE 10 SECONDS] AS B
WHERE A.seller = P.id AND B.auction = A.id""",
    "4-way": """\
SELECT S.id AS seller, A.id AS auction, B.row AS bid, W.id AS bidder
FROM persons [RANGE 60 SECONDS] AS S, auctions [RANGE 20 SECONDS] AS A, bids [RANGE 10 SECONDS] AS B,
     persons [RANGE 60 SECONDS] AS W
WHERE A.seller = S.id AND B.auction = A.id AND B.bidder = W.id AND S.state = W.state""",
    "5-way": """\
SELECT S.id AS seller, A.id AS auction, B.row AS bid, W.id AS bidder, O.id AS own
FROM persons [RANGE 60 SECONDS] AS S, auctions [RANGE 20 SECONDS] AS A, bids [RANGE 10 SECONDS] AS B,
     persons [RANGE 60 SECONDS] AS W, auctions [RANGE 20 SECONDS] AS O
WHERE A.seller = S.id AND B.auction = A.id AND B.bidder = W.id AND S.state = W.state AND O.seller = W.id""",
}
"""Joins of persons, auctions and bids; in the 4-way join, seller and bidder live in the same state."""

PROPORTIONS = (1, 3, 46)
"""How many of fifty rows in a row are persons, auctions and bids, in this order."""

HOT_SELLERS, HOT_AUCTIONS, HOT_BIDDERS = 4, 2, 100
"""One of this many rows does not refer to the hot one."""
HOT_EVERY = 100
"""After this many ids, another one is hot."""
ACTIVE_PERSONS, OPEN_AUCTIONS, AHEAD = 1_000, 100, 10
"""How many of the last persons and auctions the other rows refer to, and how many that are still to come."""

STATES = ("AZ", "CA", "ID", "OR", "WA", "WY")
SECOND = 1_000_000


@dataclass(frozen=True)
class Nexmark:
    """The rows of all streams: `rate` a second, in batches of `rows`. The same seed gives the same rows.

    The times of every `disorder` rows in a row are exchanged, so that rows come up to so many rows late. The
    proportions of persons, auctions and bids are those of `phases`, each for `phase_batches` batches, again and again.
    """

    rate: int = 10_000
    rows: int = 200_000
    seed: int = 1
    disorder: int = 1
    phases: tuple[tuple[int, int, int], ...] = (PROPORTIONS,)
    phase_batches: int = 1

    def batches(self, count: int) -> Iterator[Mapping[str, pa.RecordBatch]]:
        generator = np.random.default_rng(self.seed)
        persons = auctions = 0
        for batch_number in range(count):
            batch = self._batch(generator, batch_number, persons, auctions)
            persons += batch["persons"].num_rows
            auctions += batch["auctions"].num_rows
            yield batch

    def times(self, events: Ids) -> Ids:
        """The times of rows in microseconds, by their numbers. Nexmark exchanges times by the prime number 953."""
        first = events // self.disorder * self.disorder
        return (first + events * 953 % self.disorder) * SECOND // self.rate

    def _batch(
        self, generator: np.random.Generator, batch_number: int, persons: int, auctions: int
    ) -> Mapping[str, pa.RecordBatch]:
        """A batch, given how many persons and auctions have come before it."""
        share = dict(zip(("persons", "auctions", "bids"), self._proportions(batch_number), strict=True))
        cycle, offset = np.divmod(np.arange(self.rows), sum(share.values()))
        events = np.arange(batch_number * self.rows, (batch_number + 1) * self.rows)
        times = pa.array(self.times(events), pa.timestamp("us", "UTC"))
        # The last id of each kind that has come when an event comes.
        person = persons + cycle * share["persons"] + np.clip(offset, 0, share["persons"] - 1)
        auction = auctions + cycle * share["auctions"] + np.clip(offset - share["persons"], 0, share["auctions"] - 1)
        first_bid = share["persons"] + share["auctions"]
        is_person = np.flatnonzero(offset < share["persons"])
        is_auction = np.flatnonzero((offset >= share["persons"]) & (offset < first_bid))
        is_bid = np.flatnonzero(offset >= first_bid)
        seller = _referred(generator, person[is_auction], HOT_SELLERS, ACTIVE_PERSONS, 0)
        bidder = _referred(generator, person[is_bid], HOT_BIDDERS, ACTIVE_PERSONS, 1)
        bid_on = _referred(generator, auction[is_bid], HOT_AUCTIONS, OPEN_AUCTIONS, 0)
        state = pa.array(STATES).take(pa.array(generator.integers(0, len(STATES), len(is_person))))
        return {
            "persons": _rows(times, is_person, id=person[is_person], state=state),
            "auctions": _rows(times, is_auction, id=auction[is_auction], seller=seller),
            "bids": _rows(times, is_bid, row=events[is_bid], auction=bid_on, bidder=bidder),
        }

    def _proportions(self, batch_number: int) -> tuple[int, int, int]:
        return self.phases[batch_number // self.phase_batches % len(self.phases)]


def _referred(generator: np.random.Generator, last: Ids, hot: int, recent: int, offset: int) -> Ids:
    """The ids that rows refer to, given the last id that each of them can know of."""
    hot_id = last // HOT_EVERY * HOT_EVERY + offset
    first = np.maximum(last - recent, 0)
    other = first + generator.integers(0, last - first + 1 + AHEAD)
    return np.where(generator.integers(0, hot, len(last)) > 0, hot_id, other)


def _rows(times: pa.Array, positions: Ids, **columns: pa.Array | Ids) -> pa.RecordBatch:
    arrays = {name: pa.array(column) for name, column in columns.items()}
    return pa.RecordBatch.from_pydict({"ts": times.take(pa.array(positions)), **arrays})
