"""Shards with the engine caches of Spark's workers: a lost, damaged or outdated cache changes no result."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from braid.hosts.spark.worker.array_cache import ArrayCache
from braid.hosts.spark.worker.engine_cache import WorkerEngineCache, forget_engines
from braid.testing import Case, assert_same_rows, oracle, random_case, without_late_rows
from braid.testing.cluster import ShardedCase, batches, counts_rows, plain_case, run_with_faults
from braid.testing.generators import random_existence, random_fixed_joins


def engines_in(directory: Path) -> Callable[[], WorkerEngineCache]:
    return lambda: WorkerEngineCache(ArrayCache(directory))


def cached_cluster(case: Case, directory: Path) -> ShardedCase:
    return ShardedCase(case, 1, engines_in(directory))


def lose_cache(directory: Path) -> None:
    forget_engines()
    for path in directory.glob("*/*"):
        path.unlink()


def run_with_damaged_cache(case: Case, seed: int, directory: Path) -> ShardedCase:
    """Run a case with failed attempts, plan changes, and a cache that is lost or damaged between batches."""

    def damage_cache(generator: np.random.Generator) -> None:
        if generator.random() < 0.5:
            forget_engines()
        for path in sorted(directory.glob("*/*")):
            if generator.random() < 0.02:
                path.unlink()
            elif generator.random() < 0.02:
                path.write_bytes(generator.bytes(path.stat().st_size))

    return run_with_faults(case, seed, engines_in(directory), damage_cache)


@pytest.mark.parametrize("seed", range(60))
def test_results_are_those_of_the_oracle(seed: int, tmp_path: Path) -> None:
    case = random_case(seed)
    cluster = run_with_damaged_cache(case, seed, tmp_path)
    if counts_rows(case):
        cluster.end()
    expected = oracle(case.text, without_late_rows(case), time=case.time)
    assert_same_rows(cluster.result(), expected, message=repr(case))


MOVABLE = [seed for seed in range(200) if not counts_rows(random_existence(seed))][:15]
"""Existence tests whose engines can be kept in files."""

COUNTING = [seed for seed in range(200) if counts_rows(random_existence(seed))][:8]
"""Existence tests with windows that count rows; their engines are kept in the process or rebuilt."""


@pytest.mark.parametrize("seed", MOVABLE + COUNTING)
def test_results_of_existence_tests_are_those_of_the_oracle(seed: int, tmp_path: Path) -> None:
    case = random_existence(seed)
    cluster = run_with_damaged_cache(case, seed, tmp_path)
    cluster.end()
    expected = oracle(case.text, without_late_rows(case), time=case.time)
    assert_same_rows(cluster.result(), expected, message=repr(case))


MOVABLE_JOINS = [seed for seed in range(200) if not counts_rows(random_fixed_joins(seed))][:15]
"""Outer, semi and anti joins whose engines can be kept in files."""


@pytest.mark.parametrize("seed", MOVABLE_JOINS)
def test_results_of_fixed_joins_are_those_of_the_oracle(seed: int, tmp_path: Path) -> None:
    case = random_fixed_joins(seed)
    # Rows that never end would wait for the end of their streams.
    case = replace(case, text=re.sub(r"\[unbounded\]", "[RANGE 20000 DAYS]", case.text, flags=re.IGNORECASE))
    cluster = run_with_damaged_cache(case, seed, tmp_path)
    cluster.end()
    expected = oracle(case.text, without_late_rows(case), time=case.time)
    assert_same_rows(cluster.result_before_end(), expected, message=repr(case))


def test_an_engine_is_found_in_the_process_then_in_files_else_it_is_rebuilt(tmp_path: Path) -> None:
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


def test_streams_may_have_names_that_the_header_of_the_cache_uses(tmp_path: Path) -> None:
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


def test_without_a_writable_cache_engines_are_rebuilt(tmp_path: Path) -> None:
    case = plain_case()
    (tmp_path / "file").write_text("not a directory")
    cluster = cached_cluster(case, tmp_path / "file")
    for rows in batches(case):
        cluster.batch(rows)
    assert cluster.engines_opened == ["new", "rebuilt", "rebuilt", "rebuilt"]
    assert_same_rows(cluster.result(), oracle(case.text, case.streams))


def test_engines_with_windows_that_count_rows_are_kept_only_in_their_process(tmp_path: Path) -> None:
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


def test_an_engine_of_another_run_is_not_used_if_a_lateness_has_changed(tmp_path: Path) -> None:
    """A query may go on with another lateness; an engine built for the old one would refuse every plan change."""
    case = plain_case("SELECT a.n AS an, b.n AS bn FROM a [ROWS 7], b [ROWS 3] WHERE a.k = b.k")
    cluster = cached_cluster(case, tmp_path)
    first, second, *_ = batches(case)
    cluster.batch(first)
    patient = cached_cluster(replace(case, lateness=dict.fromkeys("ab", 1_000_000)), tmp_path)
    patient.stores = cluster.stores
    patient.batch(second, message=json.dumps({"plan": ["a", "b"]}).encode())
    assert patient.engines_opened == ["rebuilt"]
    assert patient.reports[-1].rejected_messages == 0
