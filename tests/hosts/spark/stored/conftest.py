"""The queries whose checkpoints are stored, one for each kind of state that a checkpoint has, and the archives."""

import io
import re
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from braid.hosts.spark.driver.query import SparkQuery
from braid.hosts.spark.driver.session import Session
from braid.testing import oracle
from braid.testing.stream_files import (
    OUTER_JOINS,
    SEMI_JOINS,
    THREE_WAY_JOIN,
    add_batches,
    random_rows,
    with_last_row,
)
from tests.hosts.conftest import read_files

NAMES = pa.table({"k": [0, 1, 2, 2, 9], "name": ["zero", "one", "two", "zwei", "nine"]})
"""The rows of the table `names`."""


def random_streams() -> dict[str, pa.Table]:
    """Three streams, each with a last row that all watermarks pass the others by."""
    return {name: with_last_row(random_rows(seed, 60), key=-1 - seed) for seed, name in enumerate("abc")}


def skewed_streams() -> dict[str, pa.Table]:
    """Two streams with a second of event time for each micro-batch; two rows of three have the key 0."""
    streams = {}
    for seed, name in enumerate("ab"):
        generator, count = np.random.default_rng(seed), 1_200
        times = np.sort(generator.integers(1_000_000, 31_000_000, count))
        keys = np.where(generator.random(count) < 0.67, 0, generator.integers(1, 50, count))
        streams[name] = pa.table({"ts": pa.array(times, pa.timestamp("us", "UTC")), "k": keys, "n": np.arange(count)})
    return streams


@dataclass(frozen=True)
class StoredQuery:
    """A query, and what it is stopped within: after `stored` micro-batches of `batch_rows` rows of each stream.

    Some results wait for a watermark that only rows after the last ones would bring; then the results are not `whole`.
    A query that `spreads` has a heavy key.
    """

    text: str
    streams: Mapping[str, pa.Table] = field(default_factory=random_streams)
    batch_rows: int = 20
    stored: int = 1
    shards: int = 2
    plan: Any = None
    whole: bool = True
    spreads: bool = False

    def expected(self) -> pa.Table:
        return oracle(self.text, self.streams, tables={"names": NAMES})

    def write(self, root: Path, first: int, end: int | None = None) -> None:
        """Write the streams' files of the micro-batches from `first` to before `end`."""
        for name, rows in self.streams.items():
            add_batches(root / "streams" / name, rows, self.batch_rows, first, end)

    def run(self, spark: Any, root: Path, shards: int | None = None) -> SparkQuery:
        """Run it on its checkpoint until its streams are exhausted."""
        session = Session(spark)
        for name in self.streams:
            session.stream(name, read_files(spark, root / "streams" / name), lateness="1 second")
        session.table("names", spark.createDataFrame(NAMES))
        query = session.sql(self.text, shards=shards or self.shards, plan=self.plan)
        writer = query.dataframe.writeStream.option("path", str(root / "result"))
        writer = writer.option("checkpointLocation", str(root / "checkpoint"))
        writer.trigger(availableNow=True).start().awaitTermination()
        return query


PAIRS = "SELECT a.n AS an, b.n AS bn FROM a [RANGE 20 SECONDS], b [RANGE 20 SECONDS] WHERE a.k = b.k"
EXISTENCE = f"""{PAIRS} AND EXISTS (SELECT * FROM c [RANGE 9 SECONDS] WHERE c.t = a.t)
    AND NOT EXISTS (SELECT * FROM c [RANGE 3 SECONDS] AS x WHERE x.k = a.k)"""
