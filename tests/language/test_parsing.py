"""Parsing: from a text to a Query."""

import pyarrow as pa
import pytest

import braid
from braid import QueryError, Stream
from braid.model.expressions.expression import Call, Column, Literal
from braid.model.query import Output, Star
from braid.model.window import Now, Range, Rows

MINUTE = 60_000_000


def test_the_gate_agent_query_of_the_iflow_paper() -> None:
    query = braid.parse(
        """SELECT FL.GATE, BG.STATUS, CI.STATUS

FROM FLIGHTS FL [RANGE 5 MINUTES], BAGGAGE BG
[RANGE 1 MINUTE], CHECKINS CI [RANGE 1 MINUTE]

WHERE FL.NUM = CI.FLIGHT AND FL.NUM =

BG.FLIGHT AND FL.NUM = 42;"""
    )
    assert [str(source) for source in query.sources] == [
        "FLIGHTS [RANGE 5 MINUTES] AS FL",
        "BAGGAGE [RANGE 1 MINUTE] AS BG",
        "CHECKINS [RANGE 1 MINUTE] AS CI",
    ]
    assert [output.name for output in query.outputs if isinstance(output, Output)] == ["GATE", "STATUS", "STATUS"]
    assert [str(predicate) for predicate in query.predicates] == [
        "FL.NUM = CI.FLIGHT",
        "FL.NUM = BG.FLIGHT",
        "FL.NUM = 42",
    ]
    assert [sorted(members.sources) for members in query.graph.classes] == [["BG", "CI", "FL"]]


def test_the_terminal_query_of_the_iflow_paper() -> None:
    query = braid.parse(
        """SELECT FL.NUM, FL.GATE, BG.AREA, CI.STATUS, WR.FORECAST

FROM FLIGHTS FL [RANGE 5 MINUTES], WEATHER WR

[RANGE 5 MINUTES], CHECKINS CI [RANGE 1 MINUTE], BAGGAGE BG [RANGE 1 MINUTE] WHERE FL.DEST =

WR.CITY AND FL.NUM = CI.FLIGHT

AND FL.NUM = BG.FLIGHT AND FL.TERMINAL = 'S'

AND FL.CARRIER_CODE = ''DL'';"""
    )
    assert query.aliases == ("FL", "WR", "CI", "BG")
    assert str(query.predicates[-1]) == "FL.CARRIER_CODE = 'DL'"
    assert len(query.predicates) == 5


def test_the_traffic_query_of_the_cape_paper() -> None:
    query = braid.parse(
        """SELECT R1.carID, R1.MPH
FROM Sensor2 as R2 [Range 2min], Sensor1 as R1 [Range 2min]
WHERE R1.carID = R2.carID AND R1.type = "Car";"""
    )
    assert [source.window for source in query.sources] == [Range(2 * MINUTE)] * 2
    assert [str(predicate) for predicate in query.predicates] == ["R1.carID = R2.carID", "R1.type = 'Car'"]


def test_conditions_of_on_and_where_are_one_flat_list() -> None:
    query = braid.parse(
        "SELECT 1 FROM a [NOW] JOIN b [ROWS 2] ON a.x = b.x AND (a.y = b.y AND a.z < b.z) CROSS JOIN c [NOW], d [NOW] "
        "INNER JOIN e [NOW] ON d.k = e.k WHERE NOT a.p AND (a.q OR b.q) AND a.t BETWEEN 1 AND 2"
    )
    assert query.aliases == ("a", "b", "c", "d", "e")
    assert query.sources[1].window == Rows(2)
    assert [str(predicate) for predicate in query.predicates] == [
        "a.x = b.x",
        "a.y = b.y",
        "a.z < b.z",
        "d.k = e.k",
        "NOT(a.p)",
        "a.q OR b.q",
        "a.t >= 1",
        "a.t <= 2",
    ]


