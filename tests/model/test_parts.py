"""Parts of a plan: what users write for them, what they are as JSON and as text, and what is refused."""

import json
from datetime import date, datetime
from decimal import Decimal
from math import nan
from typing import Any

import pyarrow as pa
import pytest

from braid.errors import PlanError
from braid.language import parse
from braid.model.plan import Plan, Written
from braid.model.query import Query
from braid.model.statistics import Statistics
from braid.model.stream import Stream

TEXT = "SELECT * FROM a [NOW], b [NOW], c [NOW] WHERE a.k = b.k AND b.k = c.k"
TWO_KEYS = "SELECT * FROM a [NOW], b [NOW], c [NOW] WHERE a.k = b.k AND b.x = c.x"
LEFT: Any = {"a": ("b", "c"), "b": ("a", "c"), "c": ("a", "b")}
RIGHT: Any = (("c", "b"), "a")


def query(kind: pa.DataType | None = None, text: str = TEXT) -> Query:
    schema = pa.schema({"ts": pa.timestamp("us"), "k": kind or pa.int64(), "x": pa.string()})
    return parse(text, {name: Stream(name, schema, "ts") for name in "abc"})


def test_a_plan_has_an_order_for_each_part() -> None:
    plan = Plan.of(query(), [({"k": [1, 2, 2]}, RIGHT), ({"k": {"from": 10, "below": 20}}, LEFT), ("rest", LEFT)])
    (one, tree), (_, sequences) = plan.parts
    assert one.covers(2) and not one.covers(3)
    assert str(tree.tree) == "((c ⋈ b) ⋈ a)" and sequences.tree is None and plan.tree is None
    assert plan.keeps_combinations and not plan.whole.keeps_combinations


@pytest.mark.parametrize(
    "parts",
    [
        [({"k": {"below": 5}}, LEFT), ({"k": {"from": 5}}, RIGHT)],
        [({"k": {"from": 5}}, LEFT), ({"k": {"from": 2, "below": 5}}, LEFT), ({"k": {"below": 2}}, RIGHT)],
        [({"k": {"hash": [0, 2], "of": 3}}, LEFT), ({"k": {"hash": [1], "of": 3}}, RIGHT)],
    ],
)
def test_parts_that_cover_every_key_need_no_rest(parts: Written) -> None:
    plan = Plan.of(query(), parts)
    assert len(plan.parts) == len(parts) - 1
    assert plan.whole == Plan.of(query(), RIGHT)


KEYS = {
    "integers": (pa.int64(), [3, -1], [-1, 3]),
    "floats": (pa.float64(), [2, 0.5, nan], [0.5, 2.0, nan]),
    "texts": (pa.string(), ["x", "a"], ["a", "x"]),
    "booleans": (pa.bool_(), [True], [True]),
    "dates": (pa.date32(), [date(2026, 1, 2), "2026-01-01"], ["2026-01-01", "2026-01-02"]),
    "timestamps": (pa.timestamp("us"), [datetime(2026, 1, 2, 3)], ["2026-01-02T03:00:00"]),
    "zoned": (pa.timestamp("us", "UTC"), ["2026-01-02T03:00:00+00:00"], ["2026-01-02T03:00:00+00:00"]),
    "decimals": (pa.decimal128(10, 2), [Decimal("1.5"), 1, "2"], ["1.00", "1.50", "2.00"]),
    "bytes": (pa.binary(), [b"\x01\xff"], ["01ff"]),
}


@pytest.mark.parametrize(("kind", "keys", "written"), KEYS.values(), ids=KEYS)
def test_parts_are_the_same_after_a_way_through_json(kind: pa.DataType, keys: list[Any], written: list[Any]) -> None:
    plan = Plan.of(query(kind), [({"k": keys}, RIGHT), ("rest", LEFT)])
    content = json.loads(json.dumps(plan.written))
    assert json.dumps(content[0][0]) == json.dumps({"k": written})
    assert Plan.of(query(kind), content) == plan
    limited = Plan.of(query(kind), [({"k": {"from": keys[0]}}, RIGHT), ("rest", LEFT)])
    assert Plan.of(query(kind), json.loads(json.dumps(limited.written))) == limited


