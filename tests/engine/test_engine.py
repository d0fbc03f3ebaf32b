"""The engine as a whole: situations that random cases seldom reach."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import permutations

import numpy as np
import pyarrow as pa
import pytest

import braid
from braid.engine.counts import JoinCounts
from braid.engine.engine import Engine
from braid.engine.segment import Segment
from braid.errors import PlanError, StreamError
from braid.language import parse
from braid.model.advertisement import Advertisement
from braid.model.partitions import HashPartitions, Partitioning, RangePartition, ValuePartition
from braid.model.plan import Plan
from braid.model.program import Guard, Join, Reuse, Ship, SiteProgram
from braid.model.query import Query
from braid.model.stream import Stream
from braid.planning.lowering.one_site import lower
from braid.testing import assert_same_rows, oracle

SECOND = 1_000_000
THREE = """SELECT a.n AS an, b.n AS bn, c.n AS cn FROM a [RANGE 4 SECONDS], b [RANGE 4 SECONDS], c [RANGE 4 SECONDS]
           WHERE a.k = b.k AND b.k = c.k"""


def stream_rows(seed: int, rows: int, keys: int, seconds: int = 20) -> pa.Table:
    generator = np.random.default_rng(seed)
    times = np.sort(generator.integers(0, seconds * SECOND, rows))
    return pa.table(
        {"ts": pa.array(times, pa.timestamp("us")), "k": generator.integers(0, keys, rows), "n": np.arange(rows)}
    )


def tables(names: str, rows: int = 120, keys: int = 6) -> dict[str, pa.Table]:
    return {name: stream_rows(seed, rows, keys) for seed, name in enumerate(names)}


def bound(text: str, streams: dict[str, pa.Table]) -> Query:
    return parse(text, {name: Stream(name, table.schema, "ts") for name, table in streams.items()})


def feed(
    engine: Engine, streams: dict[str, pa.Table], seconds: int = 20, changes: Mapping[int, SiteProgram] | None = None
) -> pa.Table:
    """The results of feeding rows second by second with exact watermarks; `changes` are programs by second."""
    results = []
    for second in range(seconds):
        if changes and second in changes:
            engine.change(changes[second])
        results += engine.step(segments_of(streams, second * SECOND, SECOND))
    return pa.Table.from_batches([*results, *engine.finish()], engine.schema)


def segments_of(streams: dict[str, pa.Table], begin: int, length: int) -> Iterator[Segment]:
    """The rows of a time as one segment of each stream. The watermark is the beginning of the time."""
    for name, table in streams.items():
        yield Segment(name, _between(table, begin, begin + length), begin)


def _between(table: pa.Table, begin: int, end: int) -> pa.RecordBatch:
    times = table["ts"].cast(pa.int64()).to_numpy()
    first, last = np.searchsorted(times, [begin, end])
    if first == last:
        return pa.RecordBatch.from_pylist([], table.schema)
    return table.slice(first, last - first).combine_chunks().to_batches()[0]


def lower_parts(rest: Plan, parts: Sequence[tuple[Partitioning, Plan]]) -> SiteProgram:
    """A program with parts by partitions of any kind, also of kinds that the parts of a `Plan` cannot have."""
    return replace(lower(rest), parts=tuple((partition, lower(plan)) for partition, plan in parts))


def two_routes(query: Query) -> tuple[SiteProgram, SiteProgram]:
    """Two programs in which each stream probes in one order for some keys, and in the opposite order for the others.

    In the second program, the two orders are exchanged.
    """
    (on_key,) = query.graph.classes
    part = HashPartitions(on_key, 5, frozenset({1, 2}))
    one = Plan(query, {"a": ("b", "c"), "b": ("c", "a"), "c": ("a", "b")})
    other = Plan(query, {"a": ("c", "b"), "b": ("a", "c"), "c": ("b", "a")})
    return lower_parts(one, [(part, other)]), lower_parts(other, [(part, one)])


def test_each_partition_can_have_its_own_plan() -> None:
    streams = tables("abc")
    engine = Engine(two_routes(bound(THREE, streams))[0])
    assert_same_rows(feed(engine, streams), oracle(THREE, streams))
    assert all(join.probes for join in engine.counts().joins)


def test_an_eddy_routes_rows_of_one_stream_differently() -> None:
    """Rows of one stream take different routes, depending on their keys; routes change while rows come."""
    streams = tables("abc")
    before, after = two_routes(bound(THREE, streams))
    engine = Engine(before, strategy="cacq")
    assert_same_rows(feed(engine, streams, changes={7: after, 8: before, 13: after}), oracle(THREE, streams))
    first_probes = {(join.probe, join.stream) for join in engine.counts().joins if join.probes and join.probe in "abc"}
    assert first_probes == set(permutations("abc", 2))
    assert not engine.counts().join_states


KEY_TYPES = {
    "integers": pa.int64(),
    "floats": pa.float64(),
    "texts": pa.string(),
    "wide decimals": pa.decimal128(30, 2),
    "dates": pa.date32(),
}


@pytest.mark.parametrize("key_type", KEY_TYPES.values(), ids=KEY_TYPES)
@pytest.mark.parametrize("by", ["values", "ranges", "values and ranges"])
@pytest.mark.parametrize("hash_bits", [64, 4])
def test_partitions_can_be_sets_or_ranges_of_values(key_type: pa.DataType, by: str, hash_bits: int) -> None:
    streams = {
        name: table.set_column(1, "k", table.column("k").cast(pa.int32()).cast(key_type))
        for name, table in tables("abc").items()
    }
    query = bound(THREE, streams)
    (on_key,) = query.graph.classes
    keys = sorted(set(streams["a"].column("k").to_pylist()))
    low, high = keys[len(keys) // 3], keys[2 * len(keys) // 3]
    if by == "values":
        partitions = [
            ValuePartition(on_key, frozenset(keys[:2])),
            ValuePartition(on_key, frozenset(keys[2:4])),
            ValuePartition(on_key, frozenset(keys[:4]), others=True),
        ]
    elif by == "ranges":
        limits = [(None, low), (low, high), (high, None)]
        partitions = [RangePartition(on_key, begin, end) for begin, end in limits]
    else:
        ranges = ((keys[0], keys[1]), (keys[3], keys[4]))
        partitions = [
            ValuePartition(on_key, frozenset({keys[2]}), ranges=ranges[:1]),
            ValuePartition(on_key, frozenset(), ranges=ranges[1:]),
            ValuePartition(on_key, frozenset({keys[2]}), others=True, ranges=ranges),
        ]
    orders = [("b", "c"), ("c", "b"), ("b", "c")]
    plans = [Plan(query, {"a": order, "b": ("c", "a"), "c": ("a", "b")}) for order in orders]
    # The keys of the second partition are those that the other two leave over.
    first, rest, last = zip(partitions, plans, strict=True)
    engine = Engine(lower_parts(rest[1], [first, last]), hash_bits=hash_bits)
    assert_same_rows(feed(engine, streams), oracle(THREE, streams))
    assert all(join.probes for join in engine.counts().joins)


def test_a_partition_of_values_that_are_not_keys_is_an_error() -> None:
    query = bound(THREE, tables("abc"))
    (on_key,) = query.graph.classes
    part, plan = ValuePartition(on_key, frozenset({"x"})), Plan.in_text_order(query)
    with pytest.raises(PlanError, match=r"a partition of 'a.k = b.k = c.k' takes values of int64"):
        Engine(lower_parts(plan, [(part, plan)]))


def test_a_site_on_its_own_has_no_guards() -> None:
    """Sites apply the guards of site programs before rows enter an engine; parts have programs of their own."""
    program = lower(Plan.in_text_order(bound(THREE, tables("abc"))))
    guarded = [replace(step, guard=Guard(until=7)) if isinstance(step, Join) else step for step in program.instructions]
    with pytest.raises(PlanError, match="takes all rows of 'a'; leave out the guard of its join"):
        Engine(SiteProgram(program.query, tuple(guarded)))


def test_windows_forget_expired_rows() -> None:
    streams = tables("abc", rows=20_000, keys=5_000)
    engine = Engine(lower(Plan.in_text_order(bound(THREE, streams))))
    rows_a_second = 1_000
    most = (4 + 2) * rows_a_second
    for second in range(20):
        engine.step(segments_of(streams, second * SECOND, SECOND))
        assert all(stream.held < most * 1.2 for stream in engine.counts().streams.values())


def test_a_rare_partition_does_not_hold_back_the_others() -> None:
    """One row stays, because its key never comes again; the thousands of rows after it must still expire."""
    rows = 40_000
    keys = np.where(np.arange(rows) == 0, 99, np.arange(rows) % 5)
    times = pa.array(np.arange(rows) * 1_000, pa.timestamp("us"))
    streams = {
        "a": pa.table({"ts": times, "k": keys, "n": np.arange(rows)}),
        "b": pa.table({"ts": times.slice(rows - 50), "k": [99] * 50, "n": np.arange(50)}),
    }
    text = "SELECT a.n AS an, b.n AS bn FROM a [PARTITION BY k ROWS 2], b [ROWS 1] WHERE a.k = b.k"
    query = bound(text, streams)
    engine = Engine(lower(Plan.in_text_order(query)))
    results: list[pa.RecordBatch] = []
    for begin in range(0, rows, 1_000):
        results += engine.step(segments_of(streams, begin * 1_000, SECOND))
        assert engine.counts().streams["a"].held < 6_000
    results += engine.finish()
    assert_same_rows(pa.Table.from_batches(results), oracle(text, streams))


@pytest.mark.parametrize("count", [5, 6, 8])
@pytest.mark.parametrize("hash_bits", [64, 2])
def test_long_sequences_on_one_key(count: int, hash_bits: int) -> None:
    """From six streams on, heads are prefiltered."""
    names = "abcdefgh"[:count]
    streams = tables(names, rows=40, keys=12)
    sources = ", ".join(f"{name} [RANGE 6 SECONDS]" for name in names)
    condition = " AND ".join(f"a.k = {name}.k" for name in names[1:])
    text = f"SELECT {', '.join(f'{name}.n AS {name}n' for name in names)} FROM {sources} WHERE {condition}"
    expected = oracle(text, streams)
    assert expected.num_rows
    assert_same_rows(braid.run(text, streams, batch_rows=7, lateness="20 s", hash_bits=hash_bits), expected)


def test_more_matches_than_fit_in_a_piece() -> None:
    """Both where an index finds the matches and where the window is scanned."""
    streams = tables("ab", rows=600, keys=1)
    for condition in ("a.k = b.k", "a.k <= b.k"):
        text = f"SELECT a.n AS an, b.n AS bn FROM a [UNBOUNDED], b [UNBOUNDED] WHERE {condition}"
        result = braid.run(text, streams)
        assert result.num_rows == 600 * 600
        assert_same_rows(result, oracle(text, streams))


def test_late_rows_and_rows_without_a_time_are_counted() -> None:
    schema = pa.schema({"ts": pa.timestamp("us"), "k": pa.int64(), "n": pa.int64()})
    query = parse(THREE, {name: Stream(name, schema, "ts") for name in "abc"})
    engine = Engine(lower(Plan.in_text_order(query)))
    rows = pa.RecordBatch.from_pydict({"ts": [5, 3, None, 4], "k": [1] * 4, "n": range(4)}, schema)
    engine.step([Segment("a", rows, 4)])
    counts = engine.counts().streams["a"]
    assert (counts.received, counts.late, counts.untimed, counts.held) == (4, 1, 1, 2)


@pytest.mark.parametrize("plan", [None, (("a", "b"), "c"), ("a", ("b", "c"))], ids=["sequences", "left-deep", "bushy"])
def test_watermarks_may_rise_within_a_step(plan: object) -> None:
    """Rows that came under the earlier watermark still match rows that the later watermark lets expire."""
    streams = tables("abc")
    text = (
        "SELECT a.n AS a, b.n AS b, c.n AS c FROM a [RANGE 2 SECONDS], b [RANGE 3 SECONDS], c [RANGE 2 SECONDS] "
        "WHERE a.k = b.k AND b.k = c.k"
    )
    query = bound(text, streams)
    engine = Engine(lower(Plan.of(query, plan)))  # type: ignore[arg-type]
    results = []
    for begin in range(0, 20, 5):
        results += engine.step(
            Segment(name, _between(table, second * SECOND, (second + 1) * SECOND), second * SECOND)
            for name, table in streams.items()
            for second in range(begin, begin + 5)
        )
    actual = pa.Table.from_batches(results + engine.finish(), engine.schema)
    assert_same_rows(actual, oracle(text, streams))


def test_a_segment_with_other_columns_is_an_error() -> None:
    streams = tables("abc")
    engine = Engine(lower(Plan.in_text_order(bound(THREE, streams))))
    with pytest.raises(StreamError, match="stream 'a' was declared with the columns"):
        engine.step([Segment("a", pa.RecordBatch.from_pydict({"ts": [1]}))])


def test_a_site_on_its_own_cannot_ship() -> None:
    streams = tables("abc")
    program = lower(Plan.in_text_order(bound(THREE, streams)))
    with pytest.raises(PlanError, match="cannot ship 'a' to 'elsewhere'"):
        Engine(SiteProgram(program.query, (*program.instructions, Ship("a", "elsewhere"))))


def test_a_site_on_its_own_cannot_reuse_a_stream_of_another_query() -> None:
    query = bound(THREE, tables("abc"))
    names = tuple((alias, alias) for alias in query.aliases)
    with pytest.raises(PlanError, match="cannot reuse a ⋈ b ⋈ c at elsewhere, which another query makes"):
        Engine(SiteProgram(query, (Reuse(Advertisement(query, "elsewhere"), names, "a+b+c"),)))


def test_probes_and_matches_are_counted() -> None:
    streams = tables("abc")
    engine = Engine(lower(Plan.in_text_order(bound(THREE, streams))))
    result = feed(engine, streams)
    counts = engine.counts()
    assert counts.emitted == result.num_rows
    last = [join for join in counts.joins if ">" in join.probe]
    assert _matches(last) == result.num_rows
    first = [join for join in counts.joins if ">" not in join.probe]
    assert {join.probe: join.probes for join in first} == dict.fromkeys("abc", 120)
    assert _matches(first) == sum(join.probes for join in last)


def _matches(joins: Iterable[JoinCounts]) -> int:
    return sum(join.matches for join in joins)