def test_outputs_are_named_after_alias_column_or_text() -> None:
    query = braid.parse(
        "SELECT a.X, a.x AS y, a.x z, a.x  +  1, LOWER( a.s ), 5, 'it', CASE WHEN a.x > 1 THEN 2 END FROM a [NOW]"
    )
    assert [output.name for output in query.outputs if isinstance(output, Output)] == [
        "X",
        "y",
        "z",
        "a.x + 1",
        "LOWER( a.s )",
        "5",
        "'it'",
        "CASE WHEN a.x > 1 THEN 2 END",
    ]


def test_stars() -> None:
    query = braid.parse("SELECT *, B.*, a.x FROM a [NOW], b [NOW]")
    assert query.outputs == (Star(None), Star("b"), Output("x", Column("a", "x")))


def test_a_single_stream_has_every_column() -> None:
    query = braid.parse("SELECT x FROM s [NOW] AS t WHERE y > 1")
    assert query.outputs == (Output("x", Column("t", "x")),)
    assert str(query.predicates[0]) == "t.y > 1"


def test_among_several_streams_an_unqualified_column_stays_unresolved() -> None:
    query = braid.parse("SELECT x FROM a [NOW], b [NOW]")
    assert query.outputs == (Output("x", Column(None, "x")),)
    assert not query.bound


def test_qualifiers_ignore_case_unless_one_matches_exactly() -> None:
    query = braid.parse("SELECT a.x, A.x, AB.x FROM s [NOW] a, r [NOW] A, q [NOW] ab")
    assert [output.expression for output in query.outputs if isinstance(output, Output)] == [
        Column("a", "x"),
        Column("A", "x"),
        Column("ab", "x"),
    ]
    with pytest.raises(QueryError, match="'AB' could be ab or Ab"):
        braid.parse("SELECT AB.x FROM s [NOW] ab, r [NOW] Ab")


@pytest.mark.parametrize(
    ("written", "value", "type_"),
    [
        ("5", 5, pa.int32()),
        ("-2147483648", -(2**31), pa.int32()),
        ("2147483648", 2**31, pa.int64()),
        ("-9223372036854775808", -(2**63), pa.int64()),
        ("10L", 10, pa.int64()),
        ("10S", 10, pa.int16()),
        ("10Y", 10, pa.int8()),
        ("-10L", -10, pa.int64()),
        ("-128Y", -128, pa.int8()),
        ("- 32768S", -(2**15), pa.int16()),
        ("-9223372036854775808L", -(2**63), pa.int64()),
        ("- -128Y", -128, pa.int8()),
        ("-(-2147483648)", -(2**31), pa.int32()),
        ("-(-9223372036854775808)", -(2**63), pa.int64()),
        ("-(2147483648)", -(2**31), pa.int64()),
        ("- - 5", 5, pa.int32()),
        ("1e3", 1000.0, pa.float64()),
        ("-1.5D", -1.5, pa.float64()),
        ("1.5F", 1.5, pa.float32()),
        ("TRUE", True, pa.bool_()),
        ("NULL", None, pa.null()),
        ("X'0aFF'", b"\x0a\xff", pa.binary()),
        ("'a' 'b'", "ab", pa.string()),
        (r"r'\d'", r"\d", pa.string()),
        (r"'\\d'", r"\d", pa.string()),
    ],
)
def test_literals_have_the_types_of_spark(written: str, value: object, type_: pa.DataType) -> None:
    output = braid.parse(f"SELECT {written} AS v FROM s [NOW]").outputs[0]
    assert isinstance(output, Output)
    assert output.expression == Literal(value, type_)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("written", "digits"),
    [
        *(("1.5", (2, 1)), ("0.05", (2, 2)), ("-12.340", (5, 3)), ("1.5BD", (2, 1)), ("99999999999999999999", (20, 0))),
        ("-0.12345678901234567890123456789012345678", (38, 38)),
    ],
)
def test_decimal_literals_have_the_precision_they_are_written_with(written: str, digits: tuple[int, int]) -> None:
    output = braid.parse(f"SELECT {written} AS v FROM s [NOW]").outputs[0]
    assert isinstance(output, Output)
    assert isinstance(output.expression, Literal)
    assert output.expression.type == pa.decimal128(*digits)
    assert str(output.expression.value) == written.removesuffix("BD")


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("INTERVAL 5 MINUTES", 300),
        ("INTERVAL '5' MINUTE", 300),
        ("INTERVAL '5 minutes'", 300),
        ("INTERVAL '2 days 3 hours'", 183600),
        ("INTERVAL '1 day -2.5 seconds'", 86397.5),
        ("INTERVAL '1.5' SECOND", 1.5),
        ("INTERVAL '1 02:03:04.5' DAY TO SECOND", 93784.5),
        ("INTERVAL '-02:03' HOUR TO MINUTE", -7380),
        ("INTERVAL 2 WEEKS", 1209600),
        ("INTERVAL -5 SECONDS", -5),
    ],
)
def test_intervals(written: str, seconds: float) -> None:
    output = braid.parse(f"SELECT {written} AS v FROM s [NOW]").outputs[0]
    assert isinstance(output, Output)
    assert isinstance(output.expression, Literal)
    assert output.expression.value.total_seconds() == seconds  # type: ignore[union-attr]
    assert output.expression.type == pa.duration("us")


