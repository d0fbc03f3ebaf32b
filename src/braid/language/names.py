"""Tables of names: the function or type that a node of sqlglot's tree, or a word of the text, stands for."""

from __future__ import annotations

import pyarrow as pa
from sqlglot import exp

from braid.model.expressions.functions import FUNCTIONS
from braid.model.expressions.types import INSTANT, MICROSECONDS

OPERATORS: dict[type[exp.Expr], str] = {
    exp.EQ: "equal",
    exp.NEQ: "not_equal",
    exp.LT: "less",
    exp.LTE: "less_equal",
    exp.GT: "greater",
    exp.GTE: "greater_equal",
    exp.NullSafeEQ: "same",
    exp.Add: "add",
    exp.Sub: "subtract",
    exp.Mul: "multiply",
    exp.Div: "divide",
    exp.IntDiv: "div",
    exp.Mod: "remainder",
}
"""The functions of operators with two operands."""

COMPARISONS = frozenset({exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ})
"""The operators that compare."""

FUNCTION_NODES: dict[type[exp.Expr], tuple[str, tuple[str, ...]]] = {
    exp.Coalesce: ("coalesce", ("this", "expressions")),
    exp.Greatest: ("greatest", ("this", "expressions")),
    exp.Least: ("least", ("this", "expressions")),
    exp.Abs: ("abs", ("this",)),
    exp.Sign: ("sign", ("this",)),
    exp.Round: ("round", ("this", "decimals")),
    exp.Floor: ("floor", ("this", "decimals")),
    exp.Ceil: ("ceil", ("this", "decimals")),
    exp.Sqrt: ("sqrt", ("this",)),
    exp.Pow: ("power", ("this", "expression")),
    exp.Exp: ("exp", ("this",)),
    exp.Ln: ("ln", ("this",)),
    exp.Lower: ("lower", ("this",)),
    exp.Upper: ("upper", ("this",)),
    exp.Length: ("length", ("this",)),
    exp.Substring: ("substring", ("this", "start", "length")),
    exp.Replace: ("replace", ("this", "expression", "replacement")),
    exp.StartsWith: ("startswith", ("this", "expression")),
    exp.EndsWith: ("endswith", ("this", "expression")),
    exp.Contains: ("contains", ("this", "expression")),
    exp.Year: ("year", ("this",)),
    exp.Quarter: ("quarter", ("this",)),
    exp.Month: ("month", ("this",)),
    exp.Week: ("week", ("this",)),
    exp.WeekOfYear: ("week", ("this",)),
    exp.Day: ("day", ("this",)),
    exp.DayOfMonth: ("day", ("this",)),
    exp.DayOfWeek: ("dayofweek", ("this",)),
    exp.DayOfYear: ("dayofyear", ("this",)),
    exp.Hour: ("hour", ("this",)),
    exp.Minute: ("minute", ("this",)),
    exp.Second: ("second", ("this",)),
    exp.UnixSeconds: ("unix_seconds", ("this",)),
    exp.UnixMillis: ("unix_millis", ("this",)),
    exp.UnixMicros: ("unix_micros", ("this",)),
}
"""The functions that sqlglot has nodes for, and the keys of the node's arguments in their order."""

PARTS = {
    "year": "year",
    "quarter": "quarter",
    "month": "month",
    "week": "week",
    "day": "day",
    "dow": "dayofweek",
    "dayofweek": "dayofweek",
    "doy": "dayofyear",
    "dayofyear": "dayofyear",
    "hour": "hour",
    "minute": "minute",
    "second": "second",
    **{f"{part}s": part for part in ("year", "month", "week", "day", "hour", "minute")},
}
"""The function for each unit of EXTRACT."""

_SAME_NAME = (
    *("abs", "ceil", "exp", "floor", "ln", "log", "log10", "power", "round", "sign", "sqrt"),
    *("concat", "contains", "endswith", "length", "lower", "ltrim", "replace", "rtrim", "startswith"),
    *("substring", "trim", "upper", "coalesce", "greatest", "least"),
    *("year", "quarter", "month", "day", "dayofweek", "dayofyear", "hour", "minute", "second", "date_trunc"),
    *("unix_micros", "unix_millis", "unix_seconds"),
)

