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
def test_a_sample_of_all_rows_is_exact(query: Query, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under one plan, the sample shows what the joins of every other plan count."""
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


def test_with_many_streams_only_pairs_are_sampled() -> None:
    names = "abcdef"
    schema = batch(np.random.default_rng(0), 0).schema
    text = "SELECT a.n AS an FROM " + ", ".join(f"{name} [RANGE 2 SECONDS]" for name in names)
    text += " WHERE " + " AND ".join(f"a.x = {name}.x" for name in names[1:])
    query = parse(text, {name: Stream(name, schema, "ts") for name in names})
    engine = Engine(lower(Plan.in_text_order(query)))
    engine.step([Segment(name, batch(np.random.default_rng(1), 0).slice(0, 5), 0) for name in names])
    assert {len(fanout.bound) for fanout in engine.sample(dict.fromkeys(names, 5))} == {2}
