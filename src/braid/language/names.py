"""Names: which node of sqlglot's tree, and which word of the text, is which function or type."""

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
"""Nodes of two operands."""

COMPARISONS = frozenset({exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ})
"""Those of them that compare."""

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
"""Functions that sqlglot has nodes for, and where each node keeps its arguments."""

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
"""What EXTRACT takes out of a time."""

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
"""Every name a function can be called by."""

MOST_ARGUMENTS: dict[str, int] = {
    **{name: FUNCTIONS[function].most for name, function in FUNCTION_NAMES.items() if function in FUNCTIONS},
    **dict.fromkeys(("bigint", "binary", "boolean", "date", "decimal", "double", "float", "int", "smallint"), 1),
    **dict.fromkeys(("string", "timestamp", "timestamp_ltz", "timestamp_ntz", "tinyint"), 1),
    **dict.fromkeys(("to_timestamp_ntz", "log2"), 1),
    **{"div": 2, "like": 3, "ilike": 3, "nvl": 2, "ifnull": 2, "if": 3},
}
"""How many arguments a function is given at most, under each of its names: of these, and of the types that are called
like functions, sqlglot takes so many and passes over the others."""

LEAST_ARGUMENTS: dict[str, int] = {"nvl": 2, "ifnull": 2, "if": 3}
"""How many it is given at least, where sqlglot takes fewer than Spark does."""

CALLED = frozenset(
    {*FUNCTION_NAMES, *MOST_ARGUMENTS, "and", "case", "or", "regexp_like", "rlike", "to_unix_timestamp", "week"}
)
"""What may be called; sqlglot reads the names of other databases too, and some of its own making."""

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
"""What CAST casts to; DECIMAL has its own rule. sqlglot reads Spark's TIMESTAMP as its TIMESTAMPTZ."""

TYPE_NAMES = frozenset(
    {
        *("BOOLEAN", "BYTE", "TINYINT", "SHORT", "SMALLINT", "INT", "INTEGER", "LONG", "BIGINT", "FLOAT", "REAL"),
        *("DOUBLE", "DEC", "DECIMAL", "NUMERIC", "STRING", "BINARY", "DATE"),
        *("TIMESTAMP", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ"),
    }
)
"""Spark's words for these types; sqlglot has those of other databases too."""

SIZED_NAMES = frozenset({"CHAR", "CHARACTER", "VARCHAR"})
"""Words for `STRING` that a length follows, which makes no difference to a cast."""
