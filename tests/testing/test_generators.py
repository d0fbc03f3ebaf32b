"""The generators make every kind of query and stream, and most of their joins have results."""

import itertools
import re
from collections import Counter
from functools import cache

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from braid.language import parse
from braid.model.expressions.types import INSTANT
from braid.model.query import Query
from braid.model.stream import Stream
from braid.model.window import Window
from braid.testing import Case, cases, oracle, random_case, without_late_rows
from braid.testing.conditions import ABOUT_ONE, ABOUT_THREE, ABOUT_TWO, EQUAL_EXPRESSIONS, Condition
from braid.testing.generators import join_graphs, layouts, windows
from braid.testing.relation import microseconds
from braid.testing.streams import Layout
from braid.testing.values import FAMILIES, LARGEST_DOMAIN, PAYLOADS, array

SEEDS = 300


@cache
def sample() -> tuple[Case, ...]:
    return tuple(random_case(seed) for seed in range(SEEDS))


def sample_texts() -> str:
    return "\n".join(case.text for case in sample())


def columns() -> list[tuple[str, pa.ChunkedArray]]:
    """The name and the values of every column of every stream in the sample."""
    streams = [rows for case in sample() for rows in case.streams.values()]
    return [(field.name, rows.column(field.name)) for rows in streams for field in rows.schema]


def test_the_same_seed_makes_the_same_case() -> None:
    assert repr(random_case(7)) == repr(random_case(7))
    assert repr(random_case(7)) != repr(random_case(8))


def test_one_to_six_sources() -> None:
    counts = Counter(case.text.count("[") for case in sample())
    assert set(counts) == {1, 2, 3, 4, 5, 6}
    assert min(counts.values()) >= 10, counts


@pytest.mark.parametrize(
    "pattern",
    [
        r"\[RANGE \d+ \w+\]",
        r"\[RANGE \d+ \w+ SLIDE",
        r"\[ROWS",
        r"\[PARTITION BY \w ROWS",
        r"\[PARTITION BY \w, \w ROWS",
        r"\[NOW\]",
        r"\[UNBOUNDED\]",
        r"\[rows",
        r" JOIN .* ON ",
        r"CROSS JOIN",
        r"SELECT \*",
        r"SELECT \w+\.\*",
        r" AS ratio",
        r"[A-F]\.\w",
        r"\.[KLMVT]\b",
    ],
)
def test_every_spelling_occurs(pattern: str) -> None:
    assert len(re.findall(pattern, sample_texts())) >= 5


@cache
def many_texts() -> str:
    return "\n".join(random_case(seed).text for seed in range(4 * SEEDS))


@pytest.mark.parametrize("template", (*ABOUT_ONE, *ABOUT_TWO, *ABOUT_THREE, *EQUAL_EXPRESSIONS))
def test_every_condition_occurs(template: str) -> None:
    fixed = re.split(r"\b[xyz]\.\w+", template)
    assert re.search(r"[\w.]+".join(map(re.escape, fixed)), many_texts())


def test_streams_are_joined_with_themselves() -> None:
    assert sum(len(case.streams) < case.text.count("[") for case in sample()) >= 30


def test_queries_of_every_shape() -> None:
    """Only equalities, only other conditions, both together, and no condition at all."""
    kinds = Counter()
    for case in sample():
        if case.text.count("[") == 1:
            continue
        equal = bool(re.search(r"(?:WHERE|AND|ON) \w+\.[klmKLM] = \w+\.[klmKLM]", case.text))
        other = bool(re.search(r"[<>]|BETWEEN|LIKE|\(", case.text))
        conditions = "WHERE" in case.text or " ON " in case.text
        if equal:
            kinds["mixed" if other else "equi"] += 1
        else:
            kinds["theta" if conditions else "cross"] += 1
    assert min(kinds[kind] for kind in ("equi", "mixed", "theta", "cross")) >= 10, kinds


def test_bands_of_every_kind() -> None:
    """Bands of integers, of floats and decimals, and of times."""
    kinds = Counter(str(band.type) for case in sample() for band in bound(case).graph.bands)
    assert min(kinds[str(kind)] for kind in (pa.int64(), pa.float64(), INSTANT)) >= 5, kinds


def bound(case: Case) -> Query:
    schemas = {name: table.schema for name, table in case.streams.items()}
    return parse(case.text, {name: Stream(name, schema, case.time[name]) for name, schema in schemas.items()})


def test_every_type_of_key_and_payload() -> None:
    kinds = Counter(str(column.type) for _, column in columns())
    for family in FAMILIES:
        assert all(kinds[str(kind)] for kind in family.types), family
    assert all(kinds[str(kind)] for kind, _ in PAYLOADS)


def test_keys_of_different_types_are_compared() -> None:
    mixed = sum(len({rows.schema.field("k").type for rows in case.streams.values()}) > 1 for case in sample())
    assert mixed >= 30


