"""Random streams: their columns, and rows in order of arrival, with ties, duplicates, nulls and late rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from braid.testing.choices import Choices
from braid.testing.values import FLOATS, PAYLOADS, PER_SECOND, TEXTS, Family, array, key_value, nullable

TICK = 1_000_000
"""Microseconds in a tick. Event times are whole ticks, or fractions of them in streams with `fine_times`."""

NUMBERS = tuple(range(-2, 11))


@dataclass(frozen=True)
class Contents:
    """What the streams of a case have in common.

    `families` are the types of the key columns, `domain` is the number of their values, `origin` is the first tick.
    """

    families: Mapping[str, Family]
    domain: int
    skewed: bool
    mixed_types: bool
    zone: str | None
    origin: int

    @property
    def family_names(self) -> dict[str, str]:
        return {key: family.name for key, family in self.families.items()}


@dataclass(frozen=True)
class Layout:
    """The declaration of a stream, and how its rows are made.

    `identity` is the column with the row number; duplicates have the same one. `disorder` is the most ticks that a row
    arrives late. With `some_untimed`, some rows have no time.
    """

    schema: pa.Schema
    time: str
    identity: str
    lateness: int
    disorder: int
    fine_times: bool
    some_untimed: bool
    payload: tuple[Any, ...]


def make_layout(choices: Choices, name: str, contents: Contents) -> Layout:
    time = "at" if choices.once_in(5) else "ts"
    unit = choices.pick(("us", "us", "us", "ns", "ms", "s"))
    kinds = {
        key: choices.pick(family.types) if contents.mixed_types else family.types[0]
        for key, family in contents.families.items()
    }
    payload_type, payload = choices.pick(PAYLOADS)
    fields = [
        (time, pa.timestamp(unit, contents.zone)),
        *kinds.items(),
        ("v", choices.pick((pa.int64(), pa.int32()))),
        ("w", choices.pick((pa.float64(), pa.float32()))),
        ("t", pa.string()),
        (f"{name}_id", pa.int64()),
        ("p", payload_type),
    ]
    if choices.once_in(4):
        fields.append(fields.pop(0))  # The time column last.
    disorder = choices.pick((0, 2, 5))
    return Layout(
        schema=pa.schema(fields),
        time=time,
        identity=f"{name}_id",
        lateness=choices.pick((0, disorder, 1, 100)) * TICK,
        disorder=disorder,
        fine_times=unit in ("us", "ns") and choices.once_in(3),
        some_untimed=choices.once_in(12),
        payload=payload,
    )


def make_rows(choices: Choices, layout: Layout, contents: Contents, most: int) -> pa.Table:
    """At most `most` random rows, in order of arrival."""
    count = _make_count(choices, most)
    arrived: list[tuple[int, dict[str, Any]]] = []
    tick = contents.origin
    for identity in range(count):
        if arrived and choices.once_in(8):
            row = arrived[-1][1]  # A duplicate.
        else:
            tick += choices.pick((1, 0, 2, 0))
            row = _make_row(choices, layout, contents, identity, tick)
        arrived.append((tick + choices.integer(0, layout.disorder), row))
    arrived.sort(key=lambda arrival: arrival[0])
    columns = [array([row[field.name] for _, row in arrived], field.type) for field in layout.schema]
    return pa.Table.from_arrays(columns, schema=layout.schema)


def _make_count(choices: Choices, most: int) -> int:
    """Usually more than half of `most`; sometimes one to three, rarely none."""
    kind = choices.integer(0, 19)
    if kind < 3:
        return choices.integer(1, min(3, most))
    return choices.integer(most // 2 + 1, most) if kind < 19 else 0


def _make_row(choices: Choices, layout: Layout, contents: Contents, identity: int, tick: int) -> dict[str, Any]:
    keys = {
        key: key_value(choices, family, layout.schema.field(key).type, contents.domain, contents.skewed)
        for key, family in contents.families.items()
    }
    return {
        layout.time: _time_value(choices, layout, tick),
        **keys,
        "v": nullable(choices, NUMBERS),
        "w": nullable(choices, FLOATS),
        "t": nullable(choices, TEXTS),
        layout.identity: identity,
        # After the identity, so that the order of payloads never decides between two rows.
        "p": nullable(choices, layout.payload),
    }


def _time_value(choices: Choices, layout: Layout, tick: int) -> int | None:
    if layout.some_untimed and choices.once_in(6):
        return None
    per_second = PER_SECOND[layout.schema.field(layout.time).type.unit]
    fraction = choices.pick((0, 1, per_second // 2, per_second - 1)) if layout.fine_times else 0
    return tick * per_second + fraction
