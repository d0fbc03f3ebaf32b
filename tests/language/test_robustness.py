"""Any text gives a query or a QueryError, and does so quickly."""

import random
import re
import time

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import braid
from braid import QueryError, Stream

STREAMS = {
    name: Stream(
        name, pa.schema({"ts": pa.timestamp("us"), "i": pa.int64(), "s": pa.string(), "d": pa.decimal128(9, 2)}), "ts"
    )
    for name in ("a", "b", "c")
}

VALID = [
    "SELECT a.i, b.* FROM a [RANGE 5 MINUTES], b [ROWS 10] AS b WHERE a.i = b.i AND a.s LIKE 'x%' AND b.d > 1.5",
    "SELECT * FROM a [Range 2min] JOIN b [PARTITION BY s ROWS 3] ON a.i = b.i CROSS JOIN c [NOW]",
    "SELECT CASE WHEN i > 1 THEN lower(s) ELSE 'n' END AS x, CAST(d AS INT), ts + INTERVAL 5 MINUTES FROM a [NOW]",
    "SELECT substring(s, 1, 2) || ''DL'', `i`, -i % 3, i IN (1, 2, NULL) FROM a [RANGE 10 s SLIDE 1 s];",
    "SELECT coalesce(s, 'it''s'), extract(year FROM ts), round(d, 1), 10L FROM a [UNBOUNDED] -- done",
    "SELECT date_trunc('hour', ts), i BETWEEN 1 AND 2, i IS NOT NULL, s RLIKE '^a' FROM c [NOW] WHERE NOT i <=> 5",
]

NASTY = [
    *("\0", "\ud800", "é", "日本", "\n", "\t", "''", "'", '"', "`", "\\", "/*", "--", "${", "{{", "@", "1e999999"),
    *("9" * 5000, "::", "->", "|>", "?", ":x", "[", "]", "(", ")", "[[", "]]", "<", ">", "=", ",", ";", ".", "..", "*"),
    *("OVER", "LATERAL", "PIVOT", "UNNEST", "VALUES", "WITH", "CASE", "WHEN", "END", "INTERVAL", "STRUCT<", "MAP"),
    *("ARRAY", "MATCH_RECOGNIZE", "TABLE", "x'", "0x", "b'", "r'", "QUALIFY", "USING", "INSERT", "CAST(", "TRIM("),
    *("EXTRACT(", "SELECT", "FROM", "WHERE", "JOIN", "ON", "AND", "NOT", "LIKE", "ESCAPE", "IN", "IS", "NULL", "AS"),
    *("RANGE", "ROWS", "PARTITION BY", "SLIDE", "NOW", "MINUTES", "year()", "JSON_TABLE(", "5f(", "1..5bd"),
]
WORDS = sorted({word for text in VALID for word in re.findall(r"\w+|[^\w\s]|\s+", text)}) + NASTY


def check_answer(text: str) -> None:
    """Check that a text parses, or raises a QueryError that can be shown."""
    try:
        braid.parse(text, STREAMS)
    except QueryError as error:
        problem, _, carets = str(error).split("\n")[:3]
        assert error.span is not None and 0 <= error.span.start <= len(text)
        assert problem.startswith(f"{error.problem} (line ") and set(carets) == {" ", "^"}


def mutated(text: str, source: random.Random) -> str:
    words = re.findall(r"\w+|[^\w\s]|\s+", text)
    for _ in range(source.randint(1, 4)):
        position = source.randrange(len(words))
        choice = source.random()
        if choice < 0.4:
            words.insert(position, source.choice(WORDS))
        elif choice < 0.6 and len(words) > 1:
            words.pop(position)
        elif choice < 0.8:
            words[position] = source.choice(WORDS)
        else:
            words.insert(position, source.choice(words))
    return "".join(words)


@pytest.mark.parametrize("text", VALID)
def test_the_seeds_are_valid(text: str) -> None:
    assert braid.parse(text, STREAMS).bound


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=200))
def test_random_characters(text: str) -> None:
    check_answer(text)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(WORDS), max_size=40))
