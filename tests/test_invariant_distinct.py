"""SELECT DISTINCT equals the oracle: one of the results with the same columns and the same event time."""

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import braid
from braid.errors import PlanningError, QueryError
from braid.model.network.topology import Topology
from braid.model.statistics import Statistics
from braid.testing import assert_same_rows, oracle

SOURCES = "a [RANGE 5 SECONDS], b [RANGE 3 SECONDS]"
TEXTS = (
    f"SELECT DISTINCT a.k FROM {SOURCES} WHERE a.k = b.k",
    f"SELECT DISTINCT a.w, b.k + 1 AS next FROM {SOURCES} WHERE a.k <= b.k",
    f"SELECT DISTINCT a.l, a.p, b.w FROM {SOURCES} WHERE a.k = b.k",
    "SELECT DISTINCT * FROM a [ROWS 4]",
    "SELECT DISTINCT a.k, b.k FROM a [RANGE 5 SECONDS] LEFT JOIN b [RANGE 3 SECONDS] ON a.k = b.k AND b.w > 0.0",
    f"SELECT DISTINCT a.k FROM {SOURCES} WHERE a.k = b.k AND NOT EXISTS (SELECT * FROM b [NOW] AS c WHERE c.k > a.k)",
)
NUMBERS = st.sampled_from([0.0, -0.0, 1.5, float("nan"), None])


@st.composite
def streams(draw: st.DrawFn) -> dict[str, pa.Table]:
    tables = {}
    for name in "ab":
        count = draw(st.integers(1, 14))
        times = sorted(draw(st.lists(st.integers(0, 6), min_size=count, max_size=count)))
        keys = draw(st.lists(st.one_of(st.none(), st.integers(0, 2)), min_size=count, max_size=count))
        numbers = draw(st.lists(NUMBERS, min_size=count, max_size=count))
        tables[name] = pa.table(
            {
                "ts": pa.array([time * 1_000_000 for time in times], pa.timestamp("us")),
                "k": pa.array(keys, pa.int64()),
                "w": pa.array(numbers, pa.float64()),
                "l": pa.array([None if key is None else [key, None] for key in keys], pa.list_(pa.int64())),
                "p": pa.array([{"w": number} for number in numbers], pa.struct({"w": pa.float64()})),
            }
        )
    return tables


@settings(max_examples=100, deadline=None)
@given(tables=streams(), text=st.sampled_from(TEXTS), batch_rows=st.sampled_from([None, 1, 3]))
def test_distinct_results(tables: dict[str, pa.Table], text: str, batch_rows: Any) -> None:
    assert_same_rows(braid.run(text, tables, batch_rows=batch_rows), oracle(text, tables))


def test_repeated_results_are_left_out() -> None:
    table = pa.table({"ts": pa.array([1, 1, 2], pa.timestamp("us")), "k": [5, 5, 5]})
    assert braid.run("SELECT DISTINCT k FROM s [NOW]", {"s": table}).column("k").to_pylist() == [5, 5]


def test_maps_cannot_be_compared() -> None:
    maps = pa.array([[("x", 1)]], pa.map_(pa.string(), pa.int64()))
    table = pa.table({"ts": pa.array([1], pa.timestamp("us")), "m": maps})
    with pytest.raises(QueryError, match=r"DISTINCT compares results, and s\.m, which is map<string, int64>, cannot"):
        braid.run("SELECT DISTINCT * FROM s [NOW]", {"s": table})


def test_over_a_network_distinct_is_refused() -> None:
    network = Topology.from_links([("x", "y", 1.0)])
    known = Statistics(rates={"a": 1, "b": 1}, selectivities={"a.k = b.k": 0.1}, sites={"a": "x", "b": "y"})
    with pytest.raises(PlanningError, match="queries with DISTINCT run at one site"):
        braid.plan(TEXTS[0], known, network)
