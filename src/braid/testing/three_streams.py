"""Three small random streams a, b and c, and what queries over them yield: for tests that run site programs."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import cache

import numpy as np
import pyarrow as pa

from braid.testing.interpreter import Row
from braid.testing.oracle import oracle

DOMAINS = {"k": 3, "j": 4, "v": 6, "id": 10_000}
"""The columns of each stream beside `ts`, with the number of distinct values."""

SECONDS = 12
"""Event times are whole seconds, from 0 up to this."""


def three_streams(seed: int, rows: int = 14) -> dict[str, list[Row]]:
    """The rows of each stream, with event times in microseconds as `ts`."""
    generator = np.random.default_rng(seed)

    def random_row() -> Row:
        return {
            "ts": int(generator.integers(SECONDS)) * 1_000_000,
            **{column: int(generator.integers(domain)) for column, domain in DOMAINS.items()},
        }

    return {stream: [random_row() for _ in range(rows)] for stream in "abc"}


@cache
def expected_results(text: str, seed: int) -> list[tuple[int, ...]]:
    """The result rows of a query over the three streams, by the oracle, sorted."""
    return sorted(tuple(row.values()) for row in oracle(text, three_tables(seed)).to_pylist())


def three_tables(seed: int, rows: int = 14) -> dict[str, pa.Table]:
    """The three streams as Arrow tables."""
    return {stream: _table(made) for stream, made in three_streams(seed, rows).items()}


def _table(rows: list[Row]) -> pa.Table:
    times = [datetime(2024, 1, 1) + timedelta(microseconds=row["ts"]) for row in rows]
    columns = {column: [row[column] for row in rows] for column in DOMAINS}
    return pa.table({"ts": pa.array(times, pa.timestamp("us")), **columns})
