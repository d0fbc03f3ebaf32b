"""Expressions that the host computes: those of conditions become columns, those of results a projection."""

from collections.abc import Sequence

import pyarrow as pa
import pytest

from braid.errors import QueryError
from braid.language import parse
from braid.language.host_types import StoredTypes
from braid.model.expressions.aggregates import EVENT_TIME_OPERAND
from braid.model.expressions.expression import HostExpression
from braid.model.expressions.types import TypeMismatch
from braid.model.grouping import SessionWindow
from braid.model.query import Query
from braid.model.stream import Stream
from braid.runtime.fingerprint import meaning

SCHEMA = pa.schema(
    {
        "ts": pa.timestamp("us"),
        "k": pa.int64(),
        "name": pa.string(),
        "tags": pa.list_(pa.string()),
        "at": pa.struct({"city": pa.string()}),
    }
)
STREAMS = {name: Stream(name, SCHEMA, "ts") for name in "abc"}


class Host:
    """Knows a few functions by the beginning of their text."""

    TYPES = {  # noqa: RUF012
        "is_nice(": pa.bool_(),
        "levenshtein(a.name, b.name) <": pa.bool_(),
        "soundex(b.name) IS NULL": pa.bool_(),
        "soundex(MAX(a.name)) >": pa.bool_(),
        "levenshtein(": pa.int32(),
        "soundex(": pa.string(),
        "transform(": pa.list_(pa.string()),
        "a.ts + INTERVAL": pa.timestamp("us"),
        "a.k & 3": pa.int64(),
        "split(": pa.string(),
        "concat_ws(": pa.string(),
        "upper(soundex(": pa.string(),
        "a.name <": pa.bool_(),
        "stddev(": pa.float64(),
        "first(": pa.int64(),
        "max_by(": pa.int64(),
        "collect_set(": pa.list_(pa.int64()),
        "EVENT_TIME()": pa.timestamp("us", "UTC"),
    }

    def type_of(self, expression: HostExpression, types: Sequence[pa.DataType]) -> pa.DataType:
        assert len(types) == len(expression.operands)
        for beginning, type_ in self.TYPES.items():
            if str(expression).startswith(beginning):
                return type_
        raise TypeMismatch(f"the host has no {expression}", expression, "write another")


def bound(text: str) -> Query:
    return parse(text, STREAMS, Host())


def where(condition: str, select: str = "a.k", joins: str = ", b [NOW]") -> Query:
    return bound(f"SELECT {select} FROM a [NOW]{joins} WHERE {condition}")


@pytest.mark.parametrize(
    ("condition", "computed"),
    [
        ("soundex(a.name) = soundex(b.name)", {"a": ["soundex(name)"], "b": ["soundex(name)"]}),
        ("a.k = b.k AND soundex(a.NAME) = 'N000'", {"a": ["soundex(name)"]}),
        ("a.k = b.k AND SOUNDEX( a.name /* why */ ) = 'x'", {"a": ["soundex( name )"]}),
        ("a.k = b.k AND upper(soundex(b.name)) > a.name", {"b": ["soundex(name)"]}),
        ("a.k = b.k AND is_nice(a.name, 5L)", {"a": ["is_nice(name, 5L)"]}),
        ("a.k & 3 = b.k", {"a": ["k & 3"]}),
        ("a.k = b.k AND is_nice(`a` . `name`, 'it''s', -- why\n 5)", {"a": ["is_nice(name, 'it''s', 5)"]}),
        ("a.k = b.k AND a.ts + INTERVAL 1 MONTH > b.ts", {"a": ["ts + INTERVAL 1 MONTH"]}),
        ("transform(a.tags, x -> concat(x, a.name)) = b.tags", {"a": ["transform(tags, x -> concat(x, name))"]}),
        ("split(a.name, ',')[0] = b.name", {"a": ["split(name, ',')[0]"]}),
        ("a.k = b.k AND is_nice(b.at.city)", {"b": ["is_nice(at.city)"]}),
        ("a.k = b.k AND (soundex(a.name) = 'x' OR b.k > 3)", {"a": ["soundex(name)"]}),
        ("a.k = b.k AND a.name < soundex('x')", {"a": ["name < soundex('x')"]}),
        ("a.k = b.k AND is_nice()", {"a": ["is_nice()"]}),
        ("a.k = b.k AND soundex(a.name) = soundex(a.name)", {"a": ["soundex(name)"]}),
    ],
)
def test_conditions_read_columns_that_the_host_computes(condition: str, computed: dict[str, list[str]]) -> None:
    query = where(condition)
    by_alias = {source.alias: [output.name for output in source.computed] for source in query.sources}
    assert {alias: names for alias, names in by_alias.items() if names} == computed
    for source in query.sources:
        names = source.declared.schema.names
        assert names == [*SCHEMA.names, *by_alias[source.alias]]
    assert not any(isinstance(expression, HostExpression) for expression in query.expressions)
    assert query.graph.streams == ("a", "b")