def test_random_words(words: list[str]) -> None:
    check_answer("SELECT " + "".join(words))
    check_answer("SELECT * FROM a [" + " ".join(words))


@pytest.mark.parametrize("seed", range(8))
def test_mutated_valid_texts(seed: int) -> None:
    source = random.Random(seed)
    for _ in range(400):
        check_answer(mutated(source.choice(VALID), source))


@pytest.mark.sweep
@pytest.mark.parametrize("seed", range(100, 140))
def test_mutated_valid_texts_at_length(seed: int) -> None:
    source = random.Random(seed)
    for _ in range(5_000):
        check_answer(mutated(source.choice(VALID), source))


@pytest.mark.parametrize("value", [None, 5, b"SELECT 1", ["SELECT 1"], object()])
def test_a_query_must_be_text(value: object) -> None:
    with pytest.raises(QueryError, match="a query is text, not"):
        braid.parse(value)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["", " ", "\n\t", ";", ";;", "-- nothing", "/* nothing */"])
def test_empty_texts(text: str) -> None:
    with pytest.raises(QueryError, match="the query is empty"):
        braid.parse(text)


def test_garbage_of_a_megabyte_is_refused_at_once() -> None:
    source = random.Random(1)
    garbage = "".join(chr(source.randrange(1, 0x500)) for _ in range(1_000_000))
    started = time.perf_counter()
    for text in (garbage, "SELECT " + garbage, garbage[:99_000], "SELECT " + garbage[:90_000]):
        with pytest.raises(QueryError):
            braid.parse(text)
    assert time.perf_counter() - started < 4


@pytest.mark.parametrize("count", [20, 60, 200, 5_000])
@pytest.mark.parametrize(
    "text",
    [
        "SELECT {} FROM a [NOW]".format("(" * 3 + "i" + ")" * 3),
        "SELECT x FROM a [NOW] WHERE " + "{not_}i = 1",
        "SELECT {minus}i FROM a [NOW]",
        "SELECT {plus}i FROM a [NOW]",
        "SELECT {open}i{close} FROM a [NOW]",
        "SELECT {case}1{end} FROM a [NOW]",
        "SELECT 1 FROM {open}a{close}",
        "SELECT {open}",
        "SELECT {bracket}",
        "SELECT i FROM a [NOW] WHERE {and_}i = 1",
        "SELECT i FROM a [NOW] WHERE {or_}i = 1",
        "SELECT 1 FROM a [NOW]{join}",
    ],
)
def test_deep_and_long_texts(text: str, count: int) -> None:
    pieces = {
        "not_": "NOT ",
        "minus": "- ",
        "plus": "1 + ",
        "open": "(",
        "close": ")",
        "case": "CASE WHEN i > 1 THEN ",
        "end": " END",
        "bracket": "[",
        "and_": "i = 1 AND ",
        "or_": "i = 1 OR ",
        "join": " JOIN b [NOW]",
    }
    check_answer(text.format(**{name: piece * count for name, piece in pieces.items()}))


def test_joins_without_a_condition_are_read_once_each() -> None:
    aliases = [f"s{number}" for number in range(30)]
    joins = " JOIN ".join(f"a [NOW] AS {alias}" for alias in aliases)
    query = braid.parse(f"SELECT s0.i FROM {joins} ON s29.i = s28.i WHERE s1.i = s2.i", STREAMS)
    assert [source.alias for source in query.sources] == aliases
    assert [str(predicate) for predicate in query.predicates] == ["s29.i = s28.i", "s1.i = s2.i"]


def test_the_number_of_joins_without_a_condition_is_limited() -> None:
    def joins(count: int) -> str:
        return "SELECT s0.i FROM a [NOW] AS s0" + "".join(f" JOIN a [NOW] AS s{n}" for n in range(1, count + 1))

    assert len(braid.parse(joins(100), STREAMS).sources) == 101
    for count in (101, 300, 2_000):
        with pytest.raises(QueryError) as raised:
            braid.parse(joins(count), STREAMS)
        assert raised.value.problem == "100 joins before this one wait for their ON"
        assert raised.value.place == (1, len(joins(100)) + 2)


