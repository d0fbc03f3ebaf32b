"""Join graphs: what is one attribute class, what is a selection, what is left."""

import pyarrow as pa

from braid.language import parse
from braid.model.graph import JoinGraph
from braid.model.stream import Stream

KINDS = {"i": pa.int32(), "l": pa.int64(), "x": pa.int64(), "y": pa.int64(), "d": pa.float64(), "s": pa.string()}
SCHEMA = pa.schema([("ts", pa.timestamp("us")), *KINDS.items()])


def graph(condition: str, *, bind: bool = True) -> JoinGraph:
    text = f"SELECT a.x FROM a [NOW], b [NOW], c [NOW] WHERE {condition}"
    return parse(text, {name: Stream(name, SCHEMA, "ts") for name in "abc"} if bind else None).graph


def classes(found: JoinGraph) -> list[str]:
    return [str(attribute_class) for attribute_class in found.classes]


def test_equalities_in_a_row_are_one_class() -> None:
    assert classes(graph("a.x = b.x AND b.x = c.y")) == ["a.x = b.x = c.y"]
    assert classes(graph("c.y = b.x AND a.x = c.y", bind=False)) == ["a.x = b.x = c.y"]


def test_attributes_that_are_not_equated_are_classes_of_their_own() -> None:
    assert classes(graph("a.x = b.x AND b.y = c.y")) == ["a.x = b.x", "b.y = c.y"]


def test_equality_is_not_carried_across_types() -> None:
    """2**53 and 2**53 + 1 are the same double but not the same integer."""
    assert classes(graph("a.l = b.l AND b.l = c.d")) == ["a.l = b.l", "b.l = c.d"]


def test_two_members_of_one_stream_become_a_selection_too() -> None:
    found = graph("a.x = b.x AND a.y = b.x")
    assert classes(found) == ["a.x = a.y = b.x"]
    assert [stream for stream, _ in found.selections] == ["a"]


def test_equal_expressions_of_one_stream_each_are_keys() -> None:
    assert classes(graph("a.x + 1 = b.y % 10")) == ["(a.x + 1) = (b.y % 10)"]


def test_expressions_over_two_streams_are_left_to_be_checked() -> None:
    found = graph("a.x + b.x = c.x AND a.i < b.i AND a.s LIKE 'x%' AND 1 = 1")
    assert classes(found) == []
    assert [str(predicate) for predicate in found.residuals] == ["(a.x + b.x) = c.x", "a.i < b.i"]
    assert [stream for stream, _ in found.selections] == ["a", "a"]


def test_what_ties_a_stream_to_those_already_joined() -> None:
    found = graph("a.x = b.x AND b.y = c.y AND a.i < c.i")
    assert [str(between) for between in found.classes_between(["a"], "b")] == ["a.x = b.x"]
    assert found.classes_between(["a"], "c") == ()
    assert [str(predicate) for predicate in found.residuals_at(["a"], "c")] == ["a.i < c.i"]
    assert found.residuals_at(["b"], "c") == ()
    assert found.joined(["a"], "c")
