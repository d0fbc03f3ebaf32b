"""Which access path costs least: the key for keys of few rows, key and band for hot keys."""

from math import inf

import numpy as np
import pyarrow as pa
import pytest

import braid
from braid.adapt.adaptation import Adaptation
from braid.adapt.costing import Costing
from braid.engine.segment import Segment
from braid.model.plan import Plan
from braid.model.statistics import Statistics
from braid.runtime.shard import Shard, ShardSettings
from braid.testing import assert_same_rows, oracle

SCHEMA = pa.schema({"ts": pa.timestamp("us"), "k": pa.int64(), "p": pa.int64()})
TEXT = (
    "SELECT a.p AS ap, b.p AS bp FROM a [RANGE 2 SECONDS], b [RANGE 2 SECONDS] WHERE a.k = b.k AND abs(a.p - b.p) <= 5"
)
QUERY = braid.parse(TEXT, {name: braid.Stream(name, SCHEMA, "ts") for name in "ab"})
DEFAULT = Plan.in_text_order(QUERY)
BY_KEY = {("a", "b"): "key", ("b", "a"): "key"}


def statistics(equal: float, matching: float) -> Statistics:
    return Statistics(
        rates={"a": 1_000, "b": 1_000},
        populations={"a": 10_000, "b": 10_000},
        selectivities={"a.k = b.k": equal, frozenset("ab"): matching},
    )


@pytest.mark.parametrize(
    ("equal", "matching", "paths"),
    [
        (0.25, 0.000_01, {}),  # a hot key: 2,500 rows of it for each probe
        (0.000_05, 0.000_01, BY_KEY),  # half a row for each probe
        (0.000_05, 0.000_05, BY_KEY),  # the band excludes no pair
    ],
)
def test_the_cheapest_path(equal: float, matching: float, paths: dict[tuple[str, str], str]) -> None:
    costing = Costing(QUERY, statistics(equal, matching))
    best = costing.best(DEFAULT)
    assert best.paths == paths
    others = [DEFAULT.with_paths(dict.fromkeys(BY_KEY, path)) for path in ("key", "band", "key and band")]
    assert costing.cost(best) == min(map(costing.cost, others))
    assert costing.transition(best, others[1]) > costing.transition(best, best) == 0


def test_without_the_share_of_equal_keys_the_default_remains() -> None:
    unknown = Statistics({"a": 9, "b": 9}, populations={"a": 9, "b": 9}, selectivities={frozenset("ab"): 0.1})
    assert Costing(QUERY, unknown).best(DEFAULT) == DEFAULT


def table(generator: np.random.Generator, second: int, hot: bool) -> pa.Table:
    """The rows of a second: half of them of one key, or all of keys that hardly ever come twice."""
    count = 500
    keys = (
        generator.integers(0, 1_000_000, count) if not hot else np.where(generator.random(count) < 0.5, 0, 1 + second)
    )
    times = second * 1_000_000 + np.arange(count) * (1_000_000 // count)
    return pa.table({"ts": pa.array(times, pa.timestamp("us")), "k": keys, "p": generator.integers(0, 9_999, count)})


def test_a_running_query_changes_its_path_with_its_keys() -> None:
    """Rare keys first, then a hot one: the path changes to the key and back, and the results are the oracle's."""
    generator = np.random.default_rng(5)
    shard, adaptation = Shard(QUERY, DEFAULT, ShardSettings(sampling=inf)), Adaptation(DEFAULT, True)
    streams: dict[str, list[pa.Table]] = {"a": [], "b": []}
    results, paths, reasons = [], [], []
    for second in range(40):
        for tables in streams.values():
            tables.append(table(generator, second, hot=second >= 20))
        batch = [Segment(name, tables[-1].to_batches()[0]) for name, tables in streams.items()]
        step_results, report = shard.step(batch)
        results += step_results
        change = adaptation.observe(report.observation, float(second), second)
        if change is not None:
            reasons.append(change.reason.split(" of the work")[0])
            shard.change(change.after, change.against)
        paths.append(dict(shard.plan.paths))
    results += shard.finish()
    assert paths[19] == BY_KEY
    assert paths[39] == {}
    verdicts = [change.verdict for change in adaptation.history.changes]
    assert verdicts == ["kept"] * len(verdicts), "both paths are measured on rows of the batch"
    assert {reason.rstrip("0123456789%") for reason in reasons} == {"another index saves ", "the trial is over: kept"}
    expected = oracle(TEXT, {name: pa.concat_tables(tables) for name, tables in streams.items()})
    assert_same_rows(pa.Table.from_batches(results, shard.engine.schema), expected)
