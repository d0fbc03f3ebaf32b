"""The classes of the model refuse invalid values when they are made."""

from collections.abc import Callable

import pyarrow as pa
import pytest

import braid
from braid.errors import BraidError, ModelError, PlanError, StreamError, TopologyError
from braid.model.advertisement import Advertisement, Flow
from braid.model.expressions.expression import Call, Cast, Column, Literal
from braid.model.graph import AttributeClass, JoinGraph
from braid.model.grouping import Grouping, Measure, TimeWindow
from braid.model.network.sites import Link, Site
from braid.model.network.topology import Topology
from braid.model.output import Output, Star
from braid.model.partitions import HashPartitions, RangePartition, ValuePartition
from braid.model.plan import Plan
from braid.model.predicate import Predicate
from braid.model.program import ALWAYS, Emit, Filter, Guard, Join, Project, Reuse, Ship, SiteProgram, Union, Update
from braid.model.query import Query, Source
from braid.model.statistics import Statistics
from braid.model.stream import Stream
from braid.model.tree import Leaf, Merge, Reused
from braid.model.window import Now, Range, Rows

QUERY = braid.parse("SELECT a.x FROM a [NOW], b [NOW] WHERE a.x = b.x")
A, B = Column("a", "x"), Column("b", "x")
EQUAL = Predicate(Call("equal", (A, B)))
ONLY_A = Predicate(Call("greater", (A, Literal(1, pa.int32()))))
CLASS = AttributeClass((("a", A), ("b", B)), None)
SOURCE = Source("a", "a", Now())
ADVERTISED = Advertisement(QUERY, "n")
SCHEMA = pa.schema({"ts": pa.timestamp("us")})


def program(*instructions: object) -> SiteProgram:
    return SiteProgram(QUERY, instructions)  # type: ignore[arg-type]


