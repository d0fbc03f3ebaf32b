"""Three random streams in Parquet files and a join of them, for tests of programs that read streams from files."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

THREE_WAY_JOIN = """SELECT a.n AS an, b.n AS bn, c.n AS cn
          FROM a [RANGE 20 SECONDS], b [RANGE 20 SECONDS], c [RANGE 20 SECONDS] WHERE a.k = b.k AND b.k = c.k"""

OUTER_JOINS = """SELECT a.n AS an, b.n AS bn, c.n AS cn, x.n AS xn, y.n AS yn
          FROM a [RANGE 20 SECONDS] JOIN b [RANGE 20 SECONDS] ON a.k = b.k
          JOIN c [RANGE 20 SECONDS] ON b.k = c.k AND c.t = a.t
          FULL JOIN c [RANGE 9 SECONDS] AS x ON x.k = a.k AND x.t = b.t
          LEFT JOIN b [RANGE 2 SECONDS] AS y ON y.k = x.k AND y.t = c.t
          WHERE COALESCE(a.n, x.n) >= 0"""
"""Three inner joins, then two outer ones. Rows with a negative `n` are left out: those that only move watermarks."""

SEMI_JOINS = """SELECT a.n AS an, b.n AS bn, c.n AS cn, d.n AS dn
          FROM a [RANGE 20 SECONDS] JOIN b [RANGE 20 SECONDS] ON a.k = b.k
          JOIN c [RANGE 20 SECONDS] ON b.k = c.k AND c.t = a.t
          LEFT SEMI JOIN c [RANGE 9 SECONDS] AS x ON x.k = a.k AND x.t = b.t
          JOIN a [RANGE 5 SECONDS] AS d ON d.k = b.k AND d.t = c.t
          LEFT ANTI JOIN b [RANGE 2 SECONDS] AS y ON y.k = c.k AND y.n > c.n
          WHERE a.n >= 0"""
"""Three inner joins, then a semi join and an anti join with an inner join between them. Rows with a negative `n` are
left out."""

ROWS = 120
"""How many rows a stream has by default."""

SECONDS = 60
"""The event times of a stream are spread over this many seconds from 1970 on."""


def random_rows(seed: int, rows: int = ROWS, keys: int = 6) -> pa.Table:
    """Rows in order of event time, with a random key `k`, a row number `n` and a random text `t`."""
    generator = np.random.default_rng(seed)
    times = np.sort(generator.integers(0, SECONDS * 1_000_000, rows))
    return pa.table(
        {
            "ts": pa.array(times, pa.timestamp("us", "UTC")),
            "k": generator.integers(0, keys, rows),
            "n": np.arange(rows),
            "t": pa.array([f"text {key}" for key in generator.integers(0, keys, rows)]),
        }
    )


def write_stream(directory: Path, table: pa.Table, rows_per_file: int) -> None:
    """Write a table as a stream of files."""
    directory.mkdir(parents=True)
    add_batches(directory, table, rows_per_file)


def add_batches(directory: Path, table: pa.Table, rows_per_file: int, first: int = 0, end: int | None = None) -> None:
    """Write the files of a stream from the number `first` to before `end`.

    Spark reads files in the order of their modification times, so that each file gets a later one.
    """
    directory.mkdir(parents=True, exist_ok=True)
    starts = range(0, max(table.num_rows, 1), rows_per_file)
    for file_number, start in list(enumerate(starts))[first:end]:
        path = directory / f"{file_number:05d}.parquet"
        pq.write_table(table.slice(start, rows_per_file), path)
        modified = 1_000_000_000 + file_number
        os.utime(path, (modified, modified))


def write_streams(directory: Path, rows: int, rows_per_file: int, *, last_row: bool = False) -> dict[str, pa.Table]:
    """Write the streams `a`, `b` and `c`, each to a directory of its own, and return their rows."""
    tables = {name: random_rows(seed, rows) for seed, name in enumerate("abc")}
    if last_row:
        tables = {name: with_last_row(table, key=-1 - seed) for seed, (name, table) in enumerate(tables.items())}
    for name, table in tables.items():
        write_stream(directory / name, table, rows_per_file)
    return tables


def with_last_row(table: pa.Table, key: int) -> pa.Table:
    """A table of `random_rows` with one more row, long after all others: watermarks pass every other row.

    With a key that no other row has, the last row is part of no result of an inner join.
    """
    last = {"ts": [10**9], "k": [key], "n": [-1], "t": ["end"]}
    columns = {name: pa.array(values, table.schema.field(name).type) for name, values in last.items()}
    return pa.concat_tables([table, pa.table(columns)])
