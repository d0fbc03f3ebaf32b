"""Binding a query to its streams: names, stars, partitions and types."""

import pyarrow as pa
import pytest

from braid import QueryError, Stream, StreamError
from braid.language import bind, parse
from braid.model.expressions.expression import Call, Column, Literal
from braid.model.query import Output
from braid.model.window import Rows

TIME = pa.timestamp("us")
STREAMS = {
    "bids": Stream(
        "bids",
        pa.schema(
            {
                "ts": TIME,
                "item": pa.int64(),
                "price": pa.decimal128(9, 2),
                "Who": pa.string(),
                "tags": pa.list_(pa.string()),
                "names": pa.map_(pa.string(), pa.string()),
                "ok": pa.bool_(),
            }
        ),
        "ts",
    ),
    "items": Stream(
        "items",
        pa.schema(
            {
                "ts": TIME,
                "id": pa.int32(),
                "name": pa.string(),
                "day": pa.date32(),
                "since": pa.timestamp("ms", "Asia/Tokyo"),
                "w": pa.float32(),
            }
        ),
        "ts",
    ),
}


def bound_outputs(text: str) -> list[tuple[str, str]]:
    query = parse(text, STREAMS)
    return [(output.name, str(output.expression)) for output in query.outputs if isinstance(output, Output)]


def first_predicate(condition: str) -> str:
    return str(parse(f"SELECT 1 FROM bids [NOW] b, items [NOW] i WHERE {condition}", STREAMS).predicates[0])


def error_of(text: str) -> QueryError:
    with pytest.raises(QueryError) as raised:
        parse(text, STREAMS)
    return raised.value


def test_columns_find_their_streams() -> None:
    assert bound_outputs("SELECT item, ID, who, b.WHO FROM bids [NOW] b, items [NOW] i") == [
        ("item", "b.item"),
        ("ID", "i.id"),
        ("who", "b.Who"),
        ("WHO", "b.Who"),
    ]


def test_stars_become_columns_in_the_order_of_the_schema() -> None:
    names = [name for name, _ in bound_outputs("SELECT i.*, * FROM bids [NOW] b, items [NOW] i")]
    assert names == [*STREAMS["items"].schema.names, *STREAMS["bids"].schema.names, *STREAMS["items"].schema.names]


def test_a_stream_may_be_used_twice_under_two_aliases() -> None:
    assert bound_outputs("SELECT a.item, c.item AS other FROM bids [NOW] a, bids [NOW] c") == [
        ("item", "a.item"),
        ("other", "c.item"),
    ]


def test_an_exact_name_wins_over_one_in_another_case() -> None:
    stream = Stream("s", pa.schema({"ts": TIME, "a": pa.int32(), "A": pa.int32()}), "ts")
    query = parse("SELECT A FROM s [NOW]", {"s": stream, "S": stream})
    assert query.outputs == (Output("A", Column("s", "A")),)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("SELECT 1 FROM Ab [NOW]", "stream 'Ab' could be AB or ab"),
        ("SELECT Xx FROM ab [NOW]", "column 'Xx' could be xx or XX"),
    ],
)
def test_names_that_differ_in_case_only_must_be_written_exactly(text: str, problem: str) -> None:
    stream = Stream("s", pa.schema({"ts": TIME, "xx": pa.int32(), "XX": pa.int32()}), "ts")
    with pytest.raises(QueryError) as raised:
        parse(text, {"AB": stream, "ab": stream})
    assert raised.value.problem == problem


def test_partition_columns_are_spelled_as_in_the_schema() -> None:
    query = parse("SELECT 1 FROM bids [PARTITION BY WHO, item ROWS 5]", STREAMS)
    assert query.sources[0].window == Rows(5, ("Who", "item"))


def test_binding_twice_changes_nothing() -> None:
    query = parse("SELECT *, price * 2 FROM bids [NOW] WHERE ts > '2024-01-01' AND ok", STREAMS)
    assert bind(query, STREAMS) == query


