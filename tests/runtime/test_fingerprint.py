"""Fingerprints: the same for texts that mean the same, different and explained for all others."""

import json
from dataclasses import replace

import pyarrow as pa
import pytest

from braid.errors import BraidError
from braid.language import parse
from braid.language.host_types import StoredTypes
from braid.model.plan import Plan
from braid.model.stream import Stream
from braid.runtime.fingerprint import check_fingerprint, fingerprint_change
from braid.runtime.query_spec import QuerySpec
from braid.runtime.routing import router_for
from braid.testing import assert_same_rows, oracle
from braid.testing.cluster import ShardedCase, batches, plain_case

TIME = pa.timestamp("us", "UTC")
COLUMNS = {"ts": TIME, "k": pa.int64(), "x": pa.int64(), "n": pa.int32(), "other": pa.string()}
TEXT = (
    "SELECT a.n, b.n + 1 AS m FROM a [RANGE 1 MINUTE], b [RANGE 3 SECONDS] "
    "WHERE a.k = b.k AND a.x = b.x AND a.n < 5 AND a.n < b.n"
)


def spec(text: str = TEXT, a: dict[str, pa.DataType] | None = None, shards: int = 4) -> QuerySpec:
    streams = (Stream("a", pa.schema(a or COLUMNS), "ts"), Stream("b", pa.schema(COLUMNS), "ts"))
    computed = {"soundex(a.other)": pa.string()} if "soundex" in text else {}
    query = parse(text, {stream.name: stream for stream in streams}, StoredTypes(computed) if computed else None)
    plan, router = Plan.in_text_order(query).written, router_for(query, shards)
    return QuerySpec(text, streams, plan, router, "event_time", computed=computed)


SAME = {
    "white space and case": TEXT.replace(" ", "\n\n ").replace("SELECT", "select").replace("MINUTE", "minute"),
    "unit": TEXT.replace("1 MINUTE", "60 SECONDS"),
    "brackets": TEXT.replace("a.n < 5", "(((a.n < 5)))"),
    "order of conditions": TEXT.replace("a.k = b.k AND a.x = b.x AND a.n < 5", "a.n < 5 AND a.x = b.x AND a.k = b.k"),
    "sides": TEXT.replace("a.k = b.k", "b.k = a.k").replace("a.n < 5", "5 > a.n"),
    "join": TEXT.replace(", b [RANGE 3 SECONDS] WHERE", " JOIN b [RANGE 3 SECONDS] ON"),
    "comment": f"-- what it is for\n{TEXT}",
    "case of a column": TEXT.replace("a.k", "a.K"),
}

OTHER = {
    "window": TEXT.replace("1 MINUTE", "2 MINUTES"),
    "constant": TEXT.replace("< 5", "< 6"),
    "column that was not kept": TEXT.replace("SELECT a.n", "SELECT a.n, a.other"),
    "fewer conditions": TEXT.replace(" AND a.n < 5", ""),
    "and or": TEXT.replace("a.n < 5 AND a.n < b.n", "(a.n < 5 OR a.n < b.n)"),
    "order of streams": TEXT.replace("a [RANGE 1 MINUTE], b [RANGE", "b [RANGE 1 MINUTE], a [RANGE"),
    "swapped": TEXT.replace("a [RANGE 1 MINUTE], b [RANGE 3 SECONDS]", "b [RANGE 3 SECONDS], a [RANGE 1 MINUTE]"),
    "groups": "SELECT a.n, COUNT(*) AS m FROM a [NOW], b [NOW] WHERE a.k = b.k GROUP BY a.n",
    "existence": TEXT + " AND NOT EXISTS (SELECT * FROM b [NOW] c WHERE c.k = a.k)",
}

GOES_ON = {
    "type of a constant": TEXT.replace("b.n + 1", "b.n + 1L"),
    "column": TEXT.replace("SELECT a.n", "SELECT a.x AS n"),
    "fewer columns": TEXT.replace(", b.n + 1 AS m", ""),
    "name": TEXT.replace("AS m", "AS mm"),
    "more conditions": TEXT + " AND a.x > 3 AND a.x < b.n",
}


