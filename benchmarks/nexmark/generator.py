"""Nexmark's persons, auctions and bids with all their columns, by the public definition.

`braid.workloads.nexmark` says which rows come when and what refers to what. Here they get names, prices, channels and
the text that fills each row up to its usual size.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from braid.workloads.nexmark import HOT_EVERY, OPEN_AUCTIONS, SECOND, Nexmark

Batch = Mapping[str, pa.RecordBatch]

START = int(datetime(2026, 1, 1, 7, 59, tzinfo=UTC).timestamp()) * SECOND
"""The time of the first row."""
CLOSING = START + 3 * 86_400 * SECOND
"""The time of the rows at the end that close all windows."""
LATENESS = "4 seconds"
"""How late rows may be, as in the public definition."""

FIRST_ID = 1_000
FIRST_CATEGORY, CATEGORIES = 10, 5
SIDE_ROWS = 10_000
"""The rows of the table that q13 joins with."""

FIRST_NAMES = ("Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter")
LAST_NAMES = ("Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris")
CITIES = ("Phoenix", "Los Angeles", "San Francisco", "Boise", "Portland", "Bend", "Redmond", "Seattle", "Kent")
HOT_CHANNELS = ("Google", "Facebook", "Baidu", "Apple")
"""Half of the bids come from these, the others from one of `CHANNELS`."""
CHANNELS = 10_000
NOBODY = {"id": -1, "seller": -2, "auction": -3, "bidder": -4}
"""Ids that equal no others, for rows that join nothing."""


@dataclass(frozen=True)
class Auctions:
    """The streams `person`, `auction` and `bid` in `count` batches, and two more that close all windows."""

    events: Nexmark
    count: int

    def batches(self) -> Iterator[Batch]:
        generator = np.random.default_rng(self.events.seed + 1)
        for batch in self.events.batches(self.count):
            yield {
                "person": _persons(generator, batch["persons"]),
                "auction": _auctions(generator, batch["auctions"], self._auction_microseconds),
                "bid": _bids(generator, batch["bids"]),
            }

    def closing(self) -> Iterator[Batch]:
        """Two batches of one row each that joins nothing.

        A watermark moves with the batch before: results that the first of them decides come with the second.
        """
        first = next(Auctions(Nexmark(rows=sum(self.events.phases[0])), 1).batches())
        for seconds in (0, 1):
            yield {name: _closing(rows.slice(0, 1), CLOSING + seconds * SECOND) for name, rows in first.items()}

    @property
    def _auction_microseconds(self) -> int:
        """The average time that an auction is open: until as many others have come as are open at once."""
        _, auctions, _ = self.events.phases[0]
        return OPEN_AUCTIONS * sum(self.events.phases[0]) // auctions * SECOND // self.events.rate


def side_input() -> pa.Table:
    """The table that q13 joins with."""
    keys = np.arange(SIDE_ROWS)
    return pa.table({"key": keys, "value": [f"value-{key}" for key in keys]})


def _persons(generator: np.random.Generator, rows: pa.RecordBatch) -> pa.RecordBatch:
    count = rows.num_rows
    names = [_chosen(generator, values, count) for values in (FIRST_NAMES, LAST_NAMES)]
    email = pc.binary_join_element_wise(_texts(generator, count, 7), _texts(generator, count, 5), "@")
    groups = [pc.cast(pa.array(generator.integers(1_000, 10_000, count)), pa.string()) for _ in range(4)]
    return _rows(
        id=_ids(rows, "id"),
        name=pc.binary_join_element_wise(*names, " "),
        emailAddress=pc.binary_join_element_wise(email, "com", "."),
        creditCard=pc.binary_join_element_wise(*groups, " "),
        city=_chosen(generator, CITIES, count),
        state=rows.column("state"),
        dateTime=_times(rows),
        extra=_texts(generator, count, 100),
    )


def _auctions(generator: np.random.Generator, rows: pa.RecordBatch, microseconds: int) -> pa.RecordBatch:
    count, initial = rows.num_rows, _prices(generator, rows.num_rows)
    length = 1 + generator.integers(0, 2 * microseconds, count)
    return _rows(
        id=_ids(rows, "id"),
        itemName=_texts(generator, count, 10),
        description=_texts(generator, count, 50),
        initialBid=initial,
        reserve=initial + _prices(generator, count),
        dateTime=_times(rows),
        expires=pc.add(_times(rows), pa.array(length, pa.duration("us"))),
        seller=_ids(rows, "seller"),
        category=FIRST_CATEGORY + generator.integers(0, CATEGORIES, count),
        extra=_texts(generator, count, 300),
    )


def _bids(generator: np.random.Generator, rows: pa.RecordBatch) -> pa.RecordBatch:
    """Bids with their channel; nine of ten addresses of the other channels have its number."""
    count = rows.num_rows
    number = generator.integers(0, CHANNELS, count)
    numbered = pc.cast(pa.array(number), pa.string())
    is_hot = pa.array(generator.random(count) < 0.5)
    hot = _chosen(generator, HOT_CHANNELS, count)
    path = [_texts(generator, count, 5) for _ in range(3)]
    address = pc.binary_join_element_wise("https://www.nexmark.com", *path, "item.htm?query=1", "/")
    with_channel = pc.binary_join_element_wise(address, numbered, "&channel_id=")
    named = pa.array(number % HOT_EVERY < 90)
    return _rows(
        auction=_ids(rows, "auction"),
        bidder=_ids(rows, "bidder"),
        price=_prices(generator, count),
        channel=pc.if_else(is_hot, hot, pc.binary_join_element_wise("channel", numbered, "-")),
        url=pc.if_else(pc.and_not(named, is_hot), with_channel, address),
        dateTime=_times(rows),
        extra=_texts(generator, count, 50),
    )


def _closing(rows: pa.RecordBatch, microseconds: int) -> pa.RecordBatch:
    time = pa.array([microseconds], pa.timestamp("us", "UTC"))
    for position, field in enumerate(rows.schema):
        if pa.types.is_timestamp(field.type):
            rows = rows.set_column(position, field.name, time)
        elif field.name in NOBODY:
            rows = rows.set_column(position, field.name, pa.array([NOBODY[field.name]]))
    return rows


def _rows(**columns: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(columns)


def _ids(rows: pa.RecordBatch, name: str) -> pa.Array:
    return pc.add(rows.column(name), FIRST_ID)


def _times(rows: pa.RecordBatch) -> pa.Array:
    return pc.add(rows.column("ts"), pa.scalar(START, pa.duration("us")))


def _prices(generator: np.random.Generator, count: int) -> NDArray[np.int64]:
    """Prices from 100 to 100 million, evenly by their number of digits."""
    return np.round(10 ** (generator.random(count) * 6) * 100).astype(np.int64)


def _chosen(generator: np.random.Generator, values: tuple[str, ...], count: int) -> pa.Array:
    return pa.array(values).take(pa.array(generator.integers(0, len(values), count)))


def _texts(generator: np.random.Generator, count: int, length: int) -> pa.Array:
    """Random texts of small letters, of about this length."""
    lengths = generator.integers(length * 4 // 5, length * 6 // 5 + 1, count)
    offsets = np.zeros(count + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    letters = generator.integers(ord("a"), ord("z") + 1, offsets[-1], np.uint8)
    return pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(letters))