def test_long_chains_become_shallow_trees() -> None:
    query = braid.parse("SELECT 1 FROM s [NOW] WHERE " + " OR ".join(f"x = {number}" for number in range(1000)))
    depth, expression = 0, query.predicates[0].expression
    while isinstance(expression, Call) and expression.function == "or":
        depth, expression = depth + 1, expression.arguments[0]
    assert depth <= 10


def test_parsing_with_streams_binds_the_query() -> None:
    stream = Stream("s", pa.schema({"ts": pa.timestamp("us"), "x": pa.int32()}), "ts")
    query = braid.parse("SELECT * FROM S [NOW] WHERE X > 1", {"s": stream})
    assert query.bound
    assert query.sources[0].window == Now()
    assert query.outputs == (Output("ts", Column("S", "ts")), Output("x", Column("S", "x")))


@pytest.mark.parametrize(
    "streams",
    [
        "(a [NOW] JOIN b [NOW] ON a.k = b.k) JOIN c [NOW] ON b.k = c.k",
        "((a [NOW]) JOIN (b [NOW]) ON a.k = b.k) JOIN ((c [NOW])) ON b.k = c.k",
        "a [NOW] JOIN (b [NOW] JOIN c [NOW] ON b.k = c.k) ON a.k = b.k",
        "a [NOW] JOIN b [NOW] JOIN c [NOW] ON b.k = c.k ON a.k = b.k",
    ],
)
def test_joins_may_be_nested_in_brackets(streams: str) -> None:
    query = braid.parse(f"SELECT * FROM {streams}")
    assert query.aliases == ("a", "b", "c")
    assert {str(predicate) for predicate in query.predicates} == {"a.k = b.k", "b.k = c.k"}
    except_ = braid.parse(f"SELECT a.k, c.k FROM {streams} EXCEPT SELECT d.k, d.k FROM d [NOW]")
    assert [existence.source.alias for existence in except_.existences] == ["d"]


def test_joins_in_brackets_cannot_have_an_alias() -> None:
    with pytest.raises(QueryError, match="subqueries are not supported"):
        braid.parse("SELECT * FROM (a [NOW] JOIN b [NOW] ON a.k = b.k) AS t")


def test_concatenation_has_the_precedence_of_plus_and_minus() -> None:
    query = braid.parse("SELECT 'n' || v + 1, v + 1 || 'n', 'n' || v * 2, 'n' || (v + 1) FROM s [NOW]")
    column, letter = Column("s", "v"), Literal("n", pa.string())
    one, two = Literal(1, pa.int32()), Literal(2, pa.int32())
    assert [output.expression for output in query.outputs if isinstance(output, Output)] == [
        Call("add", (Call("concat", (letter, column)), one)),
        Call("concat", (Call("add", (column, one)), letter)),
        Call("concat", (letter, Call("multiply", (column, two)))),
        Call("concat", (letter, Call("add", (column, one)))),
    ]
