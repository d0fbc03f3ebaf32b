"""Totals over all shards: a row that was copied counts once, and the statistics are those of the streams."""

import numpy as np
import pyarrow as pa
import pytest

from braid.model.statistics import Statistics
from braid.runtime.totals import Totals
from braid.testing import Case
from braid.testing.cluster import ShardedCase, batches

CHAIN = """SELECT a.n AS an, b.n AS bn, c.n AS cn FROM a [UNBOUNDED], b [UNBOUNDED], c [UNBOUNDED]
           WHERE a.k = b.k AND b.j < c.j"""


def rows_of(seed: int, rows: int) -> pa.Table:
    generator = np.random.default_rng(seed)
    return pa.table(
        {
            "ts": pa.array(np.arange(rows) * (60_000_000 // rows), pa.timestamp("us")),
            "k": generator.integers(0, 5, rows),
            "j": generator.integers(0, 10, rows),
            "n": np.arange(rows),
        }
    )


def counted(shards: int, plan: dict[str, list[str]] | None = None) -> tuple[Totals, ShardedCase]:
    streams = {name: rows_of(seed, rows) for seed, (name, rows) in enumerate({"a": 120, "b": 120, "c": 60}.items())}
    case = Case(CHAIN, streams, dict.fromkeys(streams, "ts"), dict.fromkeys(streams, 0), plan, 10)
    cluster = ShardedCase(case, shards)
    total = Totals(cluster.spec.query, cluster.spec.router)
    for rows in batches(case):
        cluster.reports.clear()
        cluster.batch(rows)
        total.add(cluster.reports)
    return total, cluster


@pytest.mark.parametrize("shards", [1, 6])
def test_statistics_do_not_depend_on_the_number_of_shards(shards: int) -> None:
    total, cluster = counted(shards)
    assert cluster.spec.router.shards == shards
    assert {alias: stream.rows for alias, stream in total.streams.items()} == {"a": 120, "b": 120, "c": 60}
    assert {alias: stream.population for alias, stream in total.streams.items()} == {"a": 120, "b": 120, "c": 60}
    results = sum(join.matches for (bound, _), join in total.joins.items() if len(bound) == 2)
    assert results == cluster.result().num_rows
    statistics = total.statistics()
    assert statistics.rates["a"] == pytest.approx(2, rel=0.01)
    assert statistics.rates["c"] == pytest.approx(1, rel=0.01)
    assert statistics.selectivities["a.k = b.k"] == pytest.approx(1 / 5, rel=0.25)
    assert statistics.selectivities[frozenset("bc")] == pytest.approx(0.45, rel=0.25)
    assert statistics.sizes["a"] > 8


def test_without_counts_there_are_no_statistics() -> None:
    streams = {name: rows_of(0, 1) for name in "abc"}
    cluster = ShardedCase(Case(CHAIN, streams, dict.fromkeys("abc", "ts"), dict.fromkeys("abc", 0), None, 1), 1)
    total = Totals(cluster.spec.query, cluster.spec.router)
    assert total.statistics() == Statistics()
    cluster.batch(streams)
    total.add(cluster.reports)
    assert total.statistics().rates == {}
