"""Random expressions: none raises an error on any row."""

import random

import pytest

from braid import QueryError
from tests.engine.kernels.conftest import TABLE, run

ONE_ARGUMENT_FUNCTIONS = [
    *(
        "abs",
        "sign",
        "round",
        "floor",
        "ceil",
        "sqrt",
        "exp",
        "ln",
        "log10",
        "lower",
        "upper",
        "length",
        "trim",
        "ltrim",
    ),
    *("rtrim", "year", "quarter", "month", "weekofyear", "day", "dayofweek", "dayofyear", "hour", "minute", "second"),
    *("unix_seconds", "unix_millis", "unix_micros", "unix_timestamp"),
    *("bigint", "binary", "decimal", "smallint", "tinyint", "int", "string", "date", "timestamp", "boolean"),
]
TWO_ARGUMENT_FUNCTIONS = ["substring", "replace", "contains", "power", "log", "round"]
TYPES = [
    *("BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(5,2)", "DECIMAL(38,18)"),
    *("DECIMAL(38,0)", "STRING", "BINARY", "DATE", "TIMESTAMP", "TIMESTAMP_LTZ"),
]
CONSTANTS = [
    *(
        "1",
        "-1",
        "0",
        "2.5",
        "1e3",
        "1e308",
        "'a'",
        "''",
        "'12'",
        "NULL",
        "TRUE",
        "10Y",
        "9223372036854775807",
        "X'00'",
    ),
    *("DATE '2024-01-31'", "TIMESTAMP '2024-01-01 00:00:00'", "INTERVAL 5 MINUTES", "0." + "0" * 37 + "1"),
]


def random_expression(source: random.Random, depth: int) -> str:
    def operand() -> str:
        return random_expression(source, depth - 1)

    if depth == 0 or source.random() < 0.15:
        return source.choice(TABLE.schema.names if source.random() < 0.7 else CONSTANTS)
    return source.choice(
        [
            lambda: f"({operand()} {source.choice(['+', '-', '*', '/', '%', 'DIV'])} {operand()})",
            lambda: f"({operand()} {source.choice(['=', '<>', '<', '<=', '>', '>=', '<=>', 'AND', 'OR'])} {operand()})",
            lambda: f"CAST({operand()} AS {source.choice(TYPES)})",
            lambda: f"{source.choice(ONE_ARGUMENT_FUNCTIONS)}({operand()})",
            lambda: f"CASE WHEN {operand()} THEN {operand()} ELSE {operand()} END",
            lambda: f"{source.choice(['coalesce', 'greatest', 'least', 'concat', 'nullif'])}({operand()}, {operand()})",
            lambda: f"({operand()} IN ({operand()}, {operand()}))",
            lambda: f"({operand()} {source.choice(['LIKE', 'ILIKE', 'RLIKE'])} {operand()})",
            lambda: f"{source.choice(TWO_ARGUMENT_FUNCTIONS)}({operand()}, {operand()})",
            lambda: f"{source.choice(['-', 'NOT '])} {operand()}",
            lambda: f"date_trunc('{source.choice(['day', 'week', 'year', 'microsecond'])}', {operand()})",
        ]
    )()


def run_many(seed: int, count: int) -> int:
    """Evaluate `count` random expressions; returns how many have valid types. None of those may raise an error."""
    source = random.Random(seed)
    evaluated = 0
    for _ in range(count):
        text = random_expression(source, source.randint(1, 3))
        try:
            run(text)
        except QueryError:
            continue
        except Exception as error:
            raise AssertionError(text) from error
        evaluated += 1
    return evaluated


@pytest.mark.parametrize("seed", range(4))
def test_no_expression_raises_an_error(seed: int) -> None:
    assert run_many(seed, 500) > 50


@pytest.mark.sweep
@pytest.mark.parametrize("seed", range(100, 110))
def test_no_expression_raises_an_error_long(seed: int) -> None:
    assert run_many(seed, 10_000) > 1_000