@pytest.mark.parametrize(
    ("condition", "bound"),
    [
        ("b.ts > '2024-01-01'", "b.ts > '2024-01-01 00:00:00'"),
        ("'2024-01-01T12:00Z' <= b.ts", "'2024-01-01 12:00:00' <= b.ts"),
        ("i.since = '2024-01-01 02:00:00+02:00'", "i.since = '2024-01-01 00:00:00+00:00'"),
        ("i.day = '2024-1-1'", "i.day = '2024-01-01'"),
        ("item = '7'", "b.item = 7"),
        ("item = '7.0'", "b.item = 7"),
        ("price = '7.5'", "b.price = 7.5"),
        ("i.day = '2024-01-01 00:00:00'", "i.day = '2024-01-01'"),
        ("w < '1e2'", "i.w < 100.0"),
        ("ok = 'true'", "b.ok = TRUE"),
        ("item IN ('1', '2')", "IN(b.item, 1, 2)"),
        ("name = '7'", "i.name = '7'"),
    ],
)
def test_texts_are_converted_to_the_type_they_are_compared_with(condition: str, bound: str) -> None:
    assert first_predicate(condition) == bound


def test_a_converted_text_has_a_type() -> None:
    expression = parse("SELECT 1 FROM bids [NOW] WHERE item = '7'", STREAMS).predicates[0].expression
    assert isinstance(expression, Call)
    assert expression.arguments[1] == Literal(7, pa.int32())


