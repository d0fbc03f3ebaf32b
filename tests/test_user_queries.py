"""Queries as users of Spark SQL and Flink SQL write them, beside SQL by hand over whole tables in DuckDB.

Each file in `queries` has pairs of texts: a query of Braid's, and what it means. Neither the oracle nor any other code
of the project translates the second one.
"""

import random
import re
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import braid
from braid import BraidError
from tests.conftest import Sweep

SECOND = 1_000_000
BEGIN = 1_699_999_980 * SECOND
"""14 November 2023, 22:13:00 UTC."""

MACROS = """
-- Rows that begin at a time and live for some seconds are alive together. Nulls are rows that an outer join lacks.
CREATE MACRO overlap
    (a, x, b, y) AS greatest(a, b) < least(a + to_seconds(x), b + to_seconds(y)),
    (a, x, b, y, c, z) AS greatest(a, b, c) < least(a + to_seconds(x), b + to_seconds(y), c + to_seconds(z)),
    (a, x, b, y, c, z, d, w) AS greatest(a, b, c, d)
        < least(a + to_seconds(x), b + to_seconds(y), c + to_seconds(z), d + to_seconds(w));
-- A row that begins at a time and lives for some seconds is alive at another time.
CREATE MACRO alive(begin, seconds, moment) AS begin <= moment AND moment < begin + to_seconds(seconds);
-- The beginning of the tumbling window that has a time.
CREATE MACRO tumble(moment, seconds) AS time_bucket(to_seconds(seconds), moment, TIMESTAMP '1970-01-01');
-- The first multiple of the slide from a time on.
CREATE MACRO slide(moment, seconds) AS tumble(moment + to_seconds(seconds) - INTERVAL 1 MICROSECOND, seconds);
-- The beginnings of hopping windows.
CREATE MACRO hops(seconds) AS TABLE
    SELECT unnest(generate_series(
        TIMESTAMP '2023-11-14 22:12:00', TIMESTAMP '2023-11-14 22:20:00', to_seconds(seconds))) AS s;
"""

QUERIES = {
    f"{path.stem}: {name}": (text, by_hand)
    for path in sorted(Path(__file__).with_name("queries").glob("*.sql"))
    for name, text, by_hand in re.findall(r"^-- (.*)\n((?:.|\n)*?);\n((?:.|\n)*?);\n", path.read_text(), re.MULTILINE)
}


def streams_of(seed: int, rows: int = 40) -> dict[str, pa.Table]:
    """Streams of a minute with nulls, and with times in half seconds, so that many rows meet at the ends of windows."""
    generator = np.random.default_rng(seed)

    def times(count: int) -> Any:
        return np.sort(generator.integers(0, 120, count)) * SECOND // 2 + BEGIN

    def stamps(values: Any) -> pa.Array:
        return pa.array(values, pa.timestamp("us"))

    def with_nulls(values: Any) -> pa.Array:
        return pa.array(values, mask=generator.random(len(values)) < 0.15)

    def chosen(values: list[Any], type_: pa.DataType) -> pa.Array:
        return pa.array([values[place] for place in generator.integers(0, len(values), rows)], type_)

    begins = times(rows)
    persons = {
        "id": with_nulls(generator.integers(0, 8, rows)),
        "name": with_nulls([f"n{number}" for number in generator.integers(0, 6, rows)]),
        "address": chosen(
            [{"city": "Oslo", "zip": 0}, {"city": "Rome", "zip": 1}, {"city": None, "zip": 2}, None],
            pa.struct({"city": pa.string(), "zip": pa.int64()}),
        ),
        "tags": chosen([[], ["a"], ["a", "b"], ["a", "b", None], None], pa.list_(pa.string())),
        "ts": stamps(times(rows)),
    }
    auctions = {
        "id": generator.integers(0, 10, rows),
        "seller": with_nulls(generator.integers(0, 8, rows)),
        "category": with_nulls(generator.integers(0, 4, rows)),
        "reserve": generator.integers(1, 60, rows).astype(float),
        "expires": stamps(begins + generator.integers(-1, 14, rows) * SECOND),
        "ts": stamps(begins),
    }
    bids = {
        "auction": generator.integers(0, 10, 2 * rows),
        "bidder": with_nulls(generator.integers(0, 8, 2 * rows)),
        "price": generator.integers(1, 80, 2 * rows),
        "channel": with_nulls([("web", "app", "tv")[number] for number in generator.integers(0, 3, 2 * rows)]),
        "ts": stamps(times(2 * rows)),
    }
    views = {
        "auction": with_nulls(generator.integers(0, 10, rows)),
        "who": generator.integers(0, 8, rows),
        "ts": stamps(times(rows)),
    }
    named = {"persons": persons, "auctions": auctions, "bids": bids, "views": views}
    return {name: pa.table(columns) for name, columns in named.items()}


TABLES = {"cats": pa.table({"id": [0, 1, 2, 2], "label": ["zero", "one", "two", "zwei"]})}


def rows_of(table: pa.Table) -> Counter[tuple[Any, ...]]:
    """The rows, without names: columns without an alias have others in DuckDB."""
    return Counter(
        zip(*(map(_plain, table.column(place).to_pylist()) for place in range(table.num_columns)), strict=True)
    )


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 9)
    return value.replace(tzinfo=None) if isinstance(value, datetime) else value


@pytest.mark.parametrize("name", QUERIES)
def test_a_query_means_what_its_user_thinks(name: str) -> None:
    text, by_hand = QUERIES[name]
    results = 0
    for seed, batch_rows in ((1, None), (2, 7)):
        streams = streams_of(seed)
        connection = duckdb.connect()
        connection.execute(MACROS)
        for relation, rows in (streams | TABLES).items():
            connection.register(relation, rows)
        expected = rows_of(connection.sql(by_hand).to_arrow_table())
        assert rows_of(braid.run(text, streams, tables=TABLES, batch_rows=batch_rows)) == expected, seed
        results += expected.total()
    assert results


def mutated(source: random.Random) -> str:
    """A text of a user with pieces missing, doubled and exchanged, or with pieces of another one in it."""
    pieces = source.choice(PIECES).copy()
    for _ in range(source.randint(1, 3)):
        position, other = source.randrange(len(pieces)), source.choice(PIECES)
        first = source.randrange(len(other))
        kind = source.randrange(4)
        if kind == 0:
            pieces.pop(position)
        elif kind == 1:
            pieces.insert(position, source.choice(pieces))
        elif kind == 2:
            pieces[position] = other[first]
        else:
            pieces[position:position] = [" ", *other[first : first + 9], " "]
    return "".join(pieces)


def check_mutated(seed: int) -> None:
    """The text runs or is refused; nothing else ends it."""
    text = mutated(random.Random(seed))
    try:
        braid.run(text, FEW_ROWS, tables=TABLES, batch_rows=2)
    except BraidError as error:
        assert str(error), text
    except Exception as error:
        error.add_note(f"seed {seed}: {text}")
        raise


PIECES = [re.findall(r"'[^']*'|\w+|\s+|[^\w\s]", text) for text, _ in QUERIES.values()]
FEW_ROWS = streams_of(3, rows=4)


def test_mutated_queries() -> None:
    for seed in range(300):
        check_mutated(seed)


@pytest.mark.sweep
def test_sweep_of_mutated_queries(sweep: Sweep) -> None:
    sweep(range(1_000, 21_000), check_mutated)


def test_all_queries_are_read() -> None:
    files = Path(__file__).with_name("queries").glob("*.sql")
    assert sum(path.read_text().count("\n-- ") + 1 for path in files) == len(QUERIES) == 98
