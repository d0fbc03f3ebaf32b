"""Fields of structs and elements of arrays and maps: as keys, in conditions and in results, equal to the oracle."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import braid
from braid.errors import QueryError
from braid.testing import assert_same_rows, oracle

NESTED = pa.struct({"id": pa.int64(), "inner": pa.struct({"k": pa.int64()})})
VALUES = ("{s}.p.id", "{s}.p.inner.k", "{s}.l[0]", "{s}.l[1]", "{s}.l[{s}.p.id]", "{s}.m['x']", "{s}.q[0].k")
PLANS = (None, {"a": ["b", "c"], "b": ["c", "a"], "c": ["b", "a"]}, (("a", "c"), "b"))


def rows(seed: int, count: int = 40) -> pa.Table:
    generator = np.random.default_rng(seed)

    def number() -> int | None:
        return None if generator.random() < 0.15 else int(generator.integers(0, 4))

    def maybe(value: Any) -> Any:
        return None if generator.random() < 0.1 else value

    def some() -> range:
        return range(generator.integers(0, 3))

    columns = {
        "p": ([maybe({"id": number(), "inner": maybe({"k": number()})}) for _ in range(count)], NESTED),
        "l": ([maybe([number() for _ in some()]) for _ in range(count)], pa.list_(pa.int64())),
        "m": ([maybe([("xyz"[i], number()) for i in some()]) for _ in range(count)], pa.map_(pa.string(), pa.int64())),
        "q": (
            [maybe([maybe({"k": number()}) for _ in some()]) for _ in range(count)],
            pa.list_(pa.struct({"k": pa.int64()})),
        ),
    }
    times = np.sort(generator.integers(0, 20, count)) * 1_000_000
    arrays = {name: pa.array(values, type_) for name, (values, type_) in columns.items()}
    return pa.table({"ts": pa.array(times, pa.timestamp("us")), "id": np.arange(count), **arrays})


STREAMS = {name: rows(seed) for seed, name in enumerate("abc")}


@st.composite
def texts(draw: st.DrawFn) -> str:
    def value(stream: str) -> str:
        return draw(st.sampled_from(VALUES)).format(s=stream)

    pairs = [("a", "b"), ("b", "c")]
    keys = [f"{value(left)} = {value(right)}" for left, right in pairs]
    more = draw(st.sampled_from([f"{value('a')} < {value('c')}", f"{value('b')} <> 2", f"{value('c')} IS NOT NULL"]))
    selected = ", ".join(f"{value(stream)} AS v{stream}" for stream in "abc")
    sources = "a [RANGE 6 SECONDS], b [RANGE 4 SECONDS], c [RANGE 5 SECONDS]"
    return f"SELECT a.id AS ia, b.id AS ib, c.id AS ic, {selected} FROM {sources} WHERE {' AND '.join([*keys, more])}"


@settings(max_examples=60, deadline=None)
@given(text=texts(), plan=st.sampled_from(PLANS), batch_rows=st.sampled_from([None, 1, 7, 16]))
def test_elements_equal_the_oracle_in_every_plan(text: str, plan: Any, batch_rows: int | None) -> None:
    assert_same_rows(braid.run(text, STREAMS, plan=plan, batch_rows=batch_rows), oracle(text, STREAMS))


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("a.id.x", "a.id is int64, which has no fields"),
        ("a.p.ids", "a.p has no field 'ids'"),
        ("a.id[0]", "a.id is int64, which has no elements"),
        ("a.p[0]", "a.p is struct<id: int64, inner: struct<k: int64>>, which has no elements"),
        ("a.l['x']", "the position in an array is a whole number, not 'x' (string)"),
        ("a.l[1.5]", "the position in an array is a whole number, not 1.5 (decimal128(2, 1))"),
        ("a.l[0:1]", "one position or key stands in these brackets"),
        ("z.p.id", "'z' is not a stream of this query"),
    ],
)
def test_what_has_no_elements_is_refused(expression: str, problem: str) -> None:
    with pytest.raises(QueryError) as caught:
        braid.run(f"SELECT {expression} FROM a [NOW]", {"a": STREAMS["a"]})
    assert caught.value.problem == problem
    assert caught.value.span is not None


@pytest.mark.parametrize(
    "layout",
    [pa.list_(pa.int64(), 2), pa.large_list(pa.int64()), pa.list_view(pa.int64()), pa.large_list_view(pa.int64())],
)
def test_every_layout_of_lists_has_elements(layout: pa.DataType) -> None:
    lists = pa.array([[1, 2], None, [None, 4], [5, 6]], layout)
    table = pa.table({"ts": pa.array([1, 2, 3, 4], pa.timestamp("us")), "l": lists}).slice(1)
    result = braid.run("SELECT a.l[1] AS v FROM a [NOW]", {"a": table})
    assert result.column("v").to_pylist() == [None, 4, 6]


def test_elements_of_sliced_columns() -> None:
    maps = pa.array(
        [[("x", 1)], [("y", 2), ("x", 3)], None, [("x", None)], [("x", 9)]], pa.map_(pa.string(), pa.int32())
    )
    table = pa.table({"ts": pa.array(range(5), pa.timestamp("us")), "m": maps, "k": ["x", "y", "x", "x", "z"]})
    result = braid.run("SELECT a.m['x'] AS x, a.m[a.k] AS y FROM a [NOW]", {"a": table.slice(1)})
    assert result.to_pylist() == [{"x": 3, "y": 2}, {"x": None, "y": None}, {"x": None, "y": None}, {"x": 9, "y": None}]
