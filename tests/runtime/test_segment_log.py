"""Segments in a store: small ones are merged, and their order is kept."""

import numpy as np
import pyarrow as pa
import pytest

from braid.engine.segment import Segment
from braid.model.window import FOREVER
from braid.runtime.manifest import Manifest
from braid.runtime.segment_log import MANY, SMALL_MERGED, LoggedStream, SegmentLog
from braid.runtime.store import DictionaryStore


def empty_log() -> tuple[SegmentLog, Manifest]:
    manifest = Manifest({}, {})
    return SegmentLog(DictionaryStore(), manifest, {"a": LoggedStream(0, "ts")}), manifest


@pytest.mark.parametrize("every", [1, 5, 16])
@pytest.mark.parametrize("largest", [1, 2, 5_000])
def test_segments_of_any_size_stay_few_and_are_seldom_rewritten(every: int, largest: int) -> None:
    """Segments are merged only after every `every`-th batch, as a shard merges one stream per step."""
    generator = np.random.default_rng(every + largest)
    log, manifest = empty_log()
    added, written = 0, 0
    for number in range(1_000):
        times = np.full(generator.integers(1, largest + 1), number)
        rows = pa.record_batch({"ts": pa.array(times).cast(pa.timestamp("us")), "n": times})
        segment = Segment("a", rows, newest=number)
        log.add(segment, -FOREVER, FOREVER)
        added += manifest.entries["a"][-1].size
        before = {entry.number for entry in manifest.entries["a"]}
        if number % every == 0:
            log.merge("a")
        written += sum(entry.size for entry in manifest.entries["a"] if entry.number not in before)
    assert len(manifest.entries["a"]) < 32
    assert written <= added
    numbers = np.concatenate([segment.rows.column("n").to_numpy() for segment in log.segments("a")])
    assert list(dict.fromkeys(numbers.tolist())) == list(range(1_000))


@pytest.mark.parametrize("every", [2, 5, 10])
def test_segments_stay_few_if_the_newest_is_small_at_every_merge(every: int) -> None:
    generator = np.random.default_rng(every)
    log, manifest = empty_log()
    for number in range(300):
        size = 1 if number % every == 0 else 500
        rows = pa.record_batch({"ts": pa.array([number] * size, pa.timestamp("us")), "n": generator.random(size)})
        segment = Segment("a", rows, newest=number)
        log.add(segment, -FOREVER, FOREVER)
        if number % every == 0:
            log.merge("a")
    assert len(manifest.entries["a"]) < 32
    times = [segment.rows.column("ts").cast(pa.int64()).to_pylist() for segment in log.segments("a")]
    assert list(dict.fromkeys(time for segment_times in times for time in segment_times)) == list(range(300))


def test_large_segments_are_merged_only_if_there_are_many() -> None:
    generator = np.random.default_rng(7)
    log, manifest = empty_log()
    for number in range(4 * MANY):
        values = generator.random(SMALL_MERGED // 4 // 8)
        rows = pa.record_batch({"ts": pa.array([number] * len(values), pa.timestamp("us")), "n": values})
        segment = Segment("a", rows, newest=number)
        log.add(segment, -FOREVER, FOREVER)
        log.merge("a")
        if number < MANY:
            assert len(manifest.entries["a"]) == number + 1
    assert len(manifest.entries["a"]) <= MANY