@pytest.mark.parametrize(
    ("text", "problem", "at", "hint"),
    [
        ("SELECT 1 FROM bidz [NOW]", "there is no stream 'bidz'", "bidz", "did you mean 'bids'?"),
        ("SELECT prize FROM bids [NOW]", "stream 'bids' has no column 'prize'", "prize", "did you mean 'price'?"),
        ("SELECT b.idd FROM bids [NOW] b, items [NOW] i", "stream 'b' has no column 'idd'", "b.idd", None),
        (
            "SELECT nam FROM bids [NOW], items [NOW]",
            "no stream of this query has a column 'nam'",
            "nam",
            "did you mean 'name'?",
        ),
        (
            "SELECT ts FROM bids [NOW] b, items [NOW] i",
            "column 'ts' is in several streams: b, i",
            "ts",
            "say which: b.ts or i.ts",
        ),
        (
            "SELECT 1 FROM bids [PARTITION BY wo ROWS 5]",
            "stream 'bids' has no column 'wo'",
            "wo",
            "did you mean 'Who'?",
        ),
        (
            "SELECT 1 FROM bids [PARTITION BY names ROWS 5]",
            "rows cannot be partitioned by 'names', which is map<string, string>",
            "names",
            None,
        ),
        (
            "SELECT 1 FROM bids [NOW] b, items [NOW] i WHERE Who = id",
            "cannot compare b.Who (string) with i.id (int32)",
            "Who = id",
            "cast one of them: CAST(b.Who AS BIGINT)",
        ),
        (
            "SELECT 1 FROM bids [NOW] WHERE ts < Who",
            "cannot compare bids.ts (timestamp[us]) with bids.Who (string)",
            "ts < Who",
            "cast one of them: CAST(bids.Who AS TIMESTAMP)",
        ),
        (
            "SELECT 1 FROM bids [NOW] WHERE ts < 5",
            "cannot compare bids.ts (timestamp[us]) with 5 (int32)",
            "ts < 5",
            None,
        ),
        (
            "SELECT 1 FROM bids [NOW] WHERE ts - ts = 3",
            "cannot compare (bids.ts - bids.ts) (duration[us]) with 3 (int32)",
            "ts - ts = 3",
            "compare a duration with another one, such as INTERVAL 5 MINUTES",
        ),
        ("SELECT 1 FROM bids [NOW] WHERE ok = 1", "cannot compare bids.ok (bool) with 1 (int32)", "ok = 1", None),
        (
            "SELECT 1 FROM bids [NOW] WHERE ts > 'noon'",
            "'noon' is compared with a timestamp but is not one",
            "'noon'",
            "write it as '2024-01-31 12:00:00'",
        ),
        (
            "SELECT 1 FROM bids [NOW] WHERE item IN (1, 'x')",
            "'x' is compared with an integer but is not one",
            "'x'",
            "write a number, without quotes",
        ),
        *(
            (
                f"SELECT 1 FROM bids [NOW], items [NOW] WHERE {column} < '{written}'",
                f"'{written}' is compared with an integer but is not one",
                f"'{written}'",
                "write a number, without quotes",
            )
            for column, written in (("item", "1.5"), ("item", "1e2"), ("id", "2147483648"))
        ),
        (
            "SELECT 1 FROM items [NOW] WHERE day < '2024-01-01 12:00:00'",
            "'2024-01-01 12:00:00' is compared with a date but is not one",
            "'2024-01-01 12:00:00'",
            "write it as '2024-01-31', or TIMESTAMP '2024-01-31 12:00:00' for a time of the day",
        ),
        (
            "SELECT 1 FROM bids [NOW] WHERE names = names",
            "bids.names is map<string, string>, and values of that type cannot be compared",
            "names",
            None,
        ),
        (
            "SELECT 1 FROM bids [NOW] WHERE tags < tags",
            "bids.tags is list<item: string>, and values of that type have no order",
            "tags",
            None,
        ),
        (
            "SELECT 1 FROM bids [NOW] WHERE item",
            "a condition is true or false, but bids.item is int64",
            "item",
            "compare it with something: bids.item = ..",
        ),
        (
            "SELECT 1 FROM bids [NOW] WHERE NOT item",
            "NOT needs a boolean, not int64",
            "item",
            "compare it with something: bids.item <> 0",
        ),
        (
            "SELECT Who + 1 FROM bids [NOW]",
            "'+' does not work on string and int32",
            "Who + 1",
            "cast it: CAST(bids.Who AS DOUBLE), or concatenate strings with ||",
        ),
        (
            "SELECT ts + 1 FROM bids [NOW]",
            "'+' does not work on timestamp[us] and int32",
            "ts + 1",
            "write a duration as INTERVAL 5 MINUTES",
        ),
        (
            "SELECT item / 2 DIV 3 FROM bids [NOW]",
            "'DIV' does not work on double and int32",
            "item / 2 DIV 3",
            "write FLOOR((bids.item / 2) / 3), or cast to BIGINT or DECIMAL first",
        ),
        ("SELECT -Who FROM bids [NOW]", "'-' does not work on string", "-Who", None),
        (
            "SELECT lower(item) FROM bids [NOW]",
            "LOWER needs a string, not int64",
            "item",
            "cast it: CAST(bids.item AS STRING)",
        ),
        (
            "SELECT sqrt(Who) FROM bids [NOW]",
            "SQRT needs a number, not string",
            "Who",
            "cast it: CAST(bids.Who AS DOUBLE)",
        ),
        (
            "SELECT year(Who) FROM bids [NOW]",
            "YEAR needs a date or timestamp, not string",
            "Who",
            "cast it: CAST(bids.Who AS TIMESTAMP)",
        ),
        (
            "SELECT CASE WHEN ok THEN 1 ELSE 'x' END FROM bids [NOW]",
            "int32 and string have no type in common",
            "CASE WHEN ok THEN 1 ELSE 'x' END",
            None,
        ),
        (
            "SELECT CAST(tags AS INT) FROM bids [NOW]",
            "list<item: string> cannot be cast to int32",
            "CAST(tags AS INT)",
            None,
        ),
        (
            "SELECT date_trunc('eon', ts) FROM bids [NOW]",
            "DATE_TRUNC cannot truncate to 'eon'",
            "date_trunc('eon', ts)",
            None,
        ),
        (
            "SELECT round(price, item) FROM bids [NOW]",
            "the number of digits of ROUND must be a whole number from -100 to 100",
            "item",
            "for example ROUND(x, 2)",
        ),
        (
            "SELECT 1 FROM bids [NOW] WHERE Who RLIKE '('",
            "this is not a valid regular expression: missing ): (",
            "'('",
            "use the syntax of RE2",
        ),
        (
            r"SELECT 1 FROM bids [NOW] WHERE Who LIKE r'a\b'",
            r"in this pattern the escape character \ comes before something other than %, _ or \ ".strip(),
            r"r'a\b'",
            r"write \\ for \ itself",
        ),
    ],
)
def test_errors_name_the_problem_and_point_at_it(text: str, problem: str, at: str, hint: str | None) -> None:
    error = error_of(text)
    assert error.problem == problem
    assert error.span is not None
    assert text[error.span.start : error.span.end] == at
    if hint is not None:
        assert error.hint == hint


def test_columns_of_any_type_can_be_selected() -> None:
    assert bound_outputs("SELECT tags FROM bids [NOW] WHERE tags IS NOT NULL") == [("tags", "bids.tags")]


def test_streams_must_be_a_mapping() -> None:
    with pytest.raises(StreamError, match="streams must map names to declarations of streams, not be of type int"):
        parse("SELECT a.x FROM a [NOW]", 5)  # type: ignore[arg-type]


def test_a_text_compared_with_a_float_becomes_a_float() -> None:
    """The float 1.1 would not equal the double 1.1."""
    expression = parse("SELECT 1 FROM items [NOW] WHERE w = '1.1'", STREAMS).predicates[0].expression
    assert isinstance(expression, Call)
    assert expression.arguments[1] == Literal(1.1, pa.float32())
