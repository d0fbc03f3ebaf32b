"""Shards with the caches of Spark's workers: lost, damaged or out of date, they cost time and change no result."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from braid.hosts.spark.worker.array_cache import ArrayCache
from braid.hosts.spark.worker.engine_cache import WorkerEngineCache, forget_engines
from braid.testing import Case, assert_same_rows, oracle, random_case, without_late_rows
from braid.testing.cluster import Cluster, batches, counts_rows, plain_case, run_with_faults


def engines_in(directory: Path) -> Callable[[], WorkerEngineCache]:
    return lambda: WorkerEngineCache(ArrayCache(directory))


def cached_cluster(case: Case, directory: Path) -> Cluster:
    return Cluster(case, 1, engines_in(directory))


def lose_cache(directory: Path) -> None:
    forget_engines()
    for path in directory.glob("*/*"):
        path.unlink()


def run_mistreated(case: Case, seed: int, directory: Path) -> Cluster:
    """With failed attempts, plan changes, and caches that are lost or damaged."""

    def mistreat(generator: np.random.Generator) -> None:
        if generator.random() < 0.5:
            forget_engines()
        for path in sorted(directory.glob("*/*")):
            if generator.random() < 0.02:
                path.unlink()
            elif generator.random() < 0.02:
                path.write_bytes(generator.bytes(path.stat().st_size))

    return run_with_faults(case, seed, engines_in(directory), mistreat)


@pytest.mark.parametrize("seed", [seed for seed in range(60) if not counts_rows(random_case(seed))])
def test_shards_give_what_the_oracle_gives(seed: int, tmp_path: Path) -> None:
    case = random_case(seed)
    result = run_mistreated(case, seed, tmp_path).result()
    assert_same_rows(result, oracle(case.text, without_late_rows(case), time=case.time), message=repr(case))


@pytest.mark.parametrize("seed", [seed for seed in range(60) if counts_rows(random_case(seed))])
def test_counted_rows_survive_whatever_happens(seed: int, tmp_path: Path) -> None:
    """Their last results wait for the streams to go on."""
    case = random_case(seed)
    mistreated = run_mistreated(case, seed, tmp_path)
    mistreated.end()
    expected = oracle(case.text, without_late_rows(case), time=case.time)
    assert_same_rows(mistreated.result(), expected, message=repr(case))


def test_the_cache_serves_and_a_lost_one_is_rebuilt(tmp_path: Path) -> None:
    case = plain_case()
    cluster = cached_cluster(case, tmp_path)
    first, second, third, fourth = batches(case)
    cluster.batch(first)
    cluster.batch(second)
    forget_engines()
    cluster.batch(third)
    lose_cache(tmp_path)
    cluster.batch(fourth)
    assert cluster.engines_opened == ["new", "hot", "mapped", "rebuilt"]
    assert_same_rows(cluster.result(), oracle(case.text, case.streams))


def test_streams_may_be_called_what_the_cache_calls_its_files(tmp_path: Path) -> None:
    windows = "a [RANGE 1 HOUR] AS file, b [RANGE 1 HOUR] AS arrow"
    case = plain_case(f"SELECT file.n AS an, arrow.n AS bn FROM {windows} WHERE file.k = arrow.k")
    cluster = cached_cluster(case, tmp_path)
    first, second, third, fourth = batches(case)
    cluster.batch(first)
    cluster.batch(second)
    forget_engines()
    cluster.batch(third)
    cluster.batch(fourth)
    assert cluster.engines_opened == ["new", "hot", "mapped", "hot"]
    assert_same_rows(cluster.result(), oracle(case.text, case.streams))


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path: Path) -> None:
    case = plain_case()
    (tmp_path / "file").write_text("not a directory")
    cluster = cached_cluster(case, tmp_path / "file")
    for rows in batches(case):
        cluster.batch(rows)
    assert cluster.engines_opened == ["new", "rebuilt", "rebuilt", "rebuilt"]
    assert_same_rows(cluster.result(), oracle(case.text, case.streams))


def test_windows_that_count_rows_stay_in_their_process(tmp_path: Path) -> None:
    case = plain_case("SELECT a.n AS an, b.n AS bn FROM a [ROWS 7], b [ROWS 3] WHERE a.k = b.k")
    cluster = cached_cluster(case, tmp_path)
    first, second, third, fourth = batches(case)
    cluster.batch(first)
    cluster.batch(second)
    forget_engines()
    cluster.batch(third)
    cluster.batch(fourth, attempts=2)
    cluster.end()
    assert cluster.engines_opened == ["new", "hot", "rebuilt", "rebuilt", "hot"]
    assert_same_rows(cluster.result(), oracle(case.text, case.streams))


def test_what_another_run_left_in_the_process_must_be_of_the_same_query(tmp_path: Path) -> None:
    """With another lateness a query may go on; what was built for the old one would refuse every change of plan."""
    case = plain_case("SELECT a.n AS an, b.n AS bn FROM a [ROWS 7], b [ROWS 3] WHERE a.k = b.k")
    cluster = cached_cluster(case, tmp_path)
    first, second, *_ = batches(case)
    cluster.batch(first)
    patient = cached_cluster(replace(case, lateness=dict.fromkeys("ab", 1_000_000)), tmp_path)
    patient.stores = cluster.stores
    patient.batch(second, message=json.dumps({"plan": ["a", "b"]}).encode())
    assert patient.engines_opened == ["rebuilt"]
    assert patient.reports[-1].rejected_messages == 0