INVALID: list[tuple[Callable[[], object], type[BraidError], str]] = [
    (
        lambda: Predicate("a.x=1"),
        ModelError,
        "a condition must be a Column or Literal or Call or Cast or HostExpression, not 'a.x=1'",
    ),
    (lambda: Column(1, "x"), ModelError, "the stream of a column must be a string or None, not 1"),
    (lambda: Column("a", None), ModelError, "the name of a column must be a string"),
    (lambda: Literal([1], pa.int32()), ModelError, "a constant must be"),
    (lambda: Literal(1, "int"), ModelError, "the type of a constant must be a DataType, not 'int'"),
    (lambda: Call("", ()), ModelError, "the name of a function must not be empty"),
    (lambda: Call("equal", (A, 1)), ModelError, "each of the arguments of EQUAL must be"),
    (lambda: Call("equal", [A, B]), ModelError, "the arguments of EQUAL must be a tuple"),
    (lambda: Cast("x", pa.int32()), ModelError, "the operand of a cast must be"),
    (lambda: Cast(A, int), ModelError, "the type of a cast must be"),
    (lambda: AttributeClass((), None), ModelError, "an attribute class joins at least two streams, not 0"),
    (lambda: AttributeClass((("a", A),), None), ModelError, "at least two streams, not 1"),
    (
        lambda: AttributeClass((("b", A), ("a", A)), None),
        ModelError,
        "'a.x' must read columns of stream 'b' and of no other",
    ),
    (lambda: AttributeClass((("a", A, B),), None), ModelError, "a stream and an expression"),
    (lambda: AttributeClass((("a", A), ("b", B)), "int"), ModelError, "the type of an attribute class"),
    (lambda: JoinGraph((), (), (), ()), ModelError, "a join graph needs at least one stream"),
    (lambda: JoinGraph(("a", "a"), (), (), ()), ModelError, "each stream once"),
    (lambda: JoinGraph(("a",), (CLASS,), (), ()), ModelError, "'a.x = b.x' reads stream 'b', which is not in"),
    (
        lambda: JoinGraph(("a",), (), (("z", ONLY_A),), ()),
        ModelError,
        "reads stream 'z', which is not in the join graph",
    ),
    (lambda: JoinGraph(("a", "b"), (), (("b", ONLY_A),), ()), ModelError, "reads other streams too"),
    (lambda: JoinGraph(("a",), (), (), (EQUAL,)), ModelError, "reads stream 'b', which is not in the join graph"),
    (lambda: JoinGraph(("a", "b"), (), (), (ONLY_A,)), ModelError, "reads only one stream; make it a selection"),
    (lambda: Output(3, A), ModelError, "the name of a column must be a string"),
    (lambda: Output("x", "a.x"), ModelError, "the column 'x' must be"),
    (lambda: Star(3), ModelError, "the stream of a star"),
    (lambda: Source("", "a", Now()), ModelError, "the alias of a stream must not be empty"),
    (lambda: Source("a", "a", "[NOW]"), ModelError, "the window of 'a' must be a Range or Rows or Now or Unbounded"),
    (lambda: Source("a", "a", Now(), "a"), ModelError, "the declaration of 'a' must be a Stream"),
    (lambda: Query("", (SOURCE,), ()), ModelError, "a query selects at least one column"),
    (lambda: Query("", (SOURCE,), (A,)), ModelError, "each of the columns of a query must be an Output or Star"),
    (lambda: Query("", (SOURCE,), (Star("z"),)), BraidError, "'z' is not a stream of this query"),
    (lambda: Query("", (SOURCE,), (Star(None),), ("x",)), ModelError, "each of the conditions of a query"),
    (lambda: Query(None, (SOURCE,), (Star(None),)), ModelError, "the text of a query must be a string, not None"),
    (lambda: Query("", ["a"], (Star(None),)), ModelError, "the streams of a query must be a tuple"),
    (lambda: Range("5"), ModelError, "the length of a window must be a whole number, not '5'"),
    (lambda: Range(True), ModelError, "must be a whole number, not True"),
    (lambda: Range(5, 1.5), ModelError, "the slide of a window must be a whole number"),
    (lambda: Rows(2, "abc"), ModelError, "the columns to partition by must be a tuple, not 'abc'"),
    (lambda: Rows(2, ("",)), ModelError, "a column to partition by must not be empty"),
    (lambda: Rows(2.0), ModelError, "the rows of a window must be a whole number"),
    (lambda: Stream("a", {"ts": 1}, "ts"), StreamError, "the columns of stream 'a' are an Arrow schema"),
    (
        lambda: Stream("a", SCHEMA, "ts", True),
        StreamError,
        "the lateness of stream 'a' must be 0 or more whole microseconds, not True",
    ),
    (lambda: Statistics(rates={"a": "fast"}), ModelError, "rates of a cannot be fast"),
    (lambda: Statistics(rates={"a": float("inf")}), ModelError, "rates of a cannot be inf"),
    (lambda: Statistics(rates=[1]), ModelError, r"the rates of statistics must be a Mapping, not \[1\]"),
    (lambda: Statistics(rates={1: 1.0}), ModelError, "a key of the rates must be a string or frozenset, not 1"),
    (lambda: Statistics(sites={"a": 1}), ModelError, "the site of 'a' must be a string"),
    (lambda: Statistics(histograms={"a.x": [1]}), ModelError, "the histogram of a.x must be a Mapping"),
    (lambda: Statistics(histograms={"a.x": {1: "much"}}), ModelError, "the rate of a.x = 1 cannot be much"),
    (lambda: Plan("q", {}), PlanError, "the query of a plan must be a Query"),
    (lambda: Plan(QUERY, 5), PlanError, "the sequences of a plan must be a Mapping"),
    (lambda: Leaf(""), PlanError, "a leaf of a join tree must not be empty"),
    (lambda: Reused(frozenset(), "n", "x"), PlanError, "a derived stream joins at least one stream"),
    (lambda: Merge(("a", "b")), PlanError, "each of the inputs of a join must be a Leaf or Reused or Merge"),
    (lambda: Flow("ab", "n", "m"), PlanError, "the streams of a flow must be a frozenset"),
    (lambda: Advertisement("q", "n"), PlanError, "the query of an advertisement must be a Query"),
    (lambda: Reuse("a", (), "a+b"), PlanError, "the advertisement to reuse must be an Advertisement, not 'a'"),
    (
        lambda: Reuse(ADVERTISED, (("a", "a"),), "a+b"),
        PlanError,
        "each stream of a ⋈ b at n needs one alias in this query",
    ),
    (lambda: Reuse(ADVERTISED, (("a", "a"), ("b", "a")), "a+b"), PlanError, "give pairs for a, b, not"),
    (
        lambda: program(Reuse(ADVERTISED, (("a", "z"), ("b", "b")), "a+b")),
        PlanError,
        "'z' of a ⋈ b at n is not a stream of this",
    ),
    (lambda: Site(""), TopologyError, "the name of a site must not be empty"),
    (lambda: Link("a", 3), TopologyError, "the end of a link must be a string, not 3"),
    (lambda: Topology(("a",), ()), TopologyError, "each of the sites of a topology must be a Site, not 'a'"),
    (lambda: Topology(5, ()), TopologyError, "the sites of a topology must be an Iterable, not 5"),
    (lambda: Topology((Site("a"),), None), TopologyError, "the links of a topology must be an Iterable, not None"),
    (lambda: Statistics(rates={"a": 10**400}), ModelError, "rates of a cannot be 1000"),
    (lambda: Statistics(rates={"a": 10**5000}), ModelError, "rates of a cannot be an int too long to print"),
    (
        lambda: Statistics(histograms={"a.x": {1: 10**5000}}),
        ModelError,
        "the rate of a.x = 1 cannot be an int too long to print",
    ),
    (lambda: Statistics(rates=10**5000), ModelError, "must be a Mapping, not an int too long to print"),
    (
        lambda: Plan(QUERY, {"a": 5, "b": ["a"]}),
        PlanError,
        "the probe sequence of head .a. is a list of stre.*not 5",
    ),
    (lambda: Plan(QUERY, {1: ["b"]}), PlanError, "a head is the name of a stream, not 1"),
    (lambda: Plan(QUERY, {"a": [1], "b": ["a"]}), PlanError, "the probe sequence of head 'a' is a list of streams"),
    (lambda: TimeWindow("1 s", 1), ModelError, "the length of a time window must be a whole number"),
    (lambda: TimeWindow(2, True), ModelError, "the slide of a time window must be a whole number"),
    (
        lambda: TimeWindow(1, 2),
        ModelError,
        "slide of a time window must be from 1 to its length, 1 microseconds, not 2",
    ),
    (lambda: Measure("", "sum", None, pa.int64()), ModelError, "the name of a measure must not be empty"),
    (lambda: Measure("m", "sum", "x", "int"), ModelError, "the type of a measure must be a DataType"),
    (lambda: Grouping(()), ModelError, "a grouping selects at least one column"),
    (lambda: Grouping((A,)), ModelError, "each of the columns of a grouping must be an Output"),
    (lambda: Grouping((Output("x", A),), keys=("x",)), ModelError, "each of the keys of a grouping must be"),
    (lambda: Grouping((Output("x", A),), window=5), ModelError, "the time window of a grouping must be"),
    (lambda: Grouping((Output("x", A),), having="x"), ModelError, "the HAVING condition of a grouping must be"),
    (
        lambda: HashPartitions("x", 2, frozenset({1})),
        PlanError,
        "the attribute class of a partition must be an AttributeClass",
    ),
    (lambda: HashPartitions(CLASS, 2, frozenset({2})), PlanError, "hash classes are numbered 0 to 1"),
    (lambda: HashPartitions(CLASS, 0, frozenset({0})), PlanError, "there is at least 1 hash class, not 0"),
    (lambda: ValuePartition(CLASS, frozenset({None})), PlanError, "null is not a key"),
    (lambda: ValuePartition(CLASS, {1}), PlanError, "the values of a partition must be a frozenset"),
    (
        lambda: ValuePartition(CLASS, frozenset(), ranges=((1, 3), (3, 4))),
        PlanError,
        "ranges are sorted pairs .* without overlaps",
    ),
    (lambda: ValuePartition(CLASS, frozenset(), ranges=((3, 1),)), PlanError, "ranges are sorted pairs"),
    (lambda: RangePartition(CLASS, 3, 3), PlanError, "the range from 3 to below 3 has no key"),
    (lambda: Guard(since=1.5), PlanError, "the start of a guard must be a whole number"),
    (lambda: Guard(partitions=3), PlanError, "the partitions of a guard must be"),
    (lambda: Guard(since=3, until=3), PlanError, "lets nothing through"),
    (lambda: Update(""), PlanError, "the stream of an update must not be empty"),
    (lambda: Filter("a", "x > 1"), PlanError, "the condition of a filter must be a Predicate"),
    (lambda: Join("a", "b", "ab", ("x",)), PlanError, "each of the keys of a join must be an AttributeClass"),
    (lambda: Join("a", "b", "ab", guard=None), PlanError, "the guard of a join must be a Guard"),
    (lambda: Union((), "u"), PlanError, "a union needs at least one stream"),
    (lambda: Project("a", "r", ("x",)), PlanError, "each of the columns of a projection"),
    (lambda: Ship("a", ""), PlanError, "the site to ship to must not be empty"),
    (lambda: Ship("a", "n", "always"), PlanError, "the guard of a shipped stream must be a Guard"),
    (lambda: Emit("a", 3), PlanError, "the query to emit for must be a string"),
    (lambda: program("emit a"), PlanError, "each of the instructions of a site program must be"),
    (lambda: program(Emit("a", "q")), PlanError, "'a' is emitted, but no earlier instruction projects it"),
    (lambda: program(Join("a", "b", "ab")), PlanError, "probes 'b', but no earlier instruction keeps its window"),
    (lambda: program(Ship("z", "n")), PlanError, "reads 'z', which no earlier instruction makes"),
]


@pytest.mark.parametrize(("make", "error", "message"), INVALID, ids=[message for _, _, message in INVALID])
def test_invalid_values_are_refused(make: Callable[[], object], error: type[BraidError], message: str) -> None:
    with pytest.raises(error, match=message):
        make()


def test_valid_values_are_accepted() -> None:
    projection = Project("a", "r", (Star(None),))
    assert program(Update("a"), projection, Emit("r", "q")).instructions[1] is projection
    assert JoinGraph(("a", "b"), (CLASS,), (("a", ONLY_A),), ()).selections_of("a") == (ONLY_A,)
    assert Ship("a", "n").guard is ALWAYS
    assert Rows(2, ("k",)).partition_by == ("k",)
    assert RangePartition(CLASS, 1, 3).covers(1) and not RangePartition(CLASS, 1, 3).covers(3)
    assert ValuePartition(CLASS, frozenset({1}), others=True).covers(2)
    assert ValuePartition(CLASS, frozenset({9}), ranges=((1, 3),)).covers(3)
