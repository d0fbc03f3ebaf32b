"""The dialect: where windows are written, how quotes are read, and what other programs can do with the tree."""

import duckdb
import pytest
from sqlglot import exp

from braid import QueryError
from braid.language.dialect import StreamTable, parse_statement
from braid.model.window import Now, Range, Rows, Unbounded, Window

MINUTE = 60_000_000


def windows(text: str) -> list[Window | None]:
    return [table.window for table in parse_statement(text).find_all(StreamTable, bfs=False)]


@pytest.mark.parametrize(
    ("written", "window"),
    [
        ("[RANGE 5 MINUTES]", Range(5 * MINUTE)),
        ("[Range 2min]", Range(2 * MINUTE)),
        ("[range 10 seconds slide 1 second]", Range(10_000_000, 1_000_000)),
        ("[RANGE 5s SLIDE 2d]", Range(5_000_000, 2 * 24 * 60 * MINUTE)),
        ("[RANGE 7 microseconds]", Range(7)),
        ("[RANGE 7 ms]", Range(7_000)),
        ("[RANGE 3 hr]", Range(180 * MINUTE)),
        ("[RANGE 5 /* why */ MINUTES]", Range(5 * MINUTE)),
        ("[\n RANGE\t5\nMINUTES ]", Range(5 * MINUTE)),
        ("[ROWS 1000]", Rows(1000)),
        ("[partition by k rows 10]", Rows(10, ("k",))),
        ("[PARTITION BY k, `a b` ROWS 10]", Rows(10, ("k", "a b"))),
        ("[NOW]", Now()),
        ("[Unbounded]", Unbounded()),
        ("[RANGE UNBOUNDED]", Unbounded()),
        ("[ROWS UNBOUNDED]", Unbounded()),
    ],
)
@pytest.mark.parametrize("entry", ["s {}", "s {} AS x", "s {} x", "s AS x {}", "s x {}"])
def test_a_window_stands_after_the_stream_or_after_its_alias(entry: str, written: str, window: Window) -> None:
    assert windows(f"SELECT * FROM {entry.format(written)}") == [window]
    two = f"SELECT * FROM {entry.format(written)}, r [NOW] WHERE 1 = 1"
    assert windows(two) == [window, Now()]
    joined = f"SELECT * FROM r [NOW] JOIN {entry.format(written)} ON 1 = 1"
    assert windows(joined) == [Now(), window]


def test_the_tree_written_as_text_parses_to_the_same_tree() -> None:
    text = "SELECT a.x FROM s AS a [RANGE 5 MINUTES] JOIN r AS b [PARTITION BY `k k` ROWS 3] ON a.x = b.y"
    tree = parse_statement(text)
    assert tree.sql(dialect="braid") == text
    assert parse_statement(tree.sql(dialect="braid")) == tree


def test_streams_can_be_replaced_by_tables_to_run_the_tree_on_duckdb() -> None:
    tree = parse_statement("SELECT a.x + 1 AS y FROM s AS a [RANGE 5 MINUTES] WHERE a.x > 1")
    for table in list(tree.find_all(StreamTable)):
        table.replace(exp.to_table("plain", alias=table.alias))
    connection = duckdb.connect()
    connection.execute("CREATE TABLE plain AS SELECT unnest([1, 2, 3]) AS x")
    assert connection.execute(tree.sql(dialect="duckdb")).fetchall() == [(3,), (4,)]


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("''DL''", "DL"),
        ("''747''", "747"),
        ("'DL'", "DL"),
        ('"Car"', "Car"),
        ("'it''s'", "it's"),
        ("''''", "'"),
        ("''", ""),
        (r"'it\'s'", "it's"),
        ('"say ""so"""', 'say "so"'),
    ],
)
def test_quoted_texts(written: str, value: str) -> None:
    condition = parse_statement(f"SELECT * FROM s [NOW] WHERE x = {written}").args["where"].this
    assert condition.expression == exp.Literal.string(value)


def test_words_between_empty_texts_stay_words() -> None:
    condition = parse_statement("SELECT * FROM s [NOW] WHERE x=''or''=y").args["where"].this
    assert isinstance(condition, exp.Or)


@pytest.mark.parametrize("end", [";", " ; ", ";;", " -- that is all", "; -- that is all"])
def test_semicolons_and_comments_may_follow_a_statement(end: str) -> None:
    assert windows(f"SELECT * FROM s [NOW]{end}") == [Now()]


def test_backticks_quote_names() -> None:
    table = parse_statement("SELECT `a b`.`c d` FROM `my stream` AS `a b` [NOW]").find(StreamTable)
    assert table is not None
    assert (table.name, table.alias) == ("my stream", "a b")


def test_noted_spans_cover_the_whole_operand() -> None:
    text = "SELECT lower( x ) FROM s [NOW] WHERE (a + b) * 2 BETWEEN 1 AND 5"
    tree = parse_statement(text)
    spans = [tree.selects[0].meta["span"], tree.args["where"].this.meta["span"]]
    assert [text[span.start : span.end] for span in spans] == ["lower( x )", "(a + b) * 2 BETWEEN 1 AND 5"]


def test_anything_but_a_select_is_refused() -> None:
    for text in ("SHOW TABLES", "INSERT INTO s VALUES (1)", "(SELECT 1)", "FROM s [NOW]", "EXPLAIN SELECT 1"):
        with pytest.raises(QueryError, match="a query begins with SELECT"):
            parse_statement(text)
