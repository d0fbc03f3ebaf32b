"""Everything the Spark operator does but Spark: packing, routing, buckets, their memory and their cache."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from braid.engine.routing import router_for
from braid.engine.segment import Segment
from braid.errors import BraidError, StreamError
from braid.hosts.spark import bucket as bucket_module
from braid.hosts.spark.bucket import Bucket
from braid.hosts.spark.cache import Cache
from braid.hosts.spark.job import Job
from braid.hosts.spark.memory import MANY, SMALL_MERGED, Memory, Note
from braid.hosts.spark.packing import SourcePacker
from braid.language import parse
from braid.model.plan import Plan
from braid.model.stream import Stream
from braid.model.window import FOREVER
from braid.testing import Case, assert_same_rows, oracle, random_case, without_late_rows
from braid.testing.changes import random_plan
from braid.testing.choices import SeededChoices

EVENT_TIME = "event time"
FAR = 4_000_000_000
"""Seconds after 1970 that are later than any time of a case."""


class DictionaryStore:
    """A state store in a dictionary; what was not committed is gone."""

    def __init__(self) -> None:
        self.committed: dict[tuple[Any, ...], tuple[Any, ...]] = {}
        self.rollback()

    def commit(self) -> None:
        self.committed = dict(self._current)

    def rollback(self) -> None:
        self._current = dict(self.committed)

    def getValue(self, key: tuple[Any, ...]) -> tuple[Any, ...] | None:  # noqa: N802
        return self._current.get(key)

    def updateValue(self, key: tuple[Any, ...], value: tuple[Any, ...]) -> None:  # noqa: N802
        self._current[key] = value

    def removeKey(self, key: tuple[Any, ...]) -> None:  # noqa: N802
        del self._current[key]


class Cluster:
    """Buckets with their stores, fed batch by batch, and mistreated in between."""

    def __init__(self, case: Case, buckets: int, directory: Path, *, watermarked: frozenset[str] = frozenset()) -> None:
        streams = {
            name: Stream(name, table.schema, case.time[name], case.lateness[name])
            for name, table in case.streams.items()
        }
        query = parse(case.text, streams)
        used = {source.declared.name for source in query.inputs}
        router = router_for(query, buckets)
        declared = tuple(stream for name, stream in streams.items() if name in used)
        job = Job(case.text, declared, Plan.of(query, case.plan).written, router, EVENT_TIME, watermarked=watermarked)
        self.job = Job.from_json(job.to_json())
        self.cache = Cache(directory)
        self.stores = [DictionaryStore() for _ in range(self.job.router.buckets)]
        self.results: list[pa.Table] = []
        self.outcomes: list[str] = []
        self.reports: list[dict[str, Any]] = []
        self._packers = [
            (number, self.job.query.inputs[number].declared.name, SourcePacker(self.job, source))
            for number, source in enumerate(self.job.narrow.inputs)
        ]

    def batch(
        self, rows: dict[str, pa.Table], message: bytes | None = None, *, attempts: int = 1, spark_watermark: int = 0
    ) -> None:
        """One micro-batch; all attempts but the last fail after everything has been done."""
        packed: list[list[tuple[int, bytes]]] = [[] for _ in self.stores]
        for number, stream, packer in self._packers:
            if rows[stream].num_rows:
                for bucket, segment in packer.pack(rows[stream].combine_chunks().to_batches()[0]):
                    packed[bucket].append((number, segment.to_bytes()))
        for store, segments in zip(self.stores, packed, strict=True):
            for attempt in range(attempts):
                store.rollback()
                opened = Bucket(self.job, Memory(store), self.cache, spark_watermark)
                given = segments if message is None else [(-1, message), *segments]
                results = opened.take(given)
                if attempt == attempts - 1:
                    store.commit()
                    self.outcomes.append(opened.measured["cache"])
                    self.reports.append(opened.measured)
                    self.results.append(shipped(pa.Table.from_batches(results, opened.site.schema)))

    def end(self) -> None:
        """A batch of rows that lets everything before them be known; of theirs, what waits will wait for ever."""
        self.batch({stream.name: _end_of(stream) for stream in self.job.streams})

    def result(self) -> pa.Table:
        return pa.concat_tables(self.results).drop_columns([EVENT_TIME])


def _end_of(stream: Stream) -> pa.Table:
    columns = {field.name: pa.nulls(1, field.type) for field in stream.schema}
    kind = stream.schema.field(stream.time).type
    scale = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[kind.unit]
    columns[stream.time] = pa.array([FAR * scale], pa.int64()).cast(kind)
    return pa.table(columns, schema=stream.schema)


def shipped(table: pa.Table) -> pa.Table:
    """A copy, as Spark takes one before a batch ends: results may be views of cache files, good for that batch only."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return pa.ipc.open_stream(sink.getvalue()).read_all()