def test_an_equality_of_computed_columns_is_a_key() -> None:
    query = where("soundex(a.name) = soundex(b.name)")
    (key,) = query.graph.classes
    assert key.type == pa.string()
    assert key.sources == {"a", "b"}


def test_a_star_has_no_computed_columns() -> None:
    query = where("soundex(a.name) = soundex(b.name)", "*")
    assert [output.name for output in query.outputs] == [*SCHEMA.names, *SCHEMA.names]


def test_results_are_computed_whole_from_what_the_join_gives() -> None:
    query = where(
        "a.k = b.k", "a.k + 1 AS next, upper(soundex(a.name)) AS sound, concat_ws('-', a.name, b.name) AS both"
    )
    assert query.projection is not None
    assert [str(output.expression) for output in query.outputs] == ["(a.k + 1)", "a.name", "b.name"]
    rewritten = [str(query.projection.over_inputs(output.expression)) for output in query.projection.outputs]
    assert rewritten == ["column 0", "upper(soundex(column 1))", "concat_ws('-', column 1, column 2)"]
    assert [output.name for output in query.projection.outputs] == ["next", "sound", "both"]


def test_current_timestamp_is_the_event_time_of_the_result() -> None:
    query = where("a.k = b.k", "CURRENT_TIMESTAMP AS t")
    assert query.projection is not None
    (output,) = query.projection.outputs
    assert isinstance(output.expression, HostExpression)
    assert output.expression.operands == (EVENT_TIME_OPERAND,)
    assert query.projection.over_inputs(output.expression) == output.expression


def test_keys_and_arguments_of_groups_are_computed_before_grouping() -> None:
    query = bound("SELECT soundex(a.name), MAX(levenshtein(a.name, 'x')) FROM a [NOW] GROUP BY soundex(a.name)")
    assert query.projection is not None
    assert [output.name for output in query.projection.outputs] == ["key 0", "value 0"]
    assert [str(output.expression) for output in query.outputs] == ["a.name"]


def test_the_host_groups_by_sessions() -> None:
    query = bound("SELECT a.k, session_window.end FROM a [NOW] GROUP BY a.k, SESSION_WINDOW(event_time, '5 seconds')")
    assert query.grouping is not None
    assert query.grouping.window == SessionWindow(5_000_000)
    assert str(query.grouping) == "group by a.k, SESSION_WINDOW(event_time, '5 SECONDS')"


@pytest.mark.parametrize(
    ("aggregate", "sql"),
    [
        ("STDDEV(a.k) FILTER (WHERE a.k > 1)", "stddev(a.k) filter (WHERE a.k > 1)"),
        (
            "FIRST(a.k) FILTER (WHERE a.k > 1)",
            "(min(struct(EVENT_TIME() AS at, a.k AS value)) FILTER (WHERE a.k > 1)).value",
        ),
        (
            "MAX_BY(a.k, a.ts) FILTER (WHERE a.k > 1)",
            "(max(CASE WHEN a.ts IS NOT NULL THEN struct(a.ts AS at, a.k AS value) END) FILTER (WHERE a.k > 1)).value",
        ),
        ("COLLECT_SET(a.k)", "array_sort(collect_set(a.k))"),
    ],
)
def test_a_filter_stands_at_the_aggregate_that_the_host_computes(aggregate: str, sql: str) -> None:
    query = bound(f"SELECT {aggregate} AS value FROM a [NOW] GROUP BY WINDOW(event_time, '5 seconds')")
    assert query.grouping is not None
    expression = query.grouping.outputs[0].expression
    assert isinstance(expression, HostExpression)
    assert expression.sql(str) == sql


