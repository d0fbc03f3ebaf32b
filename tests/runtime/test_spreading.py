"""Heavy keys that are spread over the shards: every combination still meets in exactly one of them."""

import json
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import product
from math import prod

import numpy as np
import pyarrow as pa
import pytest

from braid.errors import BraidError
from braid.model.window import FOREVER
from braid.runtime.packing import SourcePacker
from braid.runtime.routing import Router
from braid.runtime.spread_controller import SpreadController, evenness, spread_text
from braid.runtime.spread_protocol import SpreadProtocol, can_spread
from braid.runtime.spread_table import SpreadKey, SpreadPhase, SpreadTable
from braid.testing import assert_same_rows, oracle, random_case, without_late_rows
from braid.testing.case import Case
from braid.testing.choices import SeededChoices
from braid.testing.cluster import ShardedCase, batches, holds_back, plain_case, random_message
from braid.testing.generators import random_existence
from braid.testing.kept_engines import KeptEngines

JOINS = {
    "one key": "a.k = b.k AND b.k = c.k",
    "two keys": "a.k = b.k AND b.l = c.l",
    "key and band": "a.k = b.k AND abs(b.l - c.l) <= 1",
}
NOT_EXISTS = " AND NOT EXISTS (SELECT * FROM d [RANGE 2 SECONDS] WHERE d.k = a.k)"


def skewed_case(seed: int, rows: int = 45) -> Case:
    """Streams with few keys, windows much shorter than the streams, late rows, and perhaps an existence test."""
    generator = np.random.default_rng(seed)
    names = "abcd"
    streams = {}
    for name in names:
        times = np.arange(rows) * 500_000 + generator.integers(0, 3_000_000, rows)
        key = np.minimum(generator.geometric(0.4, rows), 5)
        columns = {"ts": pa.array(times, pa.timestamp("us")), "k": key, "l": generator.integers(0, 3, rows)}
        streams[name] = pa.table({**columns, "n": np.arange(rows)})
    windows = [f"[RANGE {generator.integers(1, 4)} SECONDS{generator.choice(['', ' SLIDE 2 SECONDS'])}]" for _ in "abc"]
    listed = ", ".join(f"{name} {window}" for name, window in zip("abc", windows, strict=True))
    condition = generator.choice(list(JOINS.values())) + (NOT_EXISTS if seed % 2 else "")
    text = f"SELECT a.n AS an, b.n AS bn, c.n AS cn FROM {listed} WHERE {condition}"
    lateness = {name: int(generator.integers(0, 3_000_000)) for name in names}
    return Case(text, streams, dict.fromkeys(names, "ts"), lateness, None, int(generator.integers(4, 9)))


def check_spread(case: Case, seed: int) -> tuple[int, int]:
    """Run a case whose keys are spread and gathered at random; returns how many keys were spread, and forgotten.

    The plan and the parts of the keys change meanwhile. Packers learn of a new table some batches later, as on Spark.
    A crash makes them read the newest one at once.
    """
    generator, choices = np.random.default_rng(seed), SeededChoices(seed)
    engines = KeptEngines(seed)
    cluster = ShardedCase(case, int(generator.integers(2, 7)), lambda: engines)
    sides = [side for side in enumerate(cluster.spec.router.dimensions) if can_spread(cluster.spec.narrow, side[1])]
    spread, forgotten = set[tuple[int, int]](), 0
    for rows in batches(case):
        message = random_message(choices, case, cluster.spec.query) if generator.random() < 0.3 else None
        cluster.batch(rows, message, attempts=int(generator.integers(1, 3)))
        if sides and generator.random() < 0.7:
            number, side = sides[generator.integers(len(sides))]
            joined = sorted(side.streams & set(cluster.spec.query.aliases))
            widths = random_widths(generator, [str(name) for name in generator.permutation(joined)], side.share)
            cluster.spreading.choose(number, int(generator.integers(0, 6)), widths)
        if cluster.spreading.table.keys and generator.random() < 0.3:
            key = cluster.spreading.table.keys[generator.integers(len(cluster.spreading.table.keys))]
            cluster.spreading.revoke(key.dimension, key.word)
        before = len(cluster.spreading.table.keys)
        cluster.observe()
        forgotten += before - len(cluster.spreading.table.keys)
        spread |= {(key.dimension, key.word) for key in cluster.spreading.table.keys if key.begin < FOREVER}
        if generator.random() < 0.8:
            cluster.table = SpreadTable.from_json(as_stored(cluster.spreading.table, cluster.spec.router))
        if generator.random() < 0.05:
            cluster.rescale(int(generator.integers(2, 7)))
            sides = [
                side for side in enumerate(cluster.spec.router.dimensions) if can_spread(cluster.spec.narrow, side[1])
            ]
    if holds_back(case):
        cluster.end()
    assert_same_rows(cluster.result(), oracle(case.text, without_late_rows(case), time=case.time), message=repr(case))
    return len(spread), forgotten