def steps(case: Case) -> list[dict[str, pa.Table]]:
    rows = case.batch_rows or max(1, *(table.num_rows for table in case.streams.values()))
    longest = max(table.num_rows for table in case.streams.values())
    return [
        {name: table.slice(first, rows) for name, table in case.streams.items()}
        for first in range(0, max(longest, 1), rows)
    ]


def counts_rows(case: Case) -> bool:
    return "ROWS" in case.text.upper()


def run_mistreated(case: Case, seed: int, directory: Path) -> Cluster:
    """With failed attempts, lost and damaged caches, and changes of plan."""
    generator = np.random.default_rng(seed)
    cluster = Cluster(case, int(generator.integers(1, 7)), directory)
    choices = SeededChoices(seed)
    for rows in steps(case):
        plan = random_plan(choices, cluster.job.query.aliases)
        message = json.dumps({"plan": plan}).encode() if generator.random() < 0.2 else None
        cluster.batch(rows, message, attempts=int(generator.integers(1, 3)))
        mistreat(directory, generator)
    return cluster


@pytest.mark.parametrize("seed", [seed for seed in range(60) if not counts_rows(random_case(seed))])
def test_buckets_give_what_the_oracle_gives(seed: int, tmp_path: Path) -> None:
    case = random_case(seed)
    result = run_mistreated(case, seed, tmp_path).result()
    assert_same_rows(result, oracle(case.text, without_late_rows(case), time=case.time), message=repr(case))


@pytest.mark.parametrize("seed", [seed for seed in range(60) if counts_rows(random_case(seed))])
def test_counted_rows_survive_whatever_happens(seed: int, tmp_path: Path) -> None:
    """Their last results wait for the streams to go on."""
    case = random_case(seed)
    mistreated = run_mistreated(case, seed, tmp_path)
    mistreated.end()
    assert_same_rows(
        mistreated.result(), oracle(case.text, without_late_rows(case), time=case.time), message=repr(case)
    )


def mistreat(directory: Path, generator: np.random.Generator) -> None:
    if generator.random() < 0.5:
        bucket_module._hot.clear()
    for path in sorted(directory.glob("*/*")):
        if generator.random() < 0.02:
            path.unlink()
        elif generator.random() < 0.02:
            path.write_bytes(generator.bytes(path.stat().st_size))


PLAIN = "SELECT a.n AS an, b.n AS bn FROM a [RANGE 1 HOUR], b [RANGE 1 HOUR] WHERE a.k = b.k"


def plain_case(text: str = PLAIN, rows: int = 40) -> Case:
    table = pa.table({"ts": pa.array(range(rows), pa.timestamp("s")), "k": [1] * rows, "n": range(rows)})
    names = ("a", "b")
    return Case(text, dict.fromkeys(names, table), dict.fromkeys(names, "ts"), dict.fromkeys(names, 0), None, 10)


def lose_cache(directory: Path) -> None:
    bucket_module._hot.clear()
    for path in directory.glob("*/*"):
        path.unlink()


def test_the_cache_serves_and_a_lost_one_is_rebuilt(tmp_path: Path) -> None:
    case = plain_case()
    cluster = Cluster(case, 1, tmp_path)
    first, second, third, fourth = steps(case)
    cluster.batch(first)
    cluster.batch(second)
    bucket_module._hot.clear()
    cluster.batch(third)
    lose_cache(tmp_path)
    cluster.batch(fourth)
    assert cluster.outcomes == ["new", "hot", "mapped", "rebuilt"]
    assert_same_rows(cluster.result(), oracle(case.text, case.streams))


