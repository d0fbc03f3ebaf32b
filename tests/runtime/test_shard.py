"""Shards on a store in memory: whatever fails and is tried again, the results are the oracle's."""

import json
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from braid.adapt.adaptation import Adaptation
from braid.errors import BraidError, ModelError, StreamError
from braid.model.plan import Plan
from braid.runtime.adapting import observe_reports
from braid.runtime.report import ShardReport
from braid.runtime.segment_log import MANIFEST
from braid.testing import assert_same_rows, oracle, random_case, without_late_rows
from braid.testing.case import Case
from braid.testing.cluster import PLAIN, ShardedCase, batches, counts_rows, plain_case, run_with_faults

THREE = """SELECT a.n AS an, b.n AS bn, c.n AS cn FROM a [RANGE 5 SECONDS], b [RANGE 5 SECONDS], c [RANGE 5 SECONDS]
           WHERE a.k = b.k AND b.k = c.k"""


@pytest.mark.parametrize("seed", range(60, 100))
def test_shards_rebuilt_for_every_batch_give_the_results_of_the_oracle(seed: int) -> None:
    case = random_case(seed)
    cluster = run_with_faults(case, seed)
    if counts_rows(case):
        cluster.end()
    assert set(cluster.engines_opened) <= {"new", "rebuilt"}
    expected = oracle(case.text, without_late_rows(case), time=case.time)
    assert_same_rows(cluster.result(), expected, message=repr(case))


def test_a_damaged_segment_is_an_error() -> None:
    case = plain_case()
    cluster = ShardedCase(case, 1)
    cluster.batch(batches(case)[0])
    store = cluster.stores[0]
    key = next(key for key in store.committed if key[0] >= 0)
    data = store.committed[key]
    store.committed[key] = data[:-1] + bytes([data[-1] ^ 1])
    with pytest.raises(StreamError, match="is damaged"):
        cluster.batch(batches(case)[1])


@pytest.mark.parametrize(
    ("text", "shards", "difference"),
    [
        ("SELECT a.n AS an FROM a [RANGE 2 HOURS], b [RANGE 1 HOUR] WHERE a.k = b.k", 1, r"it was for\nSELECT"),
        (PLAIN, 2, r"it was for\n1 shard .*\nand this is\n2 shards: 2 by a and b"),
    ],
)
def test_another_query_or_number_of_shards_on_the_same_store_is_refused(
    text: str, shards: int, difference: str
) -> None:
    cluster = ShardedCase(plain_case(), 1)
    cluster.batch(batches(plain_case())[0])
    other = ShardedCase(plain_case(text), shards)
    other.stores[0].committed = cluster.stores[0].committed
    with pytest.raises(BraidError, match=difference):
        other.batch(batches(plain_case())[1])


DEEP = 100_000
"""More nested brackets than Python's JSON parser can read."""

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
def test_a_control_message_that_cannot_be_obeyed_changes_nothing(message: bytes) -> None:
    case = plain_case()
    cluster = ShardedCase(case, 1)
    for rows in batches(case):
        cluster.batch(rows, message)
    assert_same_rows(cluster.result(), oracle(case.text, case.streams))
    assert cluster.reports[-1].rejected_messages == len(batches(case))


def test_segments_are_removed_when_their_rows_have_ended() -> None:
    text = "SELECT a.n AS an, b.n AS bn FROM a [RANGE 5 SECONDS], b [RANGE 5 SECONDS] WHERE a.k = b.k"
    cluster = ShardedCase(plain_case(text), 1)
    sizes = []
    for rows in batches(plain_case(text)):
        cluster.batch(rows)
        sizes.append(len(cluster.stores[0].committed))
    assert sizes == [3, 3, 3, 3]


def test_many_small_segments_are_merged() -> None:
    case = plain_case(rows=1_280)
    cluster = ShardedCase(case, 1)
    for rows in batches(case):
        cluster.batch(rows)
    assert len(cluster.stores[0].committed) < 20
    cluster.batch(batches(case)[-1])
    assert cluster.engines_opened[-1] == "rebuilt"
    assert cluster.results[-1].num_rows == 2 * 1_280 + 1


def rows_kept_with_an_idle_stream(passed: bool) -> int:
    """Rows in the store after many batches of stream `a` and only one of `b`, which is passed as idle or not."""
    text = "SELECT a.n AS an, b.n AS bn FROM a [RANGE 1 SECOND], b [RANGE 1 SECOND] WHERE a.k = b.k"
    case = plain_case(text, rows=200)
    cluster = ShardedCase(case, 1)
    reached = 0
    for second, rows in enumerate(batches(case)):
        batch = rows if second == 0 else {"a": rows["a"], "b": rows["b"].slice(0, 0)}
        message = json.dumps({"number": second, "reached": {"b": reached}}).encode()
        cluster.batch(batch, message if passed and second > 5 else None)
        reached = cluster.reports[-1].progress["a"].watermark
    assert cluster.reports[-1].rejected_messages == 0
    return sum(entry.rows for entry in cluster.manifest().all_entries)


def test_rows_wait_for_an_idle_stream_unless_it_is_passed() -> None:
    assert rows_kept_with_an_idle_stream(passed=False) > 150
    assert rows_kept_with_an_idle_stream(passed=True) < 120