def random_widths(generator: np.random.Generator, streams: Sequence[str], share: int) -> dict[str, int]:
    """Axes for some of these streams, with no more positions in all than there are coordinates."""
    widths = {}
    for stream in streams[: generator.integers(1, len(streams) + 1)]:
        widths[stream] = int(generator.integers(1, share + 1))
        share //= widths[stream]
    return widths


def as_stored(table: SpreadTable, router: Router) -> str:
    """The table as JSON. Where it says the same, it is as earlier releases wrote it: without strides and widths."""
    content = json.loads(table.to_json())
    for key in content["keys"]:
        if key["stride"] == 1:
            del key["stride"]
            if key["width"] == router.dimensions[key["dimension"]].share:
                del key["width"]
    return json.dumps(content)


@pytest.mark.parametrize("first", range(0, 300, 25))
def test_spread_keys_change_no_result(first: int) -> None:
    totals = np.zeros(2, int)
    for seed in range(first, first + 25):
        totals += check_spread(skewed_case(seed), seed)
    assert (totals > 5).all(), "keys must be spread, and forgotten again, for the test to mean anything"


@pytest.mark.sweep
def test_sweep() -> None:
    for seed in range(1_000, 11_000):
        case = (skewed_case(seed), random_case(seed), random_existence(seed))[seed % 3]
        check_spread(case, seed)


def test_a_batch_that_is_routed_by_an_older_table_is_refused() -> None:
    """Its rows may be missing where rows of spread keys look for them."""
    case = plain_case()
    cluster = ShardedCase(case, 2)
    cluster.table = SpreadTable(3)
    cluster.batch(batches(case)[0])
    cluster.table = SpreadTable(2)
    with pytest.raises(
        BraidError, match="was routed by version 2 of the table of spread keys, and earlier ones by ver"
    ):
        cluster.batch(batches(case)[1])


@pytest.mark.parametrize("window", ["ROWS 3", "UNBOUNDED", "PARTITION BY k ROWS 2"])
def test_keys_of_windows_that_do_not_end_by_time_cannot_be_spread(window: str) -> None:
    text = f"SELECT a.n AS an, b.n AS bn FROM a [{window}], b [RANGE 1 HOUR] WHERE a.k = b.k"
    spec = ShardedCase(plain_case(text), 4).spec
    with pytest.raises(BraidError, match="cannot be spread"):
        SpreadProtocol(spec.narrow, spec.router).choose(0, 1, {"b": 2})


def test_keys_of_an_outer_join_cannot_be_spread() -> None:
    """One shard must see all partners of a row to know that it has none."""
    text = "SELECT a.n AS an, b.n AS bn FROM a [RANGE 1 HOUR] LEFT JOIN b [RANGE 1 HOUR] ON a.k = b.k"
    spec = ShardedCase(plain_case(text), 4).spec
    with pytest.raises(BraidError, match="cannot be spread"):
        SpreadProtocol(spec.narrow, spec.router).choose(0, 1, {"a": 2})


def test_a_key_has_as_many_coordinates_as_it_was_chosen_with() -> None:
    """A table without widths, from an earlier checkpoint, spreads its keys over all."""
    spec = ShardedCase(plain_case(), 8).spec
    protocol = SpreadProtocol(spec.narrow, spec.router)
    protocol.choose(0, 1, {"a": 3})
    key = {"dimension": 0, "word": 1, "stream": "a", "phase": "copied"}
    earlier = SpreadTable.from_json(json.dumps({"version": 1, "keys": [key]}))
    words, times = {0: np.ones(100, np.int64)}, np.arange(100)
    for table, width in ((protocol.table, 3), (SpreadTable.from_json(protocol.table.to_json()), 3), (earlier, 8)):
        sizes = [len(rows) for _, rows in spec.router.route("b", words, times, table)]
        assert sorted(sizes) == [0] * (8 - width) + [100] * width
    with pytest.raises(BraidError, match="dimension 0 of the grid has 8 coordinates, not 9"):
        protocol.choose(0, 2, {"a": 9})
    with pytest.raises(BraidError, match="dimension 0 of the grid has 8 coordinates, not 9"):
        protocol.choose(0, 2, {"a": 3, "b": 3})


def test_the_shards_of_a_key_form_a_grid_in_which_two_streams_are_spread() -> None:
    """Each row is copied along the axis of the other stream, and each pair of rows meets in one shard."""
    spec = ShardedCase(plain_case(), 7).spec
    axes = [SpreadKey(0, 1, "a", begin=0, width=2), SpreadKey(0, 1, "b", begin=0, width=3, stride=2)]
    words, times = {0: np.ones(50, np.int64)}, np.arange(50)
    shards = {
        alias: [set(rows.tolist()) for _, rows in spec.router.route(alias, words, times, SpreadTable(1, tuple(axes)))]
        for alias in "ab"
    }
    assert sum(map(len, shards["a"])) == 3 * 50 and sum(map(len, shards["b"])) == 2 * 50
    assert sum(bool(rows) for rows in shards["a"]) == 6
    for row, other in product(range(50), range(50)):
        assert sum(row in a and other in b for a, b in zip(shards["a"], shards["b"], strict=True)) == 1