def test_streams_may_be_called_what_the_cache_calls_its_files(tmp_path: Path) -> None:
    windows = "a [RANGE 1 HOUR] AS file, b [RANGE 1 HOUR] AS arrow"
    case = plain_case(f"SELECT file.n AS an, arrow.n AS bn FROM {windows} WHERE file.k = arrow.k")
    cluster = Cluster(case, 1, tmp_path)
    first, second, third, fourth = steps(case)
    cluster.batch(first)
    cluster.batch(second)
    bucket_module._hot.clear()
    cluster.batch(third)
    cluster.batch(fourth)
    assert cluster.outcomes == ["new", "hot", "mapped", "hot"]
    assert_same_rows(cluster.result(), oracle(case.text, case.streams))


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path: Path) -> None:
    case = plain_case()
    (tmp_path / "file").write_text("not a directory")
    cluster = Cluster(case, 1, tmp_path / "file")
    for rows in steps(case):
        cluster.batch(rows)
    assert cluster.outcomes == ["new", "rebuilt", "rebuilt", "rebuilt"]
    assert_same_rows(cluster.result(), oracle(case.text, case.streams))


def test_a_damaged_segment_is_an_error_and_no_wrong_result(tmp_path: Path) -> None:
    case = plain_case()
    cluster = Cluster(case, 1, tmp_path)
    cluster.batch(steps(case)[0])
    lose_cache(tmp_path)
    store = cluster.stores[0]
    key = next(key for key in store.committed if key[0] >= 0)
    (data,) = store.committed[key]
    store.committed[key] = (data[:-1] + bytes([data[-1] ^ 1]),)
    with pytest.raises(StreamError, match="is damaged"):
        cluster.batch(steps(case)[1])


@pytest.mark.parametrize(
    ("text", "buckets", "changed"),
    [
        ("SELECT a.n AS an FROM a [RANGE 1 HOUR], b [RANGE 1 HOUR] WHERE a.k = b.k", 1, r"it was for\nSELECT"),
        (PLAIN, 2, r"it was for\n1 bucket .*\nand this is\n2 buckets: 2 by a and b"),
    ],
)
def test_something_else_on_the_same_checkpoint_is_refused(
    text: str, buckets: int, changed: str, tmp_path: Path
) -> None:
    cluster = Cluster(plain_case(), 1, tmp_path)
    cluster.batch(steps(plain_case())[0])
    other = Cluster(plain_case(text), buckets, tmp_path)
    other.stores[0].committed = cluster.stores[0].committed
    with pytest.raises(BraidError, match=changed):
        other.batch(steps(plain_case())[1])


DEEP = 100_000
"""So many brackets are more than Python reads."""

GARBAGE = (
    b"garbage",
    b"[]",
    b'{"plan": 7}',
    b'{"plan": {"a": ["c"]}}',
    b'{"other": {}}',
    b"\xff",
    b"[" * DEEP,
    b'{"plan": ' + b"[" * 900 + b'"a"' + b"]" * 900 + b"}",
    b'{"plan": 7, "number": 1e999}',
    b'{"plan": 7, "number": -Infinity}',
    b'{"reached": 5}',
    b'{"reached": null}',
    b'{"reached": ["a"]}',
    b'{"reached": {"a": 1e999}}',
    b'{"reached": {"a": 12.5}}',
    b'{"reached": {"a": "later", "b": 0}}',
    b'{"reached": {"a": %d}}' % 10**40,
)


@pytest.mark.parametrize("message", GARBAGE, ids=lambda message: str(message[:40]))
def test_a_control_message_that_cannot_be_obeyed_changes_nothing(message: bytes, tmp_path: Path) -> None:
    case = plain_case()
    cluster = Cluster(case, 1, tmp_path)
    for rows in steps(case):
        cluster.batch(rows, message)
    assert_same_rows(cluster.result(), oracle(case.text, case.streams))
    assert cluster.reports[-1]["rejected_messages"] == len(steps(case))