def test_results_of_outer_joins_are_computed_after_them() -> None:
    query = bound("SELECT soundex(b.name) FROM a [NOW] LEFT JOIN b [RANGE 5 SECONDS] ON soundex(b.name) = a.name")
    assert query.projection is not None
    assert [output.name for output in query.fixed_joins[0].source.computed] == ["soundex(name)"]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a.k FROM a [NOW], b [NOW] WHERE a.k = b.k AND levenshtein(a.name, b.name) < 3",
        "SELECT a.k FROM a [NOW] JOIN b [NOW] ON a.k = b.k AND levenshtein(a.name, b.name) < 3",
        "SELECT a.k FROM a [NOW] JOIN b [NOW] ON a.k = b.k LEFT JOIN c [NOW] ON a.k = c.k "
        "WHERE levenshtein(a.name, b.name) < 3",
        "SELECT a.k FROM a [NOW] LEFT JOIN b [NOW] ON a.k = b.k WHERE soundex(b.name) IS NULL",
        "SELECT a.k FROM a [NOW] FULL JOIN b [NOW] ON a.k = b.k WHERE soundex(b.name) IS NULL",
    ],
)
def test_conditions_on_results_come_after_all_joins(text: str) -> None:
    query = bound(text)
    assert query.projection is not None
    assert len(query.projection.conditions) == 1
    assert not any(source.computed for source in query.inputs)
    without = bound(text[: max(text.rfind(" WHERE lev"), text.rfind(" WHERE sou"), text.rfind(" AND lev"))])
    assert query.predicates == without.predicates
    assert meaning(query) != meaning(without)