@pytest.mark.parametrize(
    "column",
    [
        pa.array([[("x", 1)]], pa.map_(pa.string(), pa.int64())),
        pa.array([[{"m": [("x", 1)]}]], pa.list_(pa.struct({"m": pa.map_(pa.string(), pa.int64())}))),
        pa.array([(1, 2, 3)], pa.month_day_nano_interval()),
        pa.array(["x"]).dictionary_encode(),
        pa.array([Decimal("1.5")], pa.decimal32(5, 2)),
        pa.array([b"0123456789abcdef"], pa.uuid()),
        pa.array([None], pa.int64()),
        pa.array([[1.5]]),
    ],
    ids=lambda column: str(column.type),
)
def test_rows_with_columns_of_any_type_are_spread(column: pa.Array) -> None:
    """Which way a row goes depends on its values; those that have no words are left out."""
    case = plain_case()
    columns = pa.concat_arrays([column] * case.streams["a"].num_rows)
    streams = {name: table.append_column("of any type", columns) for name, table in case.streams.items()}
    case = replace(case, text=case.text.replace("a.n AS an", "a.n AS an, a.`of any type` AS x"), streams=streams)
    cluster = ShardedCase(case, 4)
    source = cluster.spec.narrow.source("a")
    packer = SourcePacker(cluster.spec.narrow, cluster.spec.router, source)
    (rows,) = case.streams["a"].select(source.declared.schema.names).combine_chunks().to_batches()
    table = SpreadTable(1, (SpreadKey(0, 1, "a", begin=0, phase=SpreadPhase.SPREAD),))
    sizes = [segment.rows.num_rows for _, segment in packer.pack(rows, table)]
    assert sum(sizes) == rows.num_rows and sum(size > 0 for size in sizes) > 1


@pytest.mark.parametrize("text", ["", "[]", '{"version": 1}', '{"version": 1, "keys": [{"word": 2}]}'])
def test_another_text_is_no_table(text: str) -> None:
    with pytest.raises(BraidError, match="no table of spread keys"):
        SpreadTable.from_json(text)


def test_a_controller_spreads_a_heavy_key_and_gathers_it_again() -> None:
    """The largest stream of the key is spread. When its rows are gone, so is the key."""
    empty = {name: _second(0, 0, heavy=False) for name in "ab"}
    text = "SELECT a.n AS an, b.n AS bn FROM a [RANGE 2 SECONDS], b [RANGE 2 SECONDS] WHERE a.k = b.k"
    case = Case(text, empty, dict.fromkeys("ab", "ts"), dict.fromkeys("ab", 0), None, None)
    cluster = ShardedCase(case, 8)
    controller = SpreadController(cluster.spec.narrow, cluster.spec.router)
    even, phases = {}, list[set[SpreadPhase]]()
    streams: dict[str, list[pa.Table]] = {"a": [], "b": []}
    for second in range(60):
        rows = {"a": _second(second, 400, heavy=second < 16), "b": _second(second, 100, heavy=second < 16)}
        cluster.reports.clear()
        cluster.batch(rows)
        for name, table in rows.items():
            streams[name].append(table)
        even[second] = evenness(cluster.reports)
        cluster.table = controller.observe(cluster.reports) or cluster.table
        phases.append({key.phase for key in cluster.table.keys})
        assert {(key.word, key.stream) for key in cluster.table.keys} <= {(0, "a")}
    assert even[3]["rows"] > 2.5 and even[3]["work"] > 5
    assert even[15]["rows"] < 1.5 and even[15]["work"] < 1.5
    assert phases[15] == {SpreadPhase.SPREAD} and phases[-1] == set()
    expected = oracle(text, {name: pa.concat_tables(tables) for name, tables in streams.items()})
    assert_same_rows(cluster.result(), expected)