def test_memory_forgets_what_has_ended(tmp_path: Path) -> None:
    text = "SELECT a.n AS an, b.n AS bn FROM a [RANGE 5 SECONDS], b [RANGE 5 SECONDS] WHERE a.k = b.k"
    cluster = Cluster(plain_case(text), 1, tmp_path)
    sizes = []
    for rows in steps(plain_case(text)):
        cluster.batch(rows)
        sizes.append(len(cluster.stores[0].committed))
    assert sizes == [3, 3, 3, 3]


def test_many_small_segments_become_few(tmp_path: Path) -> None:
    case = plain_case(rows=1_280)
    cluster = Cluster(case, 1, tmp_path)
    for rows in steps(case):
        cluster.batch(rows)
    assert len(cluster.stores[0].committed) < 20
    lose_cache(tmp_path)
    cluster.batch(steps(case)[-1])
    assert cluster.outcomes[-1] == "rebuilt"
    assert cluster.results[-1].num_rows == 2 * 1_280 + 1


@pytest.mark.parametrize("every", [1, 5, 16])
@pytest.mark.parametrize("largest", [1, 2, 5_000])
def test_segments_of_any_sizes_stay_few_and_are_seldom_written_again(every: int, largest: int) -> None:
    """A source is not merged after each batch, but when it is its turn."""
    generator = np.random.default_rng(every + largest)
    store = DictionaryStore()
    memory, note = Memory(store), Note({}, {})
    added, written = 0, 0
    for number in range(1_000):
        times = np.full(generator.integers(1, largest + 1), number)
        rows = pa.record_batch({"ts": pa.array(times).cast(pa.timestamp("us")), "n": times})
        segment = Segment("a", rows, newest=number)
        memory.add(note, 0, segment, segment.to_bytes(), FOREVER)
        added += note.entries["a"][-1].size
        before = {entry.number for entry in note.entries["a"]}
        if number % every == 0:
            memory.merge(note, "a", 0, "ts")
        written += sum(entry.size for entry in note.entries["a"] if entry.number not in before)
    kept = note.entries["a"]
    assert len(kept) < 32
    assert written <= added
    numbers = np.concatenate([memory.read(note, "a", 0, entry, "ts").column("n").to_numpy() for entry in kept])
    assert list(dict.fromkeys(numbers.tolist())) == list(range(1_000))


@pytest.mark.parametrize("every", [2, 5, 10])
def test_segments_stay_few_when_the_newest_is_small_whenever_it_is_time_to_merge(every: int) -> None:
    generator = np.random.default_rng(every)
    memory, note = Memory(DictionaryStore()), Note({}, {})
    for number in range(300):
        size = 1 if number % every == 0 else 500
        rows = pa.record_batch({"ts": pa.array([number] * size, pa.timestamp("us")), "n": generator.random(size)})
        segment = Segment("a", rows, newest=number)
        memory.add(note, 0, segment, segment.to_bytes(), FOREVER)
        if number % every == 0:
            memory.merge(note, "a", 0, "ts")
    kept = note.entries["a"]
    assert len(kept) < 32
    times = [memory.read(note, "a", 0, entry, "ts").column("ts").cast(pa.int64()).to_pylist() for entry in kept]
    assert list(dict.fromkeys(time for part in times for time in part)) == list(range(300))


