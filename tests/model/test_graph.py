"""Join graphs: which conditions become attribute classes, which selections, and which residuals."""

import pyarrow as pa

from braid.language import parse
from braid.model.graph import JoinGraph
from braid.model.stream import Stream

KINDS = {"i": pa.int32(), "l": pa.int64(), "x": pa.int64(), "y": pa.int64(), "d": pa.float64(), "s": pa.string()}
SCHEMA = pa.schema([("ts", pa.timestamp("us")), *KINDS.items()])


def graph(condition: str, *, bind: bool = True) -> JoinGraph:
    text = f"SELECT a.x FROM a [NOW], b [NOW], c [NOW] WHERE {condition}"
    return parse(text, {name: Stream(name, SCHEMA, "ts") for name in "abc"} if bind else None).graph


def classes(graph: JoinGraph) -> list[str]:
    return [str(attribute_class) for attribute_class in graph.classes]


def test_transitive_equalities_are_one_class() -> None:
    assert classes(graph("a.x = b.x AND b.x = c.y")) == ["a.x = b.x = c.y"]
    assert classes(graph("c.y = b.x AND a.x = c.y", bind=False)) == ["a.x = b.x = c.y"]


def test_separate_equalities_are_separate_classes() -> None:
    assert classes(graph("a.x = b.x AND b.y = c.y")) == ["a.x = b.x", "b.y = c.y"]


def test_equality_is_not_transitive_across_types() -> None:
    """2**53 and 2**53 + 1 are the same double but not the same integer."""
    assert classes(graph("a.l = b.l AND b.l = c.d")) == ["a.l = b.l", "b.l = c.d"]


def test_two_members_of_one_stream_also_become_a_selection() -> None:
    join_graph = graph("a.x = b.x AND a.y = b.x")
    assert classes(join_graph) == ["a.x = a.y = b.x"]
    assert [stream for stream, _ in join_graph.selections] == ["a"]


def test_an_equality_of_expressions_over_one_stream_each_is_a_class() -> None:
    assert classes(graph("a.x + 1 = b.y % 10")) == ["(a.x + 1) = (b.y % 10)"]


def test_an_equality_with_an_expression_over_two_streams_is_a_residual() -> None:
    join_graph = graph("a.x + b.x = c.x AND a.i < b.i AND a.s LIKE 'x%' AND 1 = 1")
    assert classes(join_graph) == []
    assert [str(predicate) for predicate in join_graph.residuals] == ["(a.x + b.x) = c.x", "a.i < b.i"]
    assert [stream for stream, _ in join_graph.selections] == ["a", "a"]


def test_classes_and_residuals_between_a_stream_and_joined_streams() -> None:
    join_graph = graph("a.x = b.x AND b.y = c.y AND a.i < c.i")
    assert [str(attribute_class) for attribute_class in join_graph.classes_between(["a"], "b")] == ["a.x = b.x"]
    assert join_graph.classes_between(["a"], "c") == ()
    assert [str(predicate) for predicate in join_graph.residuals_at(["a"], "c")] == ["a.i < c.i"]
    assert join_graph.residuals_at(["b"], "c") == ()
    assert join_graph.joined(["a"], "c")