@pytest.mark.parametrize("text", SAME.values(), ids=SAME)
def test_texts_that_mean_the_same_have_one_fingerprint(text: str) -> None:
    assert text != TEXT
    for shards in (1, 4, 6):
        assert fingerprint_change(spec(shards=shards).fingerprint, spec(text, shards=shards).fingerprint) is None


@pytest.mark.parametrize("text", OTHER.values(), ids=OTHER)
def test_another_query_is_refused_with_both_texts(text: str) -> None:
    changed = text.replace(" WHERE", "\n\nWHERE") + "\n"  # As a block of YAML may have it.
    with pytest.raises(BraidError, match="the checkpoint belongs to another query") as refused:
        check_fingerprint(spec().fingerprint, spec(changed).fingerprint)
    message = str(refused.value)
    assert f"it was for\n{TEXT}\nand this is\n{text.replace(' WHERE', chr(10) + 'WHERE')}\nthis query cannot" in message
    assert "\ngo back to the first one, or start on a new checkpoint" in message
    assert "\n\n" not in message


@pytest.mark.parametrize("text", GOES_ON.values(), ids=GOES_ON)
def test_a_changed_query_goes_on_if_the_stored_rows_are_all_it_needs(text: str) -> None:
    for shards in (1, 4, 6):
        before, now = spec(shards=shards).fingerprint, spec(text, shards=shards).fingerprint
        assert fingerprint_change(before, now) is not None
        check_fingerprint(before, now)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (OTHER["window"], r"it has other streams or windows: 'a' \[.*\] 'a' instead of 'a' \[.*\] 'a'"),
        (OTHER["swapped"], "its streams are in another order; keep the order of the first one"),
        (
            OTHER["fewer conditions"],
            "a condition of the first one is missing, and rows that did not meet it were not kept",
        ),
        (OTHER["column that was not kept"], "of stream 'a', other: string was not kept"),
        (OTHER["existence"], "the rows that its outer, semi or anti joins, .* need were not kept"),
        (TEXT + " AND soundex(a.other) = 'A500'", "conditions have functions of Spark"),
        (TEXT.replace("SELECT", "SELECT DISTINCT"), "it has DISTINCT, and the results of the first one were"),
        (TEXT + " AND a.k = b.n", "its conditions divide the rows among shards otherwise"),
        ("SELECT COUNT(*) AS m" + TEXT[TEXT.index(" FROM") :], "it groups its results, and those of the first one"),
    ],
)
def test_why_a_changed_query_does_not_go_on(text: str, reason: str) -> None:
    with pytest.raises(BraidError, match=f"this query cannot go on from it: .*{reason}"):
        check_fingerprint(spec().fingerprint, spec(text).fingerprint)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (OTHER["existence"], "the checkpoint has rows that wait for them"),
        (TEXT.replace("SELECT", "SELECT DISTINCT"), "the first one has DISTINCT, and Spark holds its results"),
        ("SELECT COUNT(*) AS m" + TEXT[TEXT.index(" FROM") :], "Spark holds the groups of the first one"),
    ],
)
def test_why_a_query_does_not_go_on_without_what_the_first_one_had(text: str, reason: str) -> None:
    with pytest.raises(BraidError, match=f"this query cannot go on from it: .*{reason}"):
        check_fingerprint(spec(text).fingerprint, spec().fingerprint)


def test_a_query_with_a_stream_more_than_once_does_not_change() -> None:
    """Its sources may keep different columns of the same stream."""
    twice = "SELECT a.n FROM a [NOW], b [NOW], a [NOW] AS c WHERE a.k = b.k AND b.k = c.k"
    with pytest.raises(BraidError, match="a stream is in it more than once"):
        check_fingerprint(spec(twice).fingerprint, spec(twice.replace("a.n", "a.k")).fingerprint)


def test_views_are_part_of_what_a_query_means() -> None:
    """The text over the views is the same; what they are made of is not."""
    stored = replace(spec(), views=("a: SELECT * FROM s",)).fingerprint
    check_fingerprint(stored, stored)
    with pytest.raises(BraidError, match="its tables, or SELECTs and window functions in FROM, are others"):
        check_fingerprint(stored, replace(spec(), views=("a: SELECT * FROM s WHERE x > 1",)).fingerprint)
    assert "views" not in spec().fingerprint["query"]


