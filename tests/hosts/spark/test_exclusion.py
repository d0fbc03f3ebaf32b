"""Set difference on Spark: excluded rows meet what they exclude, and results that wait survive whatever happens."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from braid.hosts.spark.driver.session import Session
from braid.language import parse
from braid.model.stream import Stream
from braid.runtime.routing import router_for
from braid.testing import assert_same_rows, oracle, without_late_rows
from braid.testing.cluster import FAR, counts_rows
from braid.testing.generators import random_difference
from tests.hosts.spark.conftest import Feed, run_out
from tests.hosts.spark.worker.test_engine_cache import run_mistreated

SEEDS = [
    *([seed for seed in range(200) if not counts_rows(random_difference(seed))][:15]),
    *([seed for seed in range(200) if counts_rows(random_difference(seed))][:8]),
]
"""Those whose state may stay in the cache, and some that are always rebuilt."""


@pytest.mark.parametrize("seed", SEEDS)
def test_shards_give_what_the_oracle_gives(seed: int, tmp_path: Path) -> None:
    case = random_difference(seed)
    cluster = run_mistreated(case, seed, tmp_path)
    cluster.end()
    expected = oracle(case.text, without_late_rows(case), time=case.time)
    assert_same_rows(cluster.result(), expected, message=repr(case))


def routed(text: str) -> list[tuple[int | None, list[str], int]]:
    schema = pa.schema({"ts": pa.timestamp("us"), "k": pa.int64(), "l": pa.int32(), "t": pa.string()})
    router = router_for(parse(text, {name: Stream(name, schema, "ts") for name in "abcx"}), 4)
    return [(side.attribute_class, sorted(side.streams), side.share) for side in router.dimensions]


ONE = "SELECT a.k FROM a [NOW] WHERE NOT EXISTS (SELECT * FROM x [{}] WHERE {})"
TWO = "SELECT a.k FROM a [NOW], b [NOW] WHERE a.k = b.k AND NOT EXISTS (SELECT * FROM x [NOW] WHERE {})"


@pytest.mark.parametrize(
    ("text", "sides"),
    [
        (ONE.format("NOW", "x.k = a.k"), [(0, ["a", "x"], 4)]),
        (ONE.format("NOW", "x.k > a.k"), [(None, ["a"], 4)]),
        (ONE.format("ROWS 3", "x.k = a.k"), [(None, ["a"], 4)]),
        (TWO.format("x.k = b.k"), [(0, ["a", "b", "x"], 4)]),
        (TWO.format("b.k = x.l"), [(0, ["a", "b", "x"], 4)]),
        (TWO.format("x.t = b.t"), [(0, ["a", "b"], 4)]),
        (TWO.format("CAST(x.k AS DOUBLE) = b.k"), [(0, ["a", "b"], 4)]),
    ],
)
def test_an_excluded_row_goes_where_it_is_compared(text: str, sides: list[tuple[int | None, list[str], int]]) -> None:
    """With the class of what it equals if that is compared in the same type, else to all shards."""
    assert routed(text) == sides


def rows_of(seed: int, count: int = 60) -> pa.Table:
    generator = np.random.default_rng(seed)
    times = np.append(np.sort(generator.integers(0, 60_000_000, count - 1)), FAR * 1_000_000)
    keys = pa.array([None if key == 0 else int(key) for key in generator.integers(0, 6, count)], pa.int64())
    return pa.table({"ts": pa.array(times, pa.timestamp("us", "UTC")), "k": keys, "n": np.arange(count)})


def test_streams_give_what_the_oracle_gives(session: Session, feed: Feed, tmp_path: Path) -> None:
    """A last row of each stream lets everything before it be decided, and waits for ever itself."""
    text = """SELECT a.n AS an, b.n AS bn FROM a [RANGE 9 SECONDS], b [RANGE 9 SECONDS]
              WHERE a.k <=> b.k AND NOT EXISTS (SELECT * FROM c [RANGE 2 SECONDS] WHERE c.k = a.k)"""
    tables = {name: rows_of(seed) for seed, name in enumerate("abc")}
    for name, table in tables.items():
        session.stream(name, feed(name, table, 30), time="ts", lateness="1 second")
    result = run_out(session.sql(text).dataframe, tmp_path).drop_columns(["event_time"])
    past = {name: table.slice(0, 59) for name, table in tables.items()}
    expected = oracle(text, past)
    assert 0 < expected.num_rows < oracle(text.split("AND NOT EXISTS")[0], past).num_rows
    assert_same_rows(result, expected)