@pytest.mark.parametrize("condition", ["a.k = b.k", "a.k <= b.k"])
def test_rows_without_a_time_are_counted_once(condition: str) -> None:
    """Whether rows are spread over the shards by a key or copied to several of them."""
    case = plain_case(f"SELECT a.n AS an, b.n AS bn FROM a [RANGE 9 SECONDS], b [NOW] WHERE {condition} AND a.n > 9")
    times = pa.array([None if second % 3 == 0 else second for second in range(40)], pa.timestamp("s"))
    streams = {**case.streams, "a": case.streams["a"].set_column(0, "ts", times)}
    case = replace(case, streams=streams)
    cluster = ShardedCase(case, 4)
    for rows in batches(case):
        cluster.batch(rows, attempts=2)
    counted = [sum(report.observation.streams[alias].untimed for report in cluster.reports) for alias in "ab"]
    assert counted == [times.null_count, 0]
    assert_same_rows(cluster.result(), oracle(case.text, case.streams))


def test_rows_older_than_an_announced_watermark_are_late() -> None:
    """Here the host announces 15 seconds, which only the first five rows of the second batch of `a` are older than."""
    case = plain_case()
    cluster = ShardedCase(case, 1, watermarked=frozenset("ab"))
    first, second, *_ = batches(case)
    cluster.batch(first)
    cluster.batch({**second, "b": second["b"].slice(5)}, announced=dict.fromkeys("ab", 14_999_001))
    assert [cluster.reports[-1].observation.streams[alias].late for alias in "ab"] == [5, 0]
    in_time = pa.concat_tables([first["a"], second["a"].slice(5)])
    assert_same_rows(cluster.result(), oracle(case.text, dict.fromkeys("ab", in_time)))


def test_a_report_is_the_same_after_json_and_garbage_is_refused() -> None:
    cluster = ShardedCase(plain_case(), 2)
    cluster.batch(batches(plain_case())[0])
    for report in cluster.reports:
        assert ShardReport.from_json(report.to_json()).to_json() == report.to_json()
    for garbage in ("", "[]", "{}", cluster.reports[0].to_json().replace("rows_out", "rows")):
        with pytest.raises(ModelError, match="no report of a shard"):
            ShardReport.from_json(garbage)


@pytest.mark.parametrize(
    "written", [b'{"version": 4, "entries": {}}', b'{"format": 6, "entries": {}}', b'{"format": 9, "entries": {}}']
)
def test_a_store_of_another_format_is_refused(written: bytes) -> None:
    cluster = ShardedCase(plain_case(), 1)
    cluster.stores[0].committed[MANIFEST] = written
    with pytest.raises(BraidError, match=r"has format [469],? and this version (of Braid )?reads formats 7 to 8"):
        cluster.batch(batches(plain_case())[0])
    assert cluster.stores[0].committed == {MANIFEST: written}


def test_a_trial_goes_on_when_a_shard_is_rebuilt() -> None:
    case = three_streams()
    old = {"a": ["b", "c"], "b": ["a", "c"], "c": ["a", "b"]}
    new = {"a": ["c", "b"], "b": ["a", "c"], "c": ["a", "b"]}
    cluster = ShardedCase(case, 2)
    messages = [None, {"plan": new, "against": old}, None, {"plan": old, "against": 7}]
    trials = []
    for rows, message in zip(batches(case), messages, strict=True):
        cluster.batch(rows, None if message is None else json.dumps(message).encode())
        trials.append((cluster.reports[-1].against, list(cluster.reports[-1].observation.trials)))
    assert trials == [(None, []), (old, ["a"]), (old, ["a"]), (old, ["a"])]
    assert cluster.reports[-1].rejected_messages == 1, "7 is no plan to be on trial against"
    assert_same_rows(cluster.result(), oracle(case.text, case.streams))


def three_streams() -> Case:
    case = replace(plain_case(THREE), streams=dict.fromkeys("abc", plain_case().streams["a"]))
    return replace(case, time=dict.fromkeys("abc", "ts"), lateness=dict.fromkeys("abc", 0))


@pytest.mark.parametrize(
    ("new", "old"),
    [
        ({"a": ["c", "b"], "b": ["a", "c"], "c": ["a", "b"]}, {"a": ["b", "c"], "b": ["a", "c"], "c": ["a", "b"]}),
        ([["a", "c"], "b"], [["a", "b"], "c"]),
    ],
    ids=["sequences", "trees"],
)
def test_a_new_driver_goes_on_with_a_trial_and_what_was_expected_of_it(new: Any, old: Any) -> None:
    """The batches are small, so that there is no verdict before the end of the trial."""
    case = three_streams()
    cluster = ShardedCase(case, 2)
    garbage = {"plan": old, "against": new, "expected": [0.5, "much"]}
    messages = [None, {"plan": new, "against": old, "expected": [0.5, 7.0]}, garbage, None]
    for rows, message in zip(batches(case), messages, strict=True):
        cluster.batch(rows, None if message is None else json.dumps(message).encode())
    assert cluster.reports[-1].rejected_messages == 1
    driver = Adaptation(Plan.of(cluster.spec.query, None))
    assert observe_reports(driver, cluster.reports, 0.0, 3) is None
    resumed, tried = driver.history.changes
    assert (resumed.verdict, resumed.after) == ("resumed", Plan.of(cluster.spec.query, new).written)
    assert (tried.verdict, tried.predicted, tried.reason) == ("trial", 0.5, "as the checkpoint has it")
    assert tried.before == Plan.of(cluster.spec.query, old).written
    assert None not in (tried.work_before, tried.measured)
    assert_same_rows(cluster.result(), oracle(case.text, case.streams))