def test_having_is_checked_by_the_engine_and_by_the_host() -> None:
    grouping = bound("SELECT a.k FROM a [NOW] GROUP BY a.k HAVING COUNT(*) > 1 AND soundex(MAX(a.name)) > 'x'").grouping
    assert grouping is not None and grouping.projection is not None
    assert str(grouping.having) == "(COUNT(*) > 1)"
    assert [str(condition) for condition in grouping.projection.conditions] == ["soundex(MAX(a.name)) > 'x'"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "SELECT a.k FROM a [NOW] LEFT JOIN b [NOW] ON levenshtein(a.name, b.name) < 3",
            "levenshtein(a.name, b.name) is computed by the host, which cannot compare streams a and b",
        ),
        (
            "SELECT a.k FROM a [NOW] JOIN b [NOW] ON levenshtein(a.name, b.name) < 3 FULL JOIN c [NOW] ON a.k = c.k",
            "levenshtein(a.name, b.name) is computed by the host, which cannot compare streams a and b",
        ),
        (
            "SELECT a.k FROM a [NOW] WHERE EXISTS (SELECT 1 FROM b [NOW] WHERE levenshtein(a.name, b.name) < 3)",
            "levenshtein(a.name, b.name) is computed by the host, which cannot compare streams a and b",
        ),
        (
            "SELECT a.k FROM a [NOW] LEFT JOIN b [NOW] ON a.k = b.k LEFT JOIN c [NOW] ON soundex(b.name) = c.name",
            "soundex(b.name) is computed by the host, before the join that gives nulls for 'b'",
        ),
        ("SELECT mystery(a.k) FROM a [NOW]", "the host has no mystery(a.k)"),
        (
            "SELECT a.k FROM a [NOW] WHERE rand() < 0.5",
            "RAND is not supported: its value does not depend on the input alone",
        ),
        (
            "SELECT concat_ws('-', a.name, uuid()) FROM a [NOW]",
            "UUID is not supported: its value does not depend on the input alone",
        ),
        (
            "SELECT a.k FROM a [NOW] WHERE unix_timestamp() > 5",
            "UNIX_TIMESTAMP is not supported: its value does not depend on the input alone",
        ),
        (
            "SELECT a.k FROM a [NOW] WHERE a.ts < CURRENT_TIMESTAMP",
            "CURRENT_TIMESTAMP is the event time of a result, which is not known in conditions",
        ),
        ("SELECT soundex((SELECT 1)) FROM a [NOW]", "subqueries are not supported here"),
        (
            "SELECT COUNT(*) FROM a [NOW] GROUP BY SESSION_WINDOW(event_time, '1 second')",
            "SESSION_WINDOW is the only key of GROUP BY",
        ),
        (
            "SELECT COUNT(*) FROM a [NOW] GROUP BY a.k, SESSION_WINDOW(ts, '1 second')",
            "SESSION_WINDOW takes event_time and the gap that ends a session",
        ),
        (
            "SELECT COUNT(*) FROM a [NOW] GROUP BY a.k, SESSION_WINDOW(event_time, '1 microsecond')",
            "the gap of sessions is shorter than a millisecond",
        ),
        ("SELECT MODE(a.k) FROM a [NOW]", "MODE depends on more than the input"),
        ("SELECT LISTAGG(a.name, ', ') FROM a [NOW]", "LISTAGG depends on more than the input"),
        ("SELECT a.k FROM a [NOW] WHERE soundex(max(a.name)) = 'x'", "the aggregate MAX cannot stand here"),
        ("SELECT soundex(z.name) FROM a [NOW]", "'z' is not a stream of this query"),
        ("SELECT soundex(a.nam) FROM a [NOW]", "stream 'a' has no column 'nam'"),
        ("SELECT soundex(name) FROM a [NOW], b [NOW]", "column 'name' is in several streams: a, b"),
        (
            "SELECT a.k FROM a [NOW] WHERE levenshtein(a.name, 'x')",
            "a condition is true or false, but a.levenshtein(name, 'x') is int32",
        ),
    ],
)
def test_what_cannot_be_left_to_the_host_is_refused_by_name(text: str, problem: str) -> None:
    with pytest.raises(QueryError) as caught:
        bound(text)
    assert caught.value.problem == problem
    assert caught.value.span is not None
    assert caught.value.hint


@pytest.mark.parametrize(
    "call",
    ["soundex(a.name)", "date_format(a.ts, 'HH')", "shout(a.name)", "floor(a.k, 2)", "exists(a.tags, t -> t = 'x')"],
)
def test_without_a_host_these_are_refused_with_what_to_do(call: str) -> None:
    with pytest.raises(QueryError) as caught:
        parse(f"SELECT {call} FROM a [NOW]", STREAMS)
    assert caught.value.span is not None


def test_stored_types_bind_the_same_query() -> None:
    text = "SELECT concat_ws('-', a.name, b.name) AS x FROM a [NOW], b [NOW] WHERE soundex(a.name) = soundex(b.name)"
    types = {
        "soundex(a.name)": pa.string(),
        "soundex(b.name)": pa.string(),
        "concat_ws('-', a.name, b.name)": pa.string(),
    }
    assert parse(text, STREAMS, StoredTypes(types)) == bound(text)


def test_the_meaning_of_a_query_has_what_the_host_computes() -> None:
    text = "SELECT {} AS x FROM a [NOW], b [NOW] WHERE {} = b.name"
    first = meaning(bound(text.format("concat_ws('-', a.name)", "soundex(a.name)")))
    assert first == meaning(bound(text.format("CONCAT_WS('-',  a.name)".replace("  ", " "), "soundex(a.name)")))
    assert first != meaning(bound(text.format("concat_ws('+', a.name)", "soundex(a.name)")))
    assert first != meaning(bound(text.format("concat_ws('-', a.name)", "soundex(a.at.city)")))
