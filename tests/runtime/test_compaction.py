"""Windows that count rows by partition: the store shrinks to the live rows, and the results stay the same."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from braid.runtime.compaction import FEWEST_COMPACTED, alive_rows
from braid.testing import assert_same_rows, oracle
from braid.testing.case import Case
from braid.testing.cluster import ShardedCase, batches

TEXT = "SELECT a.n AS an, b.n AS bn FROM a [PARTITION BY k ROWS 2], b [NOW] WHERE a.k = b.k AND a.n % 3 <> 0"


def case_of(keys: np.ndarray, generator: np.random.Generator, batch_rows: int = 100) -> Case:
    """Stream `a` with these keys and stream `b` with the same in another order; many rows have the same time."""
    seconds = np.arange(len(keys)) // 4

    def table(keys: np.ndarray) -> pa.Table:
        disordered = seconds + generator.integers(0, 3, len(keys))
        return pa.table({"ts": pa.array(disordered, pa.timestamp("s")), "k": keys, "n": np.arange(len(keys))})

    streams = {"a": table(keys), "b": table(generator.permutation(keys))}
    lateness = 3_000_000
    return Case(TEXT, streams, dict.fromkeys("ab", "ts"), dict.fromkeys("ab", lateness), None, batch_rows)


def rows_kept(cluster: ShardedCase, stream: str) -> int:
    return sum(entry.rows for entry in cluster.manifest().entries[stream])


def test_a_rare_key_does_not_keep_the_rows_of_others() -> None:
    """The first row has a key that never comes again, so that it is alive for ever."""
    generator = np.random.default_rng(1)
    keys = generator.integers(0, 5, 6_000)
    keys[0] = 99
    case = case_of(keys, generator)
    cluster = ShardedCase(case, 1)
    for rows in batches(case):
        cluster.batch(rows)
        assert rows_kept(cluster, "a") < 2 * FEWEST_COMPACTED
    cluster.end()
    assert_same_rows(cluster.result(), oracle(case.text, case.streams))


def test_ever_new_keys_keep_their_own_rows_only() -> None:
    """Each key has a row now and then for some time; the last two of each are alive for ever."""
    generator = np.random.default_rng(2)
    keys = np.arange(8_000) // 40 * 4 + generator.integers(0, 8, 8_000)
    case = case_of(keys, generator, batch_rows=200)
    cluster = ShardedCase(case, 1)
    for number, rows in enumerate(batches(case), 1):
        cluster.batch(rows)
        alive = 2 * len(np.unique(keys[: 200 * number]))
        assert rows_kept(cluster, "a") <= 2 * alive + FEWEST_COMPACTED + 200
    assert rows_kept(cluster, "a") < 5_000
    cluster.end()
    assert_same_rows(cluster.result(), oracle(case.text, case.streams))


def test_the_rows_of_all_partition_columns_are_kept_apart() -> None:
    generator = np.random.default_rng(3)
    case = case_of(generator.integers(0, 4, 3_000), generator)
    text = TEXT.replace("PARTITION BY k", "PARTITION BY k, m")
    streams = {name: table.append_column("m", [table["n"].to_numpy() % 7]) for name, table in case.streams.items()}
    case = replace(case, text=text, streams=streams)
    cluster = ShardedCase(case, 1)
    for rows in batches(case):
        cluster.batch(rows, attempts=2)
    cluster.end()
    assert rows_kept(cluster, "a") < 2_000
    assert_same_rows(cluster.result(), oracle(case.text, case.streams))


@pytest.mark.parametrize("seed", range(50))
def test_rows_that_have_ended_are_found_whatever_the_order_of_ties(seed: int) -> None:
    """Compared row by row with the definition: as many later rows of the partition as the window holds."""
    generator = np.random.default_rng(seed)
    count, row_limit, horizon = int(generator.integers(0, 60)), int(generator.integers(1, 4)), 12
    times, partitions = generator.integers(0, 20, count), generator.integers(0, 4, count)
    alive = alive_rows(times, partitions, row_limit, horizon)
    for row in range(count):
        later = (partitions == partitions[row]) & (times > times[row]) & (times <= horizon)
        assert alive[row] == (later.sum() < row_limit)