def test_a_key_is_named_by_its_column_or_by_stream_and_column() -> None:
    for name in ("k", "a.k", "b.k"):
        plan = Plan.of(query(text=TWO_KEYS), [({name: [1]}, LEFT), ("rest", RIGHT)])
        assert plan.written[0][0] == {"k": [1]}  # type: ignore[index]
    swapped = query(text="SELECT * FROM a [NOW], b [NOW], c [NOW] WHERE a.k = b.k AND a.x = c.x AND b.k = c.k + 1")
    assert Plan.of(swapped, [({"(c.k + 1)": [1]}, LEFT), ("rest", RIGHT)]).parts


def test_parts_are_explained() -> None:
    plan = Plan.of(query(), [({"k": list(range(30))}, RIGHT), ({"k": {"from": 90}}, LEFT), ("rest", LEFT)])
    lines = plan.explain().splitlines()
    assert lines[:1] == ["join of 3 streams"]
    assert lines[4] == "k in (0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 20 more):"
    assert "    kept: (c ⋈ b)" in lines
    assert "k from 90:" in lines and "all other keys:" in lines
    hashes = Plan.of(query(), [({"k": {"hash": [1, 2], "of": 8}}, LEFT), ("rest", LEFT)])
    assert "k in hash classes 1, 2 of 8:" in hashes.explain().splitlines()
    assert "all other keys" in plan._repr_html_()


def test_figures_of_all_keys_are_not_shown_for_a_part() -> None:
    known = Statistics(rates={"a": 7.0}, fanouts={("a", frozenset("ab")): 3.0})
    lines = Plan.of(query(), [({"k": [1]}, RIGHT), ("rest", LEFT)]).explain(known).splitlines()
    assert "new rows of a: about 7 rows/s" in lines
    assert len([line for line in lines if "about" in line]) == 1


REFUSED: list[tuple[Any, str]] = [
    ([({"k": [1, 2]}, LEFT)], "the parts of a plan must cover every key, but other keys than those listed may come"),
    ([({"k": {"from": 3}}, LEFT), ({"k": {"below": 2}}, RIGHT)], "keys from 2 to below 3 are in none"),
    ([({"k": {"from": 3}}, LEFT)], "keys below 3 are in none"),
    ([({"k": {"below": 3}}, LEFT)], "keys from 3 on are in none"),
    ([({"k": {"hash": [0, 1], "of": 3}}, LEFT)], "hash class 2 of 3 is in none"),
    ([({"k": [1, 2]}, LEFT), ({"k": [2, 3]}, LEFT), ("rest", RIGHT)], "two parts of the plan overlap: 2 is in both"),
    ([({"k": [7]}, LEFT), ({"k": {"from": 5}}, LEFT), ("rest", RIGHT)], "two parts of the plan overlap: 7 is in both"),
    (
        [({"k": {"below": 4}}, LEFT), ({"k": {"from": 3}}, RIGHT)],
        "overlap: the first key to below 4 and 3 to the last key",
    ),
    (
        [({"k": {"hash": [0], "of": 2}}, LEFT), ({"k": {"hash": [0], "of": 2}}, RIGHT)],
        "hash class 0 of 2 is in both",
    ),
    ([({"k": {"hash": [0], "of": 2}}, LEFT), ({"k": [1]}, LEFT), ("rest", RIGHT)], "hash classes stand beside other"),
    ([({"k": ["x"]}, LEFT), ("rest", RIGHT)], "'x' is no key of 'a.k = b.k = c.k', which is int64"),
    ([({"k": [1.5]}, LEFT), ("rest", RIGHT)], "1.5 is no key of"),
    ([({"k": [True]}, LEFT), ("rest", RIGHT)], "True is no key of"),
    ([({"k": [2**70]}, LEFT), ("rest", RIGHT)], "is no key of"),
    ([({"k": [[1]]}, LEFT), ("rest", RIGHT)], r"\[1\] is no key of"),
    ([({"k": {"from": "a"}}, LEFT), ("rest", RIGHT)], "'a' is no key of"),
    ([({"k": [None]}, LEFT), ("rest", RIGHT)], "null is not a key"),
    ([({"k": {"from": 5, "below": 5}}, LEFT), ("rest", RIGHT)], "the range from 5 to below 5 has no key"),
    ([({"z": [1]}, LEFT), ("rest", RIGHT)], "the parts of a plan are by a join key, and 'z' is none; known: k"),
    ([({3: [1]}, LEFT), ("rest", RIGHT)], "by a join key, and '3' is none"),
    ([({"k": []}, LEFT), ("rest", RIGHT)], "the part of 'k' has no keys; leave it out"),
    ([({"k": 5}, LEFT), ("rest", RIGHT)], "the keys of 'k' cannot be 5; give a list of keys"),
    ([({"k": {"to": 5}}, LEFT), ("rest", RIGHT)], "the keys of 'k' cannot be {'to': 5}; give a list of keys"),
    ([({"k": {"hash": 1, "of": 2}}, LEFT), ("rest", RIGHT)], "hash classes are whole numbers, not 1 of 2"),
    ([({"k": {"hash": [], "of": 2}}, LEFT), ("rest", RIGHT)], "a part has at least one hash class"),
    ([({"k": {"hash": [2], "of": 2}}, LEFT), ("rest", RIGHT)], "hash classes are numbered 0 to 1"),
    ([({"k": [1], "x": [2]}, LEFT), ("rest", RIGHT)], "the keys of a part are {column: keys}"),
    ([("others", LEFT), ({"k": [1]}, LEFT)], "the keys of a part are {column: keys} or \"rest\", not 'others'"),
    ([({"k": [1]}, LEFT, RIGHT)], 'a part of a plan is a pair of its keys, or "rest", and its plan'),
    ([{"k": [1]}, LEFT], 'a part of a plan is a pair of its keys, or "rest", and its plan'),
    ([({"k": [1]}, None), ("rest", RIGHT)], "a part of a plan needs a plan"),
    (
        [({"k": [1]}, [({"k": [2]}, LEFT), ("rest", LEFT)]), ("rest", RIGHT)],
        "a part has no parts of its own",
    ),
    ([({"k": [1]}, LEFT), ("rest", LEFT), ("rest", RIGHT)], 'a plan has one part "rest", not 2'),
    (
        [({"k": [1]}, {"a": ["b"]}), ("rest", RIGHT)],
        "the plan has no probe sequence for head|must probe each",
    ),
]


