"""Samples along all orders of probes: what they show is what the engine would find."""

from itertools import permutations

import numpy as np
import pyarrow as pa
import pytest

from braid.engine.engine import Engine
from braid.engine.join import sampling
from braid.engine.segment import Segment
from braid.language import parse
from braid.model.plan import Plan
from braid.model.query import Query
from braid.model.stream import Stream
from braid.planning.lowering.one_site import lower
from braid.runtime.fanouts import fanouts_of
from braid.runtime.observing import Watch

CYCLE = """SELECT a.n AS an FROM a [RANGE 3 SECONDS], b [RANGE 2 SECONDS], c [RANGE 4 SECONDS], d [RANGE 3 SECONDS]
           WHERE a.x = b.x AND b.y = c.y AND c.z = d.z AND d.w = a.w AND a.n % 3 <> c.n % 3"""
"""Every order ends with a join on two keys, and most windows lack some of the indexes."""

ROWS = 40


def batch(generator: np.random.Generator, second: int) -> pa.RecordBatch:
    times = np.sort(generator.integers(0, 1_000_000, ROWS)) + second * 1_000_000
    keys = {name: generator.integers(0, 8, ROWS) + generator.integers(0, 8, ROWS) for name in "xyzw"}
    columns = {"ts": pa.array(times, pa.timestamp("us")), "n": np.arange(ROWS)}
    return pa.RecordBatch.from_pydict(columns | keys)


def last_step(query: Query, plan: Plan, seed: int) -> tuple[Engine, Watch]:
    """An engine after some steps, and a watch from before the last one."""
    generator, engine = np.random.default_rng(seed), Engine(lower(plan))
    for second in range(6):
        watch = Watch(engine)
        engine.step([Segment(name, batch(generator, second), second * 1_000_000) for name in query.aliases])
    return engine, watch


@pytest.fixture
def query() -> Query:
    schema = batch(np.random.default_rng(0), 0).schema
    return parse(CYCLE, {name: Stream(name, schema, "ts") for name in "abcd"})


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("most_streams", [4, 3])
def test_a_sample_of_all_rows_is_exact(
    query: Query, seed: int, most_streams: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under one plan, the sample shows what the joins of every other plan count, also if it follows a greedy order."""
    monkeypatch.setattr(sampling, "MOST_STREAMS", most_streams)
    for limit in ("MOST_SAMPLED", "MOST_MATCHES", "MOST_SCANNED", "LARGEST_SCANNED"):
        monkeypatch.setattr(sampling, limit, 1 << 30)
    engine, _ = last_step(query, Plan.in_text_order(query), seed)
    new = dict.fromkeys("abcd", ROWS)
    sampled = {(fanout.head, fanout.bound): fanout.mean for fanout in engine.sample(new, most=1 << 30)}
    compared = set()
    for order in permutations("abcd"):
        plan = Plan(query, {head: tuple(name for name in order if name != head) for head in "abcd"})
        _, watch = last_step(query, plan, seed)
        joins = {(join.bound, join.probed): (join.probes, join.matches) for join in watch.joins()}
        for prefix, fanout in fanouts_of(joins, new).items():
            if prefix in sampled:
                assert sampled[prefix] == pytest.approx(fanout), prefix
                compared.add(prefix)
    assert len(compared) > 15


def test_a_sample_is_small_and_its_intervals_hold_the_truth(query: Query) -> None:
    """A sample takes 20 of the 40 rows. Nine in ten of the true fan-outs are below the upper end of their interval."""
    held = total = 0
    for seed in range(6):
        engine, _ = last_step(query, Plan.in_text_order(query), seed)
        new = dict.fromkeys("abcd", ROWS)
        sampled = {(fanout.head, fanout.bound): fanout for fanout in engine.sample(new, most=20)}
        exact = {(fanout.head, fanout.bound): fanout for fanout in engine.sample(new, most=ROWS)}
        for prefix, fanout in sampled.items():
            most = fanout.mean + 2 * np.sqrt(fanout.variance) + 2 * fanout.per_match / fanout.probes
            held += exact[prefix].mean <= most
            total += 1
            assert fanout.probes <= 256
    assert held > 0.9 * total


def star(names: str, key: str) -> Engine:
    """An engine with forty rows of each stream, all of them joined on a key."""
    schema = batch(np.random.default_rng(0), 0).schema
    text = "SELECT a.n AS an FROM " + ", ".join(f"{name} [RANGE 2 SECONDS]" for name in names)
    text += " WHERE " + " AND ".join(f"a.{key} = {name}.{key}" for name in names[1:])
    query = parse(text, {name: Stream(name, schema, "ts") for name in names})
    engine = Engine(lower(Plan.in_text_order(query)))
    generator = np.random.default_rng(1)
    engine.step([Segment(name, batch(generator, 0), 0) for name in names])
    return engine


def test_with_many_streams_a_sample_follows_a_greedy_order() -> None:
    """The last stream sees the rows of all others. The sets of each size hold the smallest set before them."""
    fanouts = star("abcdef", "x").sample(dict.fromkeys("abcdef", ROWS))
    sampled = {fanout.bound: fanout.mean for fanout in fanouts if fanout.head == "f"}
    by_size = {size: [bound for bound in sampled if len(bound) == size] for size in range(2, 7)}
    assert [len(bounds) for bounds in by_size.values()] == [5, 4, 3, 2, 1]
    for size in range(3, 6):
        least = min(sampled[bound] for bound in by_size[size - 1])
        (before,) = (bound for bound in by_size[size - 1] if all(bound < larger for larger in by_size[size]))
        assert sampled[before] == least


@pytest.mark.parametrize(("streams", "most_probes"), [(5, 4), (6, 5), (8, 7), (10, 4), (20, 1)])
def test_the_more_streams_the_shorter_are_sampled_orders(streams: int, most_probes: int) -> None:
    names = "abcdefghijklmnopqrst"[:streams]
    sizes = {len(fanout.bound) for fanout in star(names, "n").sample(dict.fromkeys(names, ROWS))}
    assert max(sizes) == most_probes + 1
