"""Orders by part that the controller chooses: keys in cells, what parts cost, and parts that come and go."""

from itertools import product

import numpy as np
import pyarrow as pa
import pytest

from braid.adapt.cells import Cells, RangeCells, ValueCells, cells_of
from braid.adapt.costing import Costing
from braid.adapt.dividing import Dividing
from braid.adapt.quantiles import Quantiles
from braid.adapt.sketch import KeySketch
from braid.engine.join.partitions import covered
from braid.engine.keys.hashing import key_words
from braid.language import parse
from braid.model.graph import AttributeClass
from braid.model.plan import Plan
from braid.model.query import Query
from braid.model.statistics import Statistics
from braid.model.stream import Stream

TEXT = """SELECT * FROM a [RANGE 5 SECONDS], b [RANGE 5 SECONDS], c [RANGE 5 SECONDS] WHERE a.k = b.k AND b.k = c.k"""
B_FIRST, C_FIRST = (
    {"a": ["b", "c"], "b": ["c", "a"], "c": ["b", "a"]},
    {"a": ["c", "b"], "b": ["c", "a"], "c": ["b", "a"]},
)
KINDS = [pa.int64(), pa.float64(), pa.int32(), pa.date32(), pa.timestamp("us"), pa.string()]


def query(kind: pa.DataType | None = None) -> Query:
    schema = pa.schema({"ts": pa.timestamp("us"), "k": kind or pa.int64()})
    return parse(TEXT, {name: Stream(name, schema, "ts") for name in "abc"})


def as_kind(keys: np.ndarray, kind: pa.DataType) -> pa.Array:
    if pa.types.is_string(kind):
        return pa.array([f"key {key}" for key in keys])
    return pa.array(keys.astype(np.int32)).cast(kind) if pa.types.is_date32(kind) else pa.array(keys).cast(kind)


def sketches(keys: dict[str, np.ndarray], kind: pa.DataType) -> dict[str, KeySketch]:
    sketches = {}
    for stream, numbers in keys.items():
        shards = [KeySketch(), KeySketch()]
        for shard, rows in zip(shards, np.array_split(key_words(as_kind(numbers, kind)), 2), strict=True):
            for batch in np.array_split(rows, 20):
                shard.feed(np.sort(batch), kind)
        sketches[stream] = KeySketch.from_bytes(shards[0].to_bytes())
        sketches[stream].merge(shards[1])
    return sketches


def opposed(seed: int = 1) -> dict[str, np.ndarray]:
    """Half of the rows of a have key 7, which is frequent in b and rare in c; other keys are rare in b."""
    generator = np.random.default_rng(seed)

    def keys(heavy: float, first: int, last: int) -> np.ndarray:
        return np.where(generator.random(20_000) < heavy, 7, generator.integers(first, last, 20_000))

    return {"a": keys(0.5, 100, 140), "b": keys(0.8, 100, 4_000), "c": keys(0.001, 100, 140)}


def cells(kind: pa.DataType | None = None) -> dict[type[Cells], Cells]:
    attribute_class: AttributeClass = query(kind).graph.classes[0]
    return {type(each): each for each in cells_of(attribute_class, sketches(opposed(), kind or pa.int64()))}


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_cells_say_which_rows_of_a_stream_are_in_a_part(kind: pa.DataType) -> None:
    """Whatever cells a part is made of: its share is that of the rows which the engine puts into it."""
    plans = [Plan.of(query(kind), written) for written in (B_FIRST, C_FIRST)]
    rows = {stream: as_kind(numbers, kind) for stream, numbers in opposed().items()}
    known = cells(kind)
    assert (RangeCells in known) == (not pa.types.is_string(kind))
    for each in known.values():
        divided = each.divide([plans[0], *[plans[1]] * (len(each.distinct) - 1)])
        (partition, _), *_ = divided.parts
        chosen = each.find(partition)
        assert chosen is not None
        for stream, values in rows.items():
            words = key_words(values)
            inside = covered(partition, words, values if pa.types.is_string(kind) else None)
            assert each.fraction([stream], chosen) == pytest.approx(inside.mean(), abs=0.06), (type(each), stream)


def test_the_figures_of_parts_add_up_to_those_of_all_keys() -> None:
    streams = "abc"
    whole = Statistics(
        rates=dict.fromkeys(streams, 100.0),
        populations=dict.fromkeys(streams, 500.0),
        selectivities={frozenset(pair): 0.01 for pair in ("ab", "ac", "bc")},
        fanouts={("a", frozenset(bound)): fanout for bound, fanout in (("ab", 40.0), ("ac", 12.0), ("abc", 3.0))},
    )
    plan = Plan.of(query(), B_FIRST)
    for each in cells().values():
        first = np.arange(len(each.distinct)) < 1
        parts = [each.statistics(whole, chosen) for chosen in (first, ~first)]
        assert sum(part.rates["a"] for part in parts) == pytest.approx(100.0)
        for prefix, fanout in whole.fanouts.items():
            assert sum(part.rates["a"] * part.fanouts[prefix] for part in parts) == pytest.approx(100.0 * fanout)
        costs = [Costing(query(), part).head_cost(plan, "a") for part in parts]
        assert sum(costs) == pytest.approx(Costing(query(), whole).head_cost(plan, "a"))


def test_a_frequent_key_gets_an_order_of_its_own_if_it_needs_another_one() -> None:
    fanouts = {("a", frozenset("ab")): 200.0, ("a", frozenset("ac")): 60.0, ("a", frozenset("abc")): 1.0}
    statistics = Statistics(
        rates=dict.fromkeys("abc", 1_000.0),
        populations=dict.fromkeys("abc", 5_000.0),
        selectivities={frozenset("ab"): 0.04, frozenset("ac"): 0.012, frozenset("bc"): 0.001},
        fanouts=fanouts,
    )
    plan = Plan.of(query(), B_FIRST)
    dividing = Dividing(query(), statistics, [cells()[ValueCells]])
    (best,) = dividing.best(plan)
    ((partition, part),) = best.parts
    assert partition.covers(7) and not partition.covers(100)
    assert (part.sequences["a"], best.sequences["a"]) == (("c", "b"), ("b", "c"))
    cost, whole = dividing.cost(best), dividing.whole.cost(dividing.whole.best(plan))
    assert cost is not None and cost < 0.5 * whole
    other_parts = Plan.of(query(), [({"k": {"hash": [0], "of": 3}}, B_FIRST), ("rest", C_FIRST)])
    assert dividing.cost(other_parts) is None, "nothing is known of these parts"


def test_streams_that_are_alike_are_not_divided() -> None:
    generator = np.random.default_rng(3)
    same = {stream: generator.zipf(1.4, 20_000) % 1_000 for stream in "abc"}
    for each in cells_of(query().graph.classes[0], sketches(same, pa.int64())):
        assert not each.are_different
    assert any(each.are_different for each in cells().values())


@pytest.mark.parametrize(("shards", "rows"), list(product([1, 7], [50, 5_000])))
def test_quantiles_can_be_merged(shards: int, rows: int) -> None:
    numbers = np.random.default_rng(5).normal(size=rows)
    merged = Quantiles()
    for part in np.array_split(numbers, shards):
        of_shard = Quantiles()
        for batch in np.array_split(part, 4):
            of_shard.add(batch, float(len(batch)))
        merged.merge(of_shard)
    assert merged.weight == rows
    limits = np.array([-1.0, 0.0, 0.5])
    assert merged.share_below(limits) == pytest.approx((numbers[:, None] < limits).mean(axis=0), abs=0.05)