@pytest.mark.parametrize("digits", ["9" * 5_000, "-" + "9" * 5_000, "9" * 50_000], ids=["many", "negative", "more"])
@pytest.mark.parametrize(
    "text",
    [
        "SELECT {} FROM a [NOW]",
        "SELECT {}L FROM a [NOW]",
        "SELECT i FROM a [NOW] WHERE i < '{}'",
        "SELECT i FROM a [RANGE {} SECONDS]",
        "SELECT INTERVAL '{}' SECONDS FROM a [NOW]",
        "SELECT COUNT(*) FROM a [NOW] GROUP BY WINDOW(event_time, '{} seconds')",
        "SELECT round(d, {}) FROM a [NOW]",
        "SELECT CAST(i AS DECIMAL({}, 2)) FROM a [NOW]",
    ],
    ids=str.strip,
)
def test_numbers_of_thousands_of_digits_are_refused(text: str, digits: str) -> None:
    with pytest.raises(QueryError):
        braid.parse(text.format(digits), STREAMS)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT i FROM a [NOW] WHERE i = '{digits}x'",
        "SELECT i FROM a [NOW] WHERE ts = '2024-01-01 00:00:00{spaces}x'",
        "SELECT i FROM a [NOW] WHERE ts = '{spaces}x'",
        "SELECT DATE '2024-01-01{digits}{spaces}x' FROM a [NOW]",
        "SELECT INTERVAL '{digits}' FROM a [NOW]",
        "SELECT INTERVAL '{digits}' MINUTES FROM a [NOW]",
        "SELECT INTERVAL '{spaces}x' FROM a [NOW]",
        "SELECT INTERVAL {digits} MINUTES FROM a [NOW]",
        "SELECT {digits}::int FROM a [NOW]",
    ],
)
def test_the_time_to_read_a_constant_grows_with_its_length_only(text: str) -> None:
    with pytest.raises(QueryError) as raised:
        braid.parse(text.format(digits="1" * 90_000, spaces=" " * 90_000), STREAMS)
    assert len(str(raised.value)) < 1_000


@pytest.mark.parametrize("text", ["SELECT i FROM a [NOW] WHERE i = 'x\ny'", "SELECT `x\ny` FROM a [NOW]"])
def test_a_problem_is_one_line_whatever_it_quotes(text: str) -> None:
    with pytest.raises(QueryError) as raised:
        braid.parse(text, STREAMS)
    assert "'x y'" in raised.value.problem
    assert len(str(raised.value).splitlines()) == 4


@pytest.mark.parametrize("piece", ["'' ", '"" ', "`x` ", "/**/ "])
def test_an_unclosed_quote_is_found_after_many_closed_ones(piece: str) -> None:
    text = "SELECT " + piece * (90_000 // len(piece)) + "'"
    with pytest.raises(QueryError) as raised:
        braid.parse(text)
    assert raised.value.problem == "a quote is never closed"
    assert raised.value.place == (1, len(text))


def test_ordinary_nesting_is_accepted() -> None:
    for deep in (
        "SELECT " + "(" * 20 + "i" + ")" * 20 + " FROM a [NOW]",
        "SELECT " + "abs(" * 20 + "i" + ")" * 20 + " FROM a [NOW]",
        "SELECT " + "string(" * 24 + "i" + ")" * 24 + " FROM a [NOW]",
        "SELECT " + "i + " * 80 + "i FROM a [NOW]",
        "SELECT i FROM a [NOW] WHERE " + "i = 1 AND " * 2000 + "i = 1",
        "SELECT " + "CASE WHEN i = 1 THEN " * 15 + "i" + " END" * 15 + " FROM a [NOW]",
    ):
        assert braid.parse(deep, STREAMS).bound


def test_text_in_any_script() -> None:
    query = braid.parse("SELECT 名前 FROM 東京 [RANGE 5 MINUTES] WHERE 名前 = 'ü€😀'")
    assert query.sources[0].stream == "東京"
    assert str(query.predicates[0]) == "東京.名前 = 'ü€😀'"
