"""What the controller of a network knows of parts of the keys: histograms from sketches, and joins of some keys."""

import numpy as np
import pyarrow as pa
import pytest

from braid.adapt.network.figures import INTAKES, SiteFigures
from braid.adapt.network.key_histograms import have_moved, histograms_of
from braid.adapt.network.monitor import NetworkMonitor
from braid.adapt.sketch import MOST_NAMED, KeySketch
from braid.engine.keys.hashing import key_words
from braid.errors import ModelError
from braid.language import parse
from braid.model.query import Query
from braid.model.statistics import Others, Statistics
from braid.model.stream import Stream
from braid.planning.solution.written import Written


def query(kind: pa.DataType, names: str = "ab") -> Query:
    schema = pa.schema({"ts": pa.timestamp("us"), "k": kind})
    sources = ", ".join(f"{name} [RANGE 9 SECONDS]" for name in names)
    equal = " AND ".join(f"{names[0]}.k = {name}.k" for name in names[1:])
    return parse(
        f"SELECT {names[0]}.k FROM {sources} WHERE {equal}", {name: Stream(name, schema, "ts", 0) for name in names}
    )


def sketch_of(seed: int, hot: int, kind: pa.DataType, batches: int = 80) -> KeySketch:
    """Half of the rows have one key, the others one of 500."""
    choose, sketch = np.random.default_rng(seed), KeySketch()
    for _ in range(batches):
        numbers = np.where(choose.random(100) < 0.5, hot, choose.integers(1_000, 1_500, 100))
        keys = pa.array([f"key {number}" for number in numbers]) if kind == pa.string() else pa.array(numbers, kind)
        batch = KeySketch()
        batch.feed(key_words(keys), kind, keys)
        sketch.merge(batch)
    return sketch


@pytest.mark.parametrize("kind", [pa.int64(), pa.string(), pa.float64()], ids=str)
def test_frequent_keys_are_listed_and_all_others_counted(kind: pa.DataType) -> None:
    sketches = {("a", 0): sketch_of(1, 7, kind), ("b", 0): sketch_of(2, 8, kind)}
    through_bytes = {key: KeySketch.from_bytes(sketch.to_bytes()) for key, sketch in sketches.items()}
    histograms = histograms_of(query(kind), through_bytes, {"a": 100.0, "b": 10.0})
    seven, eight = ("key 7", "key 8") if kind == pa.string() else (7, 8)
    a, b = histograms["a.k"], histograms["b.k"]
    (others,) = (key for key in a if isinstance(key, Others))
    assert a.keys() == b.keys() == {seven, eight, others}
    assert others.count == pytest.approx(500, rel=0.35)
    assert (a[seven], b[eight]) == (pytest.approx(50, rel=0.1), pytest.approx(5, rel=0.1))
    assert a[eight] < 1
    assert sum(a.values()) == pytest.approx(100)


def test_a_stream_of_few_rows_has_no_more_rows_by_key_than_it_has() -> None:
    """It has shown one key, in too few rows to call it frequent; the other stream has two frequent keys."""
    few, many = KeySketch(), KeySketch()
    few.feed(key_words(pa.array([1] * 4)), pa.int64())
    many.feed(key_words(pa.array([1] * 9 + [0] * 6)), pa.int64())
    histograms = histograms_of(query(pa.int64()), {("a", 0): few, ("b", 0): many}, {"a": 2.0, "b": 10.0})
    assert {0, 1} < histograms["a.k"].keys()
    for column, rate in (("a.k", 2.0), ("b.k", 10.0)):
        assert all(of_key >= 0 for of_key in histograms[column].values())
        assert sum(histograms[column].values()) == pytest.approx(rate)


def test_streams_with_the_same_keys_have_the_same_histogram() -> None:
    """They differ only by chance, and parts that follow chance save nothing."""
    sketches = {("a", 0): sketch_of(1, 7, pa.int64()), ("b", 0): sketch_of(2, 7, pa.int64())}
    histograms = histograms_of(query(pa.int64()), sketches, {"a": 10.0, "b": 10.0})
    assert histograms["a.k"] == histograms["b.k"]
    too_few = {("a", 0): sketch_of(1, 7, pa.int64(), 1), ("b", 0): sketch_of(2, 8, pa.int64(), 1)}
    histograms = histograms_of(query(pa.int64()), too_few, {"a": 10.0, "b": 10.0})
    assert histograms["a.k"] == histograms["b.k"]


def test_histograms_move_when_rows_have_other_keys() -> None:
    others = Others(10)
    before = {"a.k": {1: 5.0, others: 5.0}}
    assert not have_moved(before, {"a.k": {1: 50.0, others: 50.0}}, 0.15)
    assert not have_moved(before, {"a.k": {1: 6.0, Others(12): 4.0}}, 0.15)
    assert have_moved(before, {"a.k": {1: 8.0, others: 2.0}}, 0.15)
    assert have_moved(before, {"a.k": {2: 5.0, others: 5.0}}, 0.15)
    assert have_moved(before, {}, 0.15)


def test_a_sketch_keeps_only_frequent_keys() -> None:
    sketch = KeySketch()
    for batch in range(40):
        keys = pa.array([f"{batch} {number}" for number in range(60)] + ["often"] * 40 + ["x" * 1_000] * 40)
        sketch.feed(key_words(keys), pa.string(), keys)
        sketch.merge(KeySketch())
    words = key_words(pa.array(["often", "x" * 1_000])).tolist()
    assert sketch.keys(pa.string(), words) == {words[0]: "often"}
    assert len(sketch._keys) <= MOST_NAMED
    with pytest.raises(ModelError, match="not a sketch of keys"):
        KeySketch.from_bytes(sketch.to_bytes().replace(b'"words"', b'"weird"'))


def test_joins_of_some_keys_are_not_taken_for_joins_of_all() -> None:
    """Only one of two parts joins a with b first. What it makes says nothing of the keys of the other part."""
    joined = query(pa.int64(), "abc")
    rates = {frozenset("ab"): 3.0, frozenset("abc"): 2.0}
    parts = [{"tree": "..", "values": "", "ranges": [], "others": []}] * 2
    divided: Written = {"tree": "..", "joins": [{"inputs": [["a"], ["b"], ["c"]], "parts": parts}]}
    for plan, known in ((None, {frozenset("ab"), frozenset("abc")}), (divided, {frozenset("abc")})):
        monitor = NetworkMonitor(joined, {"a": "paris", "b": "lyon", "c": "nice"})
        monitor.follow(1, plan)
        monitor.hear(SiteFigures("paris", INTAKES, dict.fromkeys("abc", 10.0), reached=1))
        monitor.hear(SiteFigures("lyon", 1, rates, reached=1))
        statistics = monitor.statistics()
        assert isinstance(statistics, Statistics)
        measured = {subject for subject, share in statistics.selectivities.items() if share < 1}
        assert measured == known


def test_a_stream_of_which_few_rows_were_seen_has_no_more_rows_than_all() -> None:
    """Each key that is frequent in the other stream counts like a key of this one, of which only six are known."""
    sketches = {("a", 0): KeySketch(), ("b", 0): KeySketch()}
    sketches["a", 0].feed(np.repeat(np.arange(10), 50), pa.int64())
    sketches["b", 0].feed(np.arange(100, 106), pa.int64())
    few = histograms_of(query(pa.int64()), sketches, {"a": 10.0, "b": 1.0})["b.k"]
    assert sum(few.values()) == pytest.approx(1.0)
    assert min(few.values()) >= 0