def test_difficult_values_occur() -> None:
    counts = Counter()
    for name, column in columns():
        counts[f"null in {name}"] += column.null_count
        if pa.types.is_floating(column.type):
            values = Counter(str(value) for value in column.to_pylist())
            counts.update({"nan": values["nan"], "-0.0": values["-0.0"], "0.0": values["0.0"]})
    for kind in ("null in k", "null in v", "null in p", "null in ts", "nan", "-0.0", "0.0"):
        assert counts[kind] >= 20, kind


def test_difficult_streams_occur() -> None:
    counts = Counter()
    for case in sample():
        in_time = without_late_rows(case)
        for name, rows in case.streams.items():
            times = [time for time in microseconds(rows.column(case.time[name])).to_pylist() if time is not None]
            ids = rows.column(f"{name}_id").to_pylist()
            keys = Counter(map(str, rows.column("k").to_pylist()))
            counts["empty"] += rows.num_rows == 0
            counts["late rows"] += in_time[name].num_rows < rows.num_rows
            counts["out of order"] += times != sorted(times)
            counts["out of order in time"] += times != sorted(times) and in_time[name].num_rows == rows.num_rows
            counts["ties"] += len(set(times)) < len(times)
            counts["duplicates"] += len(set(ids)) < len(ids)
            counts["before 1970"] += any(time < 0 for time in times)
            counts["skew"] += rows.num_rows > 10 and max(keys.values()) > rows.num_rows // 2
            counts["another time column"] += case.time[name] != "ts"
            counts[f"times in {rows.schema.field(case.time[name]).type.unit}"] += 1
        counts["no plan"] += case.plan is None
        counts["a plan"] += case.plan is not None and list(case.plan.values()) != sorted(case.plan.values())
        counts[f"batches of {case.batch_rows}"] += 1
    expected = {
        "times in s",
        "times in ms",
        "times in ns",
        "batches of None",
        "batches of 1",
        "skew",
        "empty",
    }
    assert expected <= set(counts)
    assert min(counts.values()) >= 15, counts


def test_most_joins_have_results_and_none_has_too_many() -> None:
    sizes = [oracle(case.text, without_late_rows(case), time=case.time).num_rows for case in sample()[:150]]
    assert sum(size > 0 for size in sizes) > 0.5 * len(sizes)
    assert max(sizes) < 100_000


@settings(max_examples=30, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(cases())
def test_the_oracle_answers_cases_drawn_by_hypothesis(case: Case) -> None:
    assert all(rows.num_rows <= 12 for rows in case.streams.values())
    oracle(case.text, without_late_rows(case), time=case.time)


@settings(max_examples=50, derandomize=True)
@given(st.lists(windows(), min_size=30, max_size=30))
def test_windows_drawn_by_hypothesis(drawn: list[Window]) -> None:
    assert all(str(window).startswith("[") for window in drawn)


@settings(max_examples=50, derandomize=True)
@given(join_graphs(4))
def test_graphs_drawn_by_hypothesis(conditions: list[Condition]) -> None:
    assert all(condition.sources <= {0, 1, 2, 3} for condition in conditions)
    assert all(set(re.findall(r"\b([a-d])\.", condition.text)) for condition in conditions)


@settings(max_examples=20, derandomize=True)
@given(layouts())
def test_layouts_drawn_by_hypothesis(layout: Layout) -> None:
    assert {layout.time, layout.identity, "k", "l", "m"} <= set(layout.schema.names)


@pytest.mark.parametrize("name", ["integer", "decimal", "timestamp", "instant", "number", "day", "time", "duration"])
def test_some_values_differ_only_in_a_wider_type(name: str) -> None:
    """Comparing keys in the narrower of two types would find too many matches."""
    family = next(family for family in FAMILIES if family.name == name)

    def equal_only_in_narrow(index: int, wide: pa.DataType, narrow: pa.DataType) -> bool:
        wide_value = array([family.value(index, wide)], wide)
        narrow_value = array([family.value(index, narrow)], narrow)
        try:
            equal_in_narrow = wide_value.cast(narrow, safe=False).equals(narrow_value)
            return bool(equal_in_narrow and not narrow_value.cast(wide, safe=False).equals(wide_value))
        except pa.ArrowInvalid:  # The value does not fit the decimal type.
            return False

    pairs = list(itertools.permutations(family.types, 2))
    assert any(equal_only_in_narrow(index, *pair) for index in range(LARGEST_DOMAIN) for pair in pairs)


def test_times_within_one_microsecond_and_before_1970_occur() -> None:
    nanosecond_columns = [column for _, column in columns() if column.type == pa.timestamp("ns")]
    times = [time for column in nanosecond_columns for time in microseconds(column).to_pylist()]
    assert any(time is not None and time < 0 for time in times)
    family = next(family for family in FAMILIES if family.name == "timestamp")
    nanoseconds = [family.value(index, pa.timestamp("ns")) for index in range(LARGEST_DOMAIN)]
    assert len(set(nanoseconds)) > len({time // 1_000 for time in nanoseconds})
