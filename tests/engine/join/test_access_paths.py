"""Access paths: every path gives the same results, and a hot key beside a band costs no more work than other keys."""

from itertools import product

import numpy as np
import pyarrow as pa
import pytest

import braid
from braid.engine.engine import Engine
from braid.engine.segment import Segment
from braid.language import parse
from braid.model.plan import Plan
from braid.model.stream import Stream
from braid.planning.lowering.one_site import lower
from braid.testing import assert_same_rows, oracle

HOT = "SELECT a.n AS an, b.n AS bn FROM a [RANGE 1 HOUR], b [RANGE 1 HOUR] WHERE a.k = b.k AND {band}"
BAND = "a.p BETWEEN b.p - 5 AND b.p + 5"
PATHS = ("key", "band", "key and band")


def rows(seed: int, count: int, kind: pa.DataType | None = None, prices: int = 100_000) -> pa.Table:
    """Half of the rows have one key."""
    generator = np.random.default_rng(seed)
    keys = np.where(generator.random(count) < 0.5, 0, generator.integers(1, count, count))
    return pa.table(
        {
            "ts": pa.array(np.arange(count) * 1_000, pa.timestamp("us")),
            "k": pa.array(keys),
            "t": pa.array([f"key {key}" for key in keys]),
            "p": pa.array(generator.integers(0, prices, count)).cast(kind or pa.int64()),
            "n": np.arange(count),
        }
    )


def compared(path: str, count: int = 4_000) -> tuple[int, int]:
    """The rows that are compared with a hot key by an access path, and the matches."""
    streams = {name: rows(seed, count) for seed, name in enumerate("ab")}
    query = parse(HOT.format(band=BAND), {name: Stream(name, table.schema, "ts") for name, table in streams.items()})
    engine = Engine(lower(Plan.of(query, {"a": [{"b": path}], "b": [{"a": path}]})))
    segments = [Segment(name, table.combine_chunks().to_batches()[0]) for name, table in streams.items()]
    emitted = sum(batch.num_rows for batch in engine.step(segments))
    joins = engine.counts().joins
    assert emitted == sum(join.matches for join in joins) > 100
    return sum(join.candidates for join in joins), emitted


def test_the_work_of_a_hot_key_beside_a_band() -> None:
    """By the key, each row is compared with half of the others; by key and band, almost only with its matches."""
    by_key, matches = compared("key")
    by_band, _ = compared("band")
    by_both, _ = compared("key and band")
    assert by_key > 1_000 * matches
    assert by_band < 8 * matches
    assert by_both < 1.1 * matches


@pytest.mark.parametrize(
    ("path", "kind", "key", "bits"),
    list(product(PATHS, (pa.int16(), pa.int64(), pa.float64(), pa.decimal128(22, 2)), ("k", "t"), (64, 2))),
)
def test_every_path_gives_the_results_of_the_oracle(path: str, kind: pa.DataType, key: str, bits: int) -> None:
    """Also if hashes of keys collide, with texts as keys, and where values wrap around."""
    text = HOT.format(band=BAND.replace("5", "500")).replace("a.k = b.k", f"a.{key} = b.{key}")
    streams = {name: rows(seed, 150, kind, 30_000) for seed, name in enumerate("ab")}
    query = parse(text, {name: Stream(name, table.schema, "ts") for name, table in streams.items()})
    engine = Engine(lower(Plan.of(query, {"a": [{"b": path}], "b": [{"a": path}]})), hash_bits=bits)
    results = []
    for first in range(0, 150, 40):
        part = {name: table.slice(first, 40).combine_chunks() for name, table in streams.items()}
        results += engine.step([Segment(name, table.to_batches()[0]) for name, table in part.items()])
    expected = oracle(text, streams)
    assert expected.num_rows > 50
    assert_same_rows(pa.Table.from_batches(results, engine.schema), expected)


def on_trial(new: str, old: str) -> Engine:
    """An engine that has taken rows with a hot key by a new path on trial against an old one."""
    streams = {name: rows(seed, 8_000) for seed, name in enumerate("ab")}
    query = parse(HOT.format(band=BAND), {name: Stream(name, table.schema, "ts") for name, table in streams.items()})
    before, after = (lower(Plan.of(query, {"a": [{"b": path}], "b": [{"a": path}]})) for path in (old, new))
    engine = Engine(before)
    engine.change(after, before)
    engine.step([Segment(name, table.combine_chunks().to_batches()[0]) for name, table in streams.items()])
    return engine


def test_a_path_that_compares_too_many_rows_is_left_in_the_middle_of_a_step() -> None:
    engine = on_trial("key", "key and band")
    trial = engine.counts().trials["b"]
    assert trial.left == 1
    assert sum(join.work for join in engine.counts().joins) < 300_000, "by the key alone it is 16 million"


def test_a_path_that_costs_less_takes_most_rows() -> None:
    trial = on_trial("key and band", "key").counts().trials["b"]
    assert trial.left == 0
    assert trial.old_work > 100 * trial.new_work


def indexes(engine: Engine) -> list[list[list[int]]]:
    """What the indexes of each window are on."""
    windows = [inlet["window"] for inlet in engine.state()["joins"]["streams"].values()]
    return [[classes for classes, *_ in window["indexes"]] for window in windows]


@pytest.mark.parametrize("path", PATHS)
def test_samples_use_the_index_of_the_path(path: str) -> None:
    """Whatever the index is on, the fan-out of a sample is right, and no other index is built for it."""
    streams = {name: rows(seed, 1_000, prices=500) for seed, name in enumerate("ab")}
    query = parse(HOT.format(band=BAND), {name: Stream(name, table.schema, "ts") for name, table in streams.items()})
    engine = Engine(lower(Plan.of(query, {"a": [{"b": path}], "b": [{"a": path}]})))
    results = engine.step([Segment(name, table.combine_chunks().to_batches()[0]) for name, table in streams.items()])
    before = indexes(engine)
    (fanout,) = (fanout for fanout in engine.sample({"a": 1_000, "b": 1_000}, 1_000) if fanout.head == "b")
    assert fanout.mean == sum(batch.num_rows for batch in results) / 1_000
    assert indexes(engine) == before


def test_the_path_can_change_while_the_query_runs() -> None:
    text = HOT.format(band=BAND)
    streams = {name: rows(seed, 300, prices=500) for seed, name in enumerate("ab")}
    switches = {2: {"a": [{"b": "key"}], "b": ["a"]}, 4: {"a": ["b"], "b": [{"a": "band"}]}, 6: (("a", "b"))}
    result = braid.run(text, streams, batch_rows=30, switches=switches)
    assert_same_rows(result, oracle(text, streams))
