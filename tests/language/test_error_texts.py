"""The full text of the main errors, as users see it."""

import pyarrow as pa
import pytest

import braid
from braid import QueryError, Stream

STREAMS = {
    "flights": Stream("flights", pa.schema({"ts": pa.timestamp("us"), "num": pa.int32(), "gate": pa.string()}), "ts"),
    "bags": Stream("bags", pa.schema({"ts": pa.timestamp("us"), "flight": pa.string()}), "ts"),
}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (
            "SELECT * FROM flights",
            """\
stream 'flights' has no window (line 1, column 15)
  SELECT * FROM flights
                ^^^^^^^
say which rows count: flights [RANGE 5 MINUTES], flights [ROWS 100] or flights [UNBOUNDED]""",
        ),
        (
            "SELECT * FROM `flights of today`",
            """\
stream 'flights of today' has no window (line 1, column 15)
  SELECT * FROM `flights of today`
                ^^^^^^^^^^^^^^^^^^
say which rows count: `flights of today` [RANGE 5 MINUTES], `flights of today` [ROWS 100] or \
`flights of today` [UNBOUNDED]""",
        ),
        (
            'SELECT f."gate" FROM flights [NOW] AS f',
            """\
"gate" is a text, where a name is expected (line 1, column 10)
  SELECT f."gate" FROM flights [NOW] AS f
           ^^^^^^
backticks quote names: `gate`""",
        ),
        (
            'SELECT * FROM "flights of today" [RANGE 4 SECONDS]',
            """\
"flights of today" is a text, where a name is expected (line 1, column 15)
  SELECT * FROM "flights of today" [RANGE 4 SECONDS]
                ^^^^^^^^^^^^^^^^^^
backticks quote names: `flights of today`""",
        ),
        (
            "SELECT CASE WHEN num = 1 THEN END FROM flights [NOW]",
            """\
'END' is unexpected here (line 1, column 31)
  SELECT CASE WHEN num = 1 THEN END FROM flights [NOW]
                                ^^^
remove it, or write what is missing before it""",
        ),
        (
            "SELECT flights.num FROM flights [NOW], flights [NOW]",
            """\
two streams are called 'flights' (line 1, column 40)
  SELECT flights.num FROM flights [NOW], flights [NOW]
                                         ^^^^^^^^^^^^^
give one of them another name: stream [..] AS name""",
        ),
        (
            "SELECT *\nFROM flights [RANGE 5]",
            """\
the length of the window has no unit (line 2, column 21)
  FROM flights [RANGE 5]
                      ^
add a unit: RANGE 5 SECONDS, MINUTES, HOURS ..""",
        ),
        (
            "SELECT * FROM flights [RANGE 5 MINUTS]",
            """\
'MINUTS' is no unit of time (line 1, column 32)
  SELECT * FROM flights [RANGE 5 MINUTS]
                                 ^^^^^^
did you mean 'minutes'?""",
        ),
        (
            "SELECT * FROM flights RANGE 5 MINUTES",
            """\
a window stands in brackets (line 1, column 23)
  SELECT * FROM flights RANGE 5 MINUTES
                        ^^^^^
a window is one of [RANGE 5 MINUTES], [RANGE 5 MINUTES SLIDE 1 MINUTE], [TUMBLE 5 MINUTES], \
[HOP 5 MINUTES SLIDE 1 MINUTE], [ROWS 100], [PARTITION BY k ROWS 10], [UNTIL column], [NOW] or [UNBOUNDED]""",
        ),
        (
            "SELECT * FROM flights [RANGE 5 MINUTES WHERE num = 1",
            """\
this [ is never closed (line 1, column 23)
  SELECT * FROM flights [RANGE 5 MINUTES WHERE num = 1
                        ^
write ] where it ends""",
        ),
        (
            "SELECT f.gat FROM flights [NOW] AS f",
            """\
stream 'f' has no column 'gat' (line 1, column 8)
  SELECT f.gat FROM flights [NOW] AS f
         ^^^^^
did you mean 'gate'?""",
        ),
        (
            "SELECT flights.gate FROM flights [NOW] AS f",
            """\
'flights' is not a stream of this query (line 1, column 8)
  SELECT flights.gate FROM flights [NOW] AS f
         ^^^^^^^
it is called 'f' in this query""",
        ),
        (
            "SELECT gate FROM flights [NOW] f, bags [NOW] b\nWHERE f.num = b.flight",
            """\
cannot compare f.num (int32) with b.flight (string) (line 2, column 7)
  WHERE f.num = b.flight
        ^^^^^^^^^^^^^^^^
cast one of them: CAST(b.flight AS BIGINT)""",
        ),
        (
            "SELECT ts FROM flights [NOW] f, bags [NOW] b",
            """\
column 'ts' is in several streams: f, b (line 1, column 8)
  SELECT ts FROM flights [NOW] f, bags [NOW] b
         ^^
say which: f.ts or b.ts""",
        ),
        (
            "SELECT FIRST(gate) FROM flights [NOW]",
            """\
the aggregate FIRST is not supported (line 1, column 8)
  SELECT FIRST(gate) FROM flights [NOW]
         ^^^^^^^^^^^
there are COUNT, SUM, AVG, MIN and MAX; with braid.Session, Spark computes its own and registered functions""",
        ),
        (
            "SELECT gate FROM flihgts [NOW]",
            """\
there is no stream 'flihgts' (line 1, column 18)
  SELECT gate FROM flihgts [NOW]
                   ^^^^^^^
did you mean 'flights'?""",
        ),
        (
            "SELECT gate FROM flights [NOW] WHERE gate = 'A1",
            """\
a quote is never closed (line 1, column 45)
  SELECT gate FROM flights [NOW] WHERE gate = 'A1
                                              ^
write ' where it ends""",
        ),
        (
            "SELECT gate, FROM flights [NOW]",
            """\
something is missing between , and FROM (line 1, column 12)
  SELECT gate, FROM flights [NOW]
             ^^^^^^
write it, or remove the comma""",
        ),
        (
            "SELECT gate FROM flights [NOW] WHERE num =",
            """\
the query ends too early (line 1, column 42)
  SELECT gate FROM flights [NOW] WHERE num =
                                           ^
something is missing after '='""",
        ),
        (
            "SELECT gate FROM flights [NOW] WHERE num = = 5",
            """\
'=' is unexpected here (line 1, column 44)
  SELECT gate FROM flights [NOW] WHERE num = = 5
                                             ^
remove it, or write what is missing before it""",
        ),
        (
            "SELECT gate FROM flights [NOW] WHER num = 5",
            """\
'num' is unexpected here (line 1, column 37)
  SELECT gate FROM flights [NOW] WHER num = 5
                                      ^^^
did you mean WHERE instead of 'WHER'?""",
        ),
        (
            "SELECT gate 'a text\nof two lines' FROM flights [NOW]",
            """\
''a text of two lines'' is unexpected here (line 1, column 13)
  SELECT gate 'a text
              ^^^^^^^
remove it, or write what is missing before it""",
        ),
        (
            "SELECT FROM flights [NOW]",
            """\
nothing is selected (line 1, column 8)
  SELECT FROM flights [NOW]
         ^^^^
SELECT * gives every column""",
        ),
        (
            "SELECT gate FROM flights [NOW] WHERE ts < ts + INTERVAL 5 MINTUES",
            """\
'MINTUES' is no unit of time (line 1, column 48)
  SELECT gate FROM flights [NOW] WHERE ts < ts + INTERVAL 5 MINTUES
                                                 ^^^^^^^^^^^^^^^^^^
did you mean 'minutes'?""",
        ),
        (
            "SELECT X'0G' FROM flights [NOW]",
            """\
these are no hexadecimal digits (line 1, column 8)
  SELECT X'0G' FROM flights [NOW]
         ^^^^^
for example X'0AFF'""",
        ),
        (
            "SELECT gate FROM flights [PARTITION BY flights.num ROWS 5]",
            """\
PARTITION BY takes names of columns without the name of the stream (line 1, column 40)
  SELECT gate FROM flights [PARTITION BY flights.num ROWS 5]
                                         ^^^^^^^^
for example [PARTITION BY k ROWS 10]""",
        ),
        (
            "SELECT '日本', gat FROM flights [NOW]",
            """\
stream 'flights' has no column 'gat' (line 1, column 14)
  SELECT '日本', gat FROM flights [NOW]
                 ^^^
did you mean 'gate'?""",
        ),
        (
            "SELECT CAST(num AS INTT) FROM flights [NOW]",
            """\
there is no type 'INTT' (line 1, column 20)
  SELECT CAST(num AS INTT) FROM flights [NOW]
                     ^^^^
types are BOOLEAN, TINYINT, SMALLINT, INT, BIGINT, FLOAT, DOUBLE, DECIMAL(p, s), STRING, BINARY, DATE and TIMESTAMP""",
        ),
        (
            "SELECT 1 FROM flights [NOW]; SELECT 2 FROM bags [NOW]",
            """\
a second statement begins here (line 1, column 30)
  SELECT 1 FROM flights [NOW]; SELECT 2 FROM bags [NOW]
                               ^^^^^^
give one query at a time""",
        ),
        ("", "the query is empty (line 1, column 1)\n  \n  ^\nfor example SELECT * FROM bids [RANGE 5 MINUTES]"),
        (
            "SELCT 1",
            """\
a query begins with SELECT, not 'SELCT' (line 1, column 1)
  SELCT 1
  ^^^^^
for example SELECT * FROM bids [RANGE 5 MINUTES]""",
        ),
    ],
)
def test_error_texts(text: str, shown: str) -> None:
    with pytest.raises(QueryError) as raised:
        braid.parse(text, STREAMS)
    assert str(raised.value) == shown


