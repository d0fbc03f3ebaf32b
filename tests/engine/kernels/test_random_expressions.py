"""Random expressions: none raises an error on any row."""

import random

import pytest

from braid import QueryError
from tests.engine.kernels.conftest import TABLE, run

ONE_ARGUMENT_FUNCTIONS = [
    *("abs", "sign", "round", "floor", "ceil", "sqrt", "exp", "ln", "log10"),
    *("lower", "upper", "length", "trim", "ltrim", "rtrim"),
    *("year", "quarter", "month", "weekofyear", "day", "dayofweek", "dayofyear", "hour", "minute", "second"),
    *("unix_seconds", "unix_millis", "unix_micros", "unix_timestamp"),
    *("bigint", "binary", "decimal", "smallint", "tinyint", "int", "string", "date", "timestamp", "boolean"),
]
TWO_ARGUMENT_FUNCTIONS = ["substring", "replace", "contains", "power", "log", "round"]
TYPES = [
    *("BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(5,2)", "DECIMAL(38,18)"),
    *("DECIMAL(38,0)", "STRING", "BINARY", "DATE", "TIMESTAMP", "TIMESTAMP_LTZ"),
]
CONSTANTS = [
    *("1", "-1", "0", "2.5", "1e3", "1e308", "'a'", "''", "'12'", "NULL", "TRUE", "10Y"),
    *("9223372036854775807", "X'00'"),
    *("DATE '2024-01-31'", "TIMESTAMP '2024-01-01 00:00:00'", "INTERVAL 5 MINUTES", "0." + "0" * 37 + "1"),
]


def random_expression(generator: random.Random, depth: int) -> str:
    def operand() -> str:
        return random_expression(generator, depth - 1)

    if depth == 0 or generator.random() < 0.15:
        return generator.choice(TABLE.schema.names if generator.random() < 0.7 else CONSTANTS)
    make = generator.choice(
        [
            lambda: f"({operand()} {generator.choice(['+', '-', '*', '/', '%', 'DIV'])} {operand()})",
            lambda: (
                f"({operand()} {generator.choice(['=', '<>', '<', '<=', '>', '>=', '<=>', 'AND', 'OR'])} {operand()})"
            ),
            lambda: f"CAST({operand()} AS {generator.choice(TYPES)})",
            lambda: f"{generator.choice(ONE_ARGUMENT_FUNCTIONS)}({operand()})",
            lambda: f"CASE WHEN {operand()} THEN {operand()} ELSE {operand()} END",
            lambda: (
                f"{generator.choice(['coalesce', 'greatest', 'least', 'concat', 'nullif'])}({operand()}, {operand()})"
            ),
            lambda: f"({operand()} IN ({operand()}, {operand()}))",
            lambda: f"({operand()} {generator.choice(['LIKE', 'ILIKE', 'RLIKE'])} {operand()})",
            lambda: f"{generator.choice(TWO_ARGUMENT_FUNCTIONS)}({operand()}, {operand()})",
            lambda: f"{generator.choice(['-', 'NOT '])} {operand()}",
            lambda: f"date_trunc('{generator.choice(['day', 'week', 'year', 'microsecond'])}', {operand()})",
        ]
    )
    return make()


def run_many(seed: int, count: int) -> int:
    """Evaluate `count` random expressions; returns how many are valid queries. None of those may raise an error."""
    generator = random.Random(seed)
    evaluated = 0
    for _ in range(count):
        text = random_expression(generator, generator.randint(1, 3))
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