def test_only_columns_that_are_read_count() -> None:
    stored = spec().fingerprint
    unused = {"first": pa.string(), **COLUMNS, "last": pa.float64()}
    assert fingerprint_change(stored, spec(a=unused).fingerprint) is None
    other_type = COLUMNS | {"k": pa.int32()}
    change = fingerprint_change(stored, spec(a=other_type).fingerprint)
    assert change is not None and "a (ts: timestamp[us, tz=UTC], k: int32, x: int64, n: int32), by ts" in change


def test_a_window_that_counts_rows_reads_every_column() -> None:
    """Rows of the same time are counted in the order of all their columns."""
    text = TEXT.replace("[RANGE 1 MINUTE]", "[ROWS 2]")
    change = fingerprint_change(spec(text).fingerprint, spec(text, COLUMNS | {"last": pa.int64()}).fingerprint)
    assert change is not None and "last: int64" in change


def test_a_fingerprint_is_plain_json() -> None:
    for text in (TEXT, OTHER["groups"], OTHER["existence"]):
        fingerprint = spec(text).fingerprint
        assert json.loads(json.dumps(fingerprint)) == fingerprint


def test_a_store_goes_on_with_a_text_that_means_the_same() -> None:
    """Conditions in another order number the join keys differently, and still send rows to the same shards."""
    text = (
        "SELECT a.n AS an, b.n AS bn FROM a [RANGE 1 HOUR], b [RANGE 1 HOUR], a [RANGE 1 HOUR] AS c "
        "WHERE a.k = b.k AND b.n = c.n"
    )
    case = plain_case(text, rows=40)
    first, *others = batches(case)
    before = ShardedCase(case, 4)
    before.batch(first)
    again = ShardedCase(replace(case, text=text.replace("a.k = b.k AND b.n = c.n", "c.n = b.n\nand b.k = a.k")), 4)
    again.stores = before.stores
    for rows in others:
        again.batch(rows)
    assert_same_rows(pa.concat_tables([before.result(), again.result()]), oracle(text, case.streams))


@pytest.mark.parametrize("shards", [1, 4])
@pytest.mark.parametrize(
    ("text", "changed"),
    [
        (
            "SELECT a.n AS an, b.n AS bn, a.x AS ax FROM {} WHERE a.k = b.k",
            "SELECT b.n AS bn, a.n AS an FROM {} WHERE a.k = b.k",
        ),
        (
            "SELECT a.n AS an, b.n AS bn, a.x AS ax FROM {} WHERE a.k = b.k",
            "SELECT a.n AS an, b.n AS bn FROM {} WHERE a.k = b.k AND a.x <> 1 AND a.n < b.n",
        ),
    ],
    ids=["fewer columns", "more conditions"],
)
def test_a_store_goes_on_with_a_changed_query(text: str, changed: str, shards: int) -> None:
    """Combinations that were complete before are the first query's, all others the second one's."""
    windows = "a [RANGE 1 HOUR], b [RANGE 1 HOUR]"
    case = plain_case(text.format(windows), rows=60)
    remainders = pa.array([row % 3 for row in range(60)])
    streams = {name: table.append_column("x", remainders) for name, table in case.streams.items()}
    case = replace(case, streams=streams)
    first, second, *others = batches(case)
    before = ShardedCase(case, shards)
    for rows in (first, second):
        before.batch(rows)
    after = ShardedCase(replace(case, text=changed.format(windows)), shards)
    after.stores = before.stores
    for rows in others:
        after.batch(rows)
    seen = {name: pa.concat_tables([pa.table(rows[name]) for rows in (first, second)]) for name in streams}
    earlier = oracle(changed.format(windows), seen).to_pylist()
    expected = [row for row in oracle(changed.format(windows), streams).to_pylist() if row not in earlier]
    assert expected and earlier
    assert sorted(map(str, after.result().to_pylist())) == sorted(map(str, expected))