@pytest.mark.parametrize(
    ("window", "problem"),
    [
        ("[]", "the brackets are empty"),
        ("[RANGE]", "RANGE needs the length of the window"),
        ("[RANGE MINUTES]", "the length of the window must be a whole number, not 'MINUTES'"),
        ("[RANGE 0 SECONDS]", "the length of the window is zero; it must be at least 1"),
        ("[RANGE -5 SECONDS]", "the length of the window must be a positive whole number, without a sign"),
        ("[RANGE 0.0000001 SECONDS]", "the length of the window is no whole number of microseconds"),
        ("[RANGE 0.0 SECONDS]", "the length of the window must be a whole number, not '0.0'"),
        ("[RANGE INTERVAL '5 weeks']", "'weeks' is no unit of time"),
        ("[RANGE INTERVAL '5']", "the length of the window has no unit"),
        ("[RANGE INTERVAL 'x' MINUTES]", "the length of the window must be a whole number, not 'x'"),
        ("[TUMBLE 5]", "the length of the window has no unit"),
        ("[TUMBLE 5 MINUTES SLIDE 1 MINUTE]", "'SLIDE' does not belong in this window"),
        ("[HOP 10 SECONDS]", "HOP needs SLIDE"),
        ("[HOP 2 SECONDS SLIDE 10 SECONDS]", "the slide of HOP is longer than its windows"),
        ("[SESSION 5 MINUTES]", "SESSION windows are not supported"),
        ("[UNTIL]", "UNTIL needs the name of a column"),
        ("[UNTIL s.x]", "UNTIL takes names of columns without the name of the stream"),
        ("[RANGE 1e3 SECONDS]", "the length of the window must be a whole number, not '1e3'"),
        ("[RANGE 99999999999 DAYS]", "the length of the window is too large"),
        ("[RANGE 999999999999999999999999 DAYS]", "the length of the window is too large"),
        ("[RANGE 5 FORTNIGHTS]", "'FORTNIGHTS' is no unit of time"),
        ("[RANGE 5 MINUTES SLIDE]", "SLIDE needs the length of the slide"),
        ("[RANGE 5 SLIDE 1 SECOND]", "the length of the window has no unit"),
        ("[RANGE 5 MINUTES SLIDE 0 SECONDS]", "the length of the slide is zero; it must be at least 1"),
        ("[RANGE 5 MINUTES 5 SECONDS]", "'5' does not belong in this window"),
        ("[ROWS]", "ROWS needs the number of rows"),
        ("[ROWS 0]", "the number of rows is zero; it must be at least 1"),
        ("[ROWS ten]", "the number of rows must be a whole number, not 'ten'"),
        ("[ROWS 5 MINUTES]", "'MINUTES' does not belong in this window"),
        ("[PARTITION k ROWS 5]", "PARTITION is followed by BY"),
        ("[PARTITION BY ROWS 5]", "PARTITION BY needs the name of a column"),
        ("[PARTITION BY k, ROWS 5]", "PARTITION BY needs the name of a column"),
        ("[PARTITION BY k]", "PARTITION BY is for ROWS windows, and ROWS is missing"),
        ("[PARTITION BY k RANGE 5 MINUTES]", "PARTITION BY is for ROWS windows, and ROWS is missing"),
        ("[RNAGE 5 MINUTES]", "'RNAGE' is not the beginning of a window"),
        ("[5 MINUTES]", "'5' is not the beginning of a window"),
        ("[NOW] [ROWS 5]", "this stream has a window already"),
        ("[NOW] AS x [ROWS 5]", "this stream has a window already"),
    ],
)
def test_invalid_windows(window: str, problem: str) -> None:
    with pytest.raises(QueryError) as raised:
        braid.parse(f"SELECT * FROM s {window}")
    assert raised.value.problem == problem
    assert raised.value.span is not None
    assert raised.value.span.start >= 16