COUNTS = PAIRS.replace("a.n AS an, b.n AS bn", "a.k, count(*) AS pairs, max(b.t) AS text")
PARTS = [({"k": [1, 2, 3]}, {"a": ["c", "b"], "b": ["a", "c"], "c": ["b", "a"]}), ("rest", ((("b", "c"), "a")))]
ROWS = "SELECT a.n AS an, b.n AS bn FROM a [PARTITION BY k ROWS 2], b [PARTITION BY k ROWS 3] WHERE a.k = b.k"
TABLE = """SELECT a.n AS an, b.n AS bn, v.name FROM a [RANGE 20 SECONDS], b [UNBOUNDED]
    JOIN names AS v ON v.k = b.k WHERE a.k = b.k"""
SKEWED = """SELECT a.n AS an, b.n AS bn FROM a [RANGE 2 SECONDS], b [RANGE 3 SECONDS]
    WHERE a.k = b.k AND (a.n + b.n) % 40 = 0"""


class SessionQuery(StoredQuery):
    """A query with session windows, which the oracle does not have: from its pairs, with gaps of three seconds."""

    def expected(self) -> pa.Table:
        pairs = oracle(PAIRS.replace("a.n AS an, b.n AS bn", "a.k, a.ts, b.ts AS other, b.t"), self.streams)
        rows = sorted((row["k"], max(row["ts"], row["other"]), row["t"]) for row in pairs.to_pylist())
        sessions: list[list[tuple[int, datetime, str]]] = []
        for row in rows:
            last = sessions[-1][-1] if sessions else None
            if last is not None and last[0] == row[0] and row[1] < last[1] + timedelta(seconds=3):
                sessions[-1].append(row)
            else:
                sessions.append([row])
        return pa.Table.from_pylist(
            [{"k": rows[0][0], "pairs": len(rows), "text": max(row[2] for row in rows)} for rows in sessions]
        )


QUERIES = {  # Of format 8, "spread" was written before the shards of a key could form a grid.
    "join": StoredQuery(THREE_WAY_JOIN, {name: random_rows(seed, 60) for seed, name in enumerate("abc")}),
    "group": StoredQuery(f"{COUNTS} GROUP BY a.k, WINDOW(event_time, '10 seconds')", whole=False),
    "session": SessionQuery(f"{COUNTS} GROUP BY a.k, SESSION_WINDOW(event_time, '3 seconds')", whole=False),
    "outer": StoredQuery(OUTER_JOINS),
    "semi": StoredQuery(SEMI_JOINS),
    "existence": StoredQuery(EXISTENCE),
    "parts": StoredQuery(THREE_WAY_JOIN, plan=PARTS),
    "rows": StoredQuery(ROWS, whole=False),
    "table": StoredQuery(TABLE),
    "spread": StoredQuery(SKEWED, skewed_streams(), batch_rows=40, stored=20, shards=4, spreads=True),
    "grid": StoredQuery(SKEWED, skewed_streams(), batch_rows=40, stored=20, shards=4, spreads=True),
}


ARCHIVES = Path(__file__).with_name("checkpoints")
"""Stored checkpoints, by format and query."""

ROOT = b"/the/directory/of/the/archive"
"""The directory that absolute paths begin with in the archives."""


def archive(checkpoint_format: int, name: str) -> Path:
    return ARCHIVES / f"format-{checkpoint_format}-{name}.tar.xz"


def pack(root: Path, target: Path) -> None:
    with tarfile.open(target, "w:xz") as files:
        # A checksum would be wrong where the directory is another one.
        for path in sorted(path for path in root.rglob("*") if path.is_file() and path.suffix != ".crc"):
            content = path.read_bytes().replace(bytes(root), ROOT)
            content = re.sub(rb'"directory": "[^"]*"', b'"directory": "/a/program/that/has/ended"', content)
            member = tarfile.TarInfo(str(path.relative_to(root)))
            member.size = len(content)
            files.addfile(member, io.BytesIO(content))


def unpack(source: Path, root: Path) -> None:
    with tarfile.open(source) as files:
        for member in files.getmembers():
            content = files.extractfile(member)
            assert content is not None
            path = root / member.name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.read().replace(ROOT, bytes(root)))