FUNCTION_NAMES: dict[str, str] = {
    **{name: name for name in _SAME_NAME},
    "btrim": "trim",
    "ceiling": "ceil",
    "char_length": "length",
    "character_length": "length",
    "cast": "cast",
    "date_part": "extract",
    "dayofmonth": "day",
    "extract": "extract",
    "if": "case",
    "ifnull": "coalesce",
    "isnull": "is_null",
    "isnotnull": "is_null",
    "lcase": "lower",
    "len": "length",
    "mod": "remainder",
    "nullif": "case",
    "nvl": "coalesce",
    "pow": "power",
    "signum": "sign",
    "substr": "substring",
    "to_date": "cast",
    "to_timestamp": "cast",
    "try_cast": "cast",
    "ucase": "upper",
    "unix_timestamp": "unix_timestamp",
    "weekofyear": "week",
}
"""The function for each name that a query can call."""

MOST_ARGUMENTS: dict[str, int] = {
    **{name: FUNCTIONS[function].most for name, function in FUNCTION_NAMES.items() if function in FUNCTIONS},
    **dict.fromkeys(("bigint", "binary", "boolean", "date", "decimal", "double", "float", "int", "smallint"), 1),
    **dict.fromkeys(("string", "timestamp", "timestamp_ltz", "timestamp_ntz", "tinyint"), 1),
    **dict.fromkeys(("to_timestamp_ntz", "log2"), 1),
    **{"div": 2, "like": 3, "ilike": 3, "nvl": 2, "ifnull": 2, "if": 3},
}
"""The most arguments of each function name, and of each type that can be called like a function: sqlglot ignores any
further arguments."""

LEAST_ARGUMENTS: dict[str, int] = {"nvl": 2, "ifnull": 2, "if": 3}
"""The fewest arguments of a function name, where sqlglot accepts fewer than Spark."""

CALLED = frozenset(
    {*FUNCTION_NAMES, *MOST_ARGUMENTS, "and", "case", "or", "regexp_like", "rlike", "to_unix_timestamp", "week"}
)
"""Every name that may be called. sqlglot also knows names of other databases, and some of its own."""

TYPES: dict[exp.DType, pa.DataType] = {
    exp.DType.BOOLEAN: pa.bool_(),
    exp.DType.TINYINT: pa.int8(),
    exp.DType.SMALLINT: pa.int16(),
    exp.DType.INT: pa.int32(),
    exp.DType.BIGINT: pa.int64(),
    exp.DType.FLOAT: pa.float32(),
    exp.DType.DOUBLE: pa.float64(),
    exp.DType.TEXT: pa.string(),
    exp.DType.BINARY: pa.binary(),
    exp.DType.DATE: pa.date32(),
    exp.DType.TIMESTAMP: MICROSECONDS,
    exp.DType.TIMESTAMPTZ: MICROSECONDS,
    exp.DType.TIMESTAMPNTZ: MICROSECONDS,
    exp.DType.TIMESTAMPLTZ: INSTANT,
}
"""The types of CAST, except DECIMAL, which has parameters. sqlglot reads Spark's TIMESTAMP as TIMESTAMPTZ."""

TYPE_NAMES = frozenset(
    {
        *("BOOLEAN", "BYTE", "TINYINT", "SHORT", "SMALLINT", "INT", "INTEGER", "LONG", "BIGINT", "FLOAT", "REAL"),
        *("DOUBLE", "DEC", "DECIMAL", "NUMERIC", "STRING", "BINARY", "DATE"),
        *("TIMESTAMP", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ"),
    }
)
"""Spark's names for these types. sqlglot also knows those of other databases."""

SIZED_NAMES = frozenset({"CHAR", "CHARACTER", "VARCHAR"})
"""Names for `STRING` that are followed by a length, which has no effect on a cast."""
