"""The reference, docs/query-language.md, names exactly the functions that exist, and its queries parse."""

import re
from pathlib import Path

import pytest

import braid
from braid import QueryError
from braid.language import parse
from braid.language.host_types import StoredTypes
from braid.language.names import FUNCTION_NAMES
from braid.model.expressions.functions import FUNCTIONS

REFERENCE = (Path(__file__).parents[2] / "docs" / "query-language.md").read_text(encoding="utf-8")
SECTION = REFERENCE.split("## Operators and functions")[1].split("### Fields and elements")[0]
TYPES = {"BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL", "STRING", "BINARY"}
OPERATORS = {
    "DIV",
    "BETWEEN",
    "IN",
    "IS",
    "AND",
    "OR",
    "NOT",
    "CASE",
    "LIKE",
    "ESCAPE",
    "ILIKE",
    "RLIKE",
    "DATE",
    "TIMESTAMP",
}
NAMED = set(re.findall(r"`([A-Z][A-Z0-9_]+)", SECTION)) - TYPES - OPERATORS


@pytest.mark.parametrize("name", sorted(NAMED))
def test_every_function_in_the_reference_exists(name: str) -> None:
    """One of these calls must be valid, and none may fail because the name is unknown."""
    for arguments in ("x", "x, y", "'year', x", "year FROM x", "x AS INT", "x, y, z"):
        try:
            braid.parse(f"SELECT {name}({arguments}) FROM s [NOW]")
            return
        except QueryError as error:
            assert "there is no function" not in error.problem
    pytest.fail(f"no way to call {name}")


def test_every_function_is_in_the_reference() -> None:
    documented = {FUNCTION_NAMES.get(name.lower(), name.lower()) for name in NAMED}
    without_a_name = {
        "equal",
        "not_equal",
        "less",
        "less_equal",
        "greater",
        "greater_equal",
        "same",
        "and",
        "or",
        "not",
        "in",
    }
    without_a_name |= {
        "add",
        "subtract",
        "multiply",
        "divide",
        "div",
        "negate",
        "like",
        "ilike",
        "rlike",
        "fractional_second",
        "field",
        "element",
    }
    assert set(FUNCTIONS) - without_a_name <= documented


@pytest.mark.parametrize("query", re.findall(r"```sql\n(.*?)```", REFERENCE, re.DOTALL))
def test_queries_in_the_reference_parse(query: str) -> None:
    on_spark = query in REFERENCE.split("### Functions of Spark")[1]
    assert parse(query, host=StoredTypes({}) if on_spark else None).sources