@pytest.mark.parametrize(("parts", "message"), REFUSED, ids=[message[:40] for _, message in REFUSED])
def test_wrong_parts_are_one_clear_error(parts: Any, message: str) -> None:
    with pytest.raises(PlanError, match=message):
        Plan.of(query(), parts)


def test_parts_of_several_keys_are_refused() -> None:
    with pytest.raises(PlanError, match="the parts of a plan divide the keys of one equality"):
        Plan.of(query(text=TWO_KEYS), [({"k": [1]}, LEFT), ({"x": ["u"]}, LEFT), ("rest", RIGHT)])
    same_name = "SELECT * FROM a [NOW], b [NOW], c [NOW] WHERE a.k = b.k AND b.x = c.x AND a.k + 1 = c.k"
    with pytest.raises(PlanError, match="no equality joins the streams"):
        Plan.of(query(text="SELECT * FROM a [NOW]"), [({"k": [1]}, {"a": []}), ("rest", {"a": []})])
    with pytest.raises(PlanError, match="'k' is the name of several join keys; say which: "):
        Plan.of(query(text=same_name), [({"k": [1]}, LEFT), ("rest", RIGHT)])


def test_nested_keys_are_divided_by_hash_only() -> None:
    nested = query(pa.list_(pa.int64()))
    with pytest.raises(PlanError, match="are divided by hash only"):
        Plan.of(nested, [({"k": [[1]]}, LEFT), ("rest", RIGHT)])
    assert Plan.of(nested, [({"k": {"hash": [0], "of": 2}}, LEFT), ("rest", RIGHT)]).parts


def test_keys_of_unknown_type_must_be_comparable() -> None:
    unbound = parse(TEXT)
    assert Plan.of(unbound, [({"k": ["x", 1]}, LEFT), ("rest", RIGHT)]).parts
    with pytest.raises(PlanError, match="cannot be compared with each other"):
        Plan.of(unbound, [({"k": {"from": "x", "below": 3}}, LEFT), ("rest", RIGHT)])