def test_the_rows_of_two_equal_streams_are_both_spread() -> None:
    """A grid of shards copies fewer rows than one axis of as many, and evens out the work as well."""
    text = "SELECT a.n AS an, b.n AS bn FROM a [RANGE 1 SECOND], b [RANGE 1 SECOND] WHERE a.k = b.k"
    empty = {name: _second(0, 0, heavy=False) for name in "ab"}
    case = Case(text, empty, dict.fromkeys("ab", "ts"), dict.fromkeys("ab", 0), None, None)
    cluster = ShardedCase(case, 16)
    controller = SpreadController(cluster.spec.narrow, cluster.spec.router)
    streams: dict[str, list[pa.Table]] = {"a": [], "b": []}
    for second in range(16):
        rows = {"a": _second(second, 400, heavy=True), "b": _second(second, 399, heavy=True)}
        for name, table in rows.items():
            streams[name].append(table)
        cluster.reports.clear()
        cluster.batch(rows)
        cluster.table = controller.observe(cluster.reports) or cluster.table
    axes = {axis.stream: axis.width for axis in cluster.table.axes(0, 0)}
    assert axes == {"a": 5, "b": 3}
    assert evenness(cluster.reports)["work"] < 1.5
    received = sum(stream.received for report in cluster.reports for stream in report.observation.streams.values())
    assert received < 3 * 799, "with one axis, each row of b would be in 15 shards"
    assert "over 15 shards: rows of a are spread 5 ways, rows of b are spread 3 ways" in spread_text(cluster.table)
    expected = oracle(text, {name: pa.concat_tables(tables) for name, tables in streams.items()})
    assert_same_rows(cluster.result(), expected)


def test_a_key_whose_rows_come_from_another_stream_gets_another_grid() -> None:
    """At first, most rows of the key are of `a`. Later most are of `b`, and each would be copied to many shards."""
    empty = {name: _second(0, 0, heavy=False) for name in "ab"}
    text = "SELECT a.n AS an, b.n AS bn FROM a [RANGE 1 SECOND], b [RANGE 1 SECOND] WHERE a.k = b.k"
    case = Case(text, empty, dict.fromkeys("ab", "ts"), dict.fromkeys("ab", 0), None, None)
    cluster = ShardedCase(case, 12)
    controller = SpreadController(cluster.spec.narrow, cluster.spec.router)
    grids = list[dict[str, int | None]]()
    streams: dict[str, list[pa.Table]] = {"a": [], "b": []}
    for second in range(36):
        counts = (600, 20) if second < 12 else (20, 600)
        rows = {name: _second(second, count, heavy=True) for name, count in zip("ab", counts, strict=True)}
        for name, table in rows.items():
            streams[name].append(table)
        cluster.reports.clear()
        cluster.batch(rows)
        cluster.table = controller.observe(cluster.reports) or cluster.table
        if axes := cluster.table.axes(0, 0):
            grids.append({axis.stream: axis.width for axis in axes})
    assert list(grids[0]) == ["a"] and list(grids[-1]) == ["b"]
    expected = oracle(text, {name: pa.concat_tables(tables) for name, tables in streams.items()})
    assert_same_rows(cluster.result(), expected)


def test_a_key_that_outgrows_its_shards_gets_more_of_them() -> None:
    """Two keys swap their shares. The one that was small is gathered, and then spread over more shards than before."""
    empty = {name: _second(0, 0, heavy=False) for name in "ab"}
    text = "SELECT a.n AS an, b.n AS bn FROM a [RANGE 1 SECOND], b [RANGE 1 SECOND] WHERE a.k = b.k"
    case = Case(text, empty, dict.fromkeys("ab", "ts"), dict.fromkeys("ab", 0), None, None)
    cluster = ShardedCase(case, 12)
    controller = SpreadController(cluster.spec.narrow, cluster.spec.router)
    widths = list[int]()
    streams: dict[str, list[pa.Table]] = {"a": [], "b": []}
    for second in range(36):
        rows = {"a": _second(second, 400, heavy=False), "b": _second(second, 100, heavy=False)}
        for name, table in rows.items():
            drawn = np.random.default_rng([second, len(name)]).random(table.num_rows)
            shares = (0.35, 0.45) if second < 10 else (0.1, 0.45)
            keys = np.where(drawn < shares[0], 0, np.where(drawn < shares[1], -1, table["k"].to_numpy()))
            rows[name] = table.set_column(1, "k", pa.array(keys))
            streams[name].append(rows[name])
        cluster.reports.clear()
        cluster.batch(rows)
        cluster.table = controller.observe(cluster.reports) or cluster.table
        if axes := cluster.table.axes(0, -1):
            widths.append(prod(axis.positions(12) for axis in axes))
    assert widths[0] <= 5 and widths[-1] >= 11
    expected = oracle(text, {name: pa.concat_tables(tables) for name, tables in streams.items()})
    assert_same_rows(cluster.result(), expected)


def _second(second: int, count: int, *, heavy: bool) -> pa.Table:
    generator = np.random.default_rng([second, count])
    times = second * 1_000_000 + np.sort(generator.integers(0, 1_000_000, count))
    keys = generator.integers(1, 2_000, count)
    if heavy:
        keys[generator.random(count) < 0.5] = 0
    return pa.table({"ts": pa.array(times, pa.timestamp("us")), "k": keys, "n": second * count + np.arange(count)})