def test_large_segments_are_written_again_only_where_there_are_many() -> None:
    generator = np.random.default_rng(7)
    memory, note = Memory(DictionaryStore()), Note({}, {})
    for number in range(4 * MANY):
        values = generator.random(SMALL_MERGED // 4 // 8)
        rows = pa.record_batch({"ts": pa.array([number] * len(values), pa.timestamp("us")), "n": values})
        segment = Segment("a", rows, newest=number)
        memory.add(note, 0, segment, segment.to_bytes(), FOREVER)
        memory.merge(note, "a", 0, "ts")
        if number < MANY:
            assert len(note.entries["a"]) == number + 1
    assert len(note.entries["a"]) <= MANY


def silent_state(passed: bool, directory: Path) -> int:
    """Rows kept after stream `a` has gone on for long and `b` has brought one batch and no more, or is passed by."""
    text = "SELECT a.n AS an, b.n AS bn FROM a [RANGE 1 SECOND], b [RANGE 1 SECOND] WHERE a.k = b.k"
    case = plain_case(text, rows=200)
    cluster = Cluster(case, 1, directory)
    reached = 0
    for second, rows in enumerate(steps(case)):
        given = rows if second == 0 else {"a": rows["a"], "b": rows["b"].slice(0, 0)}
        message = json.dumps({"number": second, "reached": {"b": reached}}).encode()
        cluster.batch(given, message if passed and second > 5 else None)
        reached = cluster.reports[-1]["streams"]["a"]["watermark"]
    assert cluster.reports[-1]["rejected_messages"] == 0
    note = Memory(cluster.stores[0]).note()
    assert note is not None
    return sum(entry.rows for kept in note.entries.values() for entry in kept)


def test_a_silent_stream_holds_the_others_back_unless_it_is_passed_by(tmp_path: Path) -> None:
    assert silent_state(False, tmp_path / "waiting") > 150
    assert silent_state(True, tmp_path / "passed") < 120


@pytest.mark.parametrize("condition", ["a.k = b.k", "a.k <= b.k"])
def test_rows_without_a_time_are_counted_once(condition: str, tmp_path: Path) -> None:
    """However many buckets there are, and however many of them get copies of a row; as `braid.run` counts them."""
    case = plain_case(f"SELECT a.n AS an, b.n AS bn FROM a [RANGE 9 SECONDS], b [NOW] WHERE {condition} AND a.n > 9")
    times = pa.array([None if place % 3 == 0 else place for place in range(40)], pa.timestamp("s"))
    streams = {**case.streams, "a": case.streams["a"].set_column(0, "ts", times)}
    case = replace(case, streams=streams)
    cluster = Cluster(case, 4, tmp_path)
    for rows in steps(case):
        cluster.batch(rows, attempts=2)
    counted = [sum(report["streams"][alias]["untimed"] for report in cluster.reports) for alias in "ab"]
    assert counted == [times.null_count, 0]
    assert_same_rows(cluster.result(), oracle(case.text, case.streams))


def test_what_is_too_old_for_spark_is_late(tmp_path: Path) -> None:
    """Where it has a watermark of another making, which moves on its own; here, 15 seconds."""
    case = plain_case()
    cluster = Cluster(case, 1, tmp_path, watermarked=frozenset("ab"))
    first, second, *_ = steps(case)
    cluster.batch(first)
    cluster.batch({**second, "b": second["b"].slice(5)}, spark_watermark=14_999)
    assert [cluster.reports[-1]["streams"][alias]["late"] for alias in "ab"] == [5, 0]
    kept = pa.concat_tables([first["a"], second["a"].slice(5)])
    assert_same_rows(cluster.result(), oracle(case.text, dict.fromkeys("ab", kept)))


def test_windows_that_count_rows_stay_in_their_process(tmp_path: Path) -> None:
    case = plain_case("SELECT a.n AS an, b.n AS bn FROM a [ROWS 7], b [ROWS 3] WHERE a.k = b.k")
    cluster = Cluster(case, 1, tmp_path)
    first, second, third, fourth = steps(case)
    cluster.batch(first)
    cluster.batch(second)
    bucket_module._hot.clear()
    cluster.batch(third)
    cluster.batch(fourth, attempts=2)
    cluster.end()
    assert cluster.outcomes == ["new", "hot", "rebuilt", "rebuilt", "hot"]
    assert_same_rows(cluster.result(), oracle(case.text, case.streams))


def test_what_another_run_left_in_the_process_must_be_of_the_same_query(tmp_path: Path) -> None:
    """With another lateness a query may go on; what was built for the old one would refuse every change of plan."""
    case = plain_case("SELECT a.n AS an, b.n AS bn FROM a [ROWS 7], b [ROWS 3] WHERE a.k = b.k")
    cluster = Cluster(case, 1, tmp_path)
    first, second, *_ = steps(case)
    cluster.batch(first)
    patient = Cluster(replace(case, lateness=dict.fromkeys("ab", 1_000_000)), 1, tmp_path)
    patient.stores = cluster.stores
    patient.batch(second, message=json.dumps({"plan": ["a", "b"]}).encode())
    assert patient.outcomes == ["rebuilt"]
    assert patient.reports[-1]["rejected_messages"] == 0
