"""Rewrite a syntax tree of Spark SQL so that DuckDB computes what Spark does with ANSI mode off.

Everything else means the same to both, with three exceptions. Where integers overflow, Spark wraps around and DuckDB
fails. A number that does not fit a narrower integer is null here. Decimals below a millionth are written without an
exponent here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import sqlglot
from sqlglot import exp


def with_spark_meaning(tree: exp.Select) -> exp.Select:
    """The tree, changed in place: nodes on which the two systems differ are replaced."""
    # Children before parents, because a rewritten node contains its rewritten children.
    for node in reversed(list(tree.walk(bfs=True))):
        rewrite = REWRITES.get(type(node))
        if rewrite is not None:
            node.replace(rewrite(node))
    return tree


def _filled(template: str, **operands: exp.Expr) -> exp.Expr:
    """A DuckDB expression from a template, with the operands in place of :name."""
    parsed: exp.Expr = sqlglot.parse_one(template, dialect="duckdb")
    return exp.replace_placeholders(parsed, **operands)


TRUNCATED = "trunc(TRY_CAST(:x AS DOUBLE))"
"""A floating-point number truncated towards zero."""


def _division(node: exp.Expr) -> exp.Expr:
    """Division is always in double precision, and null if the divisor is zero."""
    left = exp.cast(node.this, exp.DataType.Type.DOUBLE)
    return exp.Div(this=left, expression=_null_if_zero(node.expression), typed=False, safe=False)


def _difference(node: exp.Expr) -> exp.Expr:
    """The difference of two dates is a duration; DuckDB would return a number of days."""
    if not all(side.unnest().is_type(exp.DataType.Type.DATE) for side in (node.this, node.expression)):
        return node.copy()
    left = exp.cast(node.this.copy(), exp.DataType.Type.TIMESTAMP)
    right = exp.cast(node.expression.copy(), exp.DataType.Type.TIMESTAMP)
    return exp.Sub(this=left, expression=right)


def _whole_division(node: exp.Expr) -> exp.Expr:
    """The operator div, also of decimals, truncates towards zero."""
    quotient = exp.IntDiv(this=node.this.copy(), expression=_null_if_zero(node.expression))
    return exp.TryCast(this=exp.func("trunc", quotient), to=exp.DataType.build("bigint"))


def _remainder(node: exp.Expr) -> exp.Expr:
    return exp.Mod(this=node.this.copy(), expression=_null_if_zero(node.expression))


def _null_if_zero(divisor: exp.Expr) -> exp.Expr:
    return exp.Nullif(this=divisor.copy(), expression=exp.Literal.number(0))


def _like(node: exp.Expr) -> exp.Expr:
    """In Spark a backslash is the escape character by default."""
    if isinstance(node.parent, exp.Escape):
        return node.copy()
    return exp.Escape(this=node.copy(), expression=exp.Literal.string("\\"))


def _cast(node: exp.Expr) -> exp.Expr:
    """A cast to an integer truncates; DuckDB would round. A timestamp has no time zone."""
    if node.is_type(exp.DataType.Type.TIMESTAMPTZ, exp.DataType.Type.TIMESTAMPLTZ):
        return exp.TryCast(this=node.this.copy(), to=exp.DataType.build("timestamp", dialect="duckdb"))
    if not node.is_type(*exp.DataType.INTEGER_TYPES):
        return node.copy()
    bits = 32 if node.is_type(exp.DataType.Type.INT) else 64
    truncated = _filled(
        f"CASE WHEN typeof(:x) IN ('DOUBLE', 'FLOAT') THEN {_nearest(TRUNCATED, bits)} "
        "WHEN typeof(:x) = 'VARCHAR' OR starts_with(typeof(:x), 'DECIMAL') "
        "THEN TRY_CAST(trunc(TRY_CAST(:x AS DECIMAL(38, 10))) AS BIGINT) END",
        x=node.this,
    )
    return exp.func("coalesce", exp.TryCast(this=truncated, to=node.args["to"].copy()), node.copy())


def _nearest(number: str, bits: int) -> str:
    """SQL for the nearest integer of `bits` bits to a truncated floating-point number; 0 for NaN."""
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    return (
        f"CASE WHEN isnan({number}) THEN 0 WHEN {number} >= {high} THEN {high} "
        f"WHEN {number} <= {low} THEN {low} ELSE TRY_CAST({number} AS BIGINT) END"
    )


def _substring(node: exp.Expr) -> exp.Expr:
    """Position 0 means the first character, and a negative length means 0."""
    position = _filled("CASE WHEN :x = 0 THEN 1 ELSE :x END", x=node.args["start"])
    length = node.args.get("length")
    if length is not None:
        length = _filled("CASE WHEN :x < 0 THEN 0 ELSE :x END", x=length)
    return exp.Substring(this=node.this.copy(), start=position, length=length)


def _whole(node: exp.Expr) -> exp.Expr:
    """FLOOR and CEIL return integers."""
    return _filled(
        f"CASE WHEN typeof(:x) IN ('DOUBLE', 'FLOAT') THEN {_nearest('TRY_CAST(:x AS DOUBLE)', 64)} "
        "ELSE TRY_CAST(:x AS BIGINT) END",
        x=node.copy(),
    )


def _sign(node: exp.Expr) -> exp.Expr:
    """The sign of NaN is NaN."""
    return _filled(
        "CASE WHEN isnan(TRY_CAST(:x AS DOUBLE)) THEN TRY_CAST(:x AS DOUBLE) ELSE CAST(sign(:x) AS DOUBLE) END",
        x=node.this,
    )


def _logarithm(node: exp.Expr) -> exp.Expr:
    """Null for a number without a logarithm; for a base other than e and 10, a quotient of two logarithms."""
    number = node.args.get("expression")
    if number is None:
        return _filled("CASE WHEN :x > 0 THEN ln(:x) END", x=node.this)
    if node.this.name == "10":
        return _filled("CASE WHEN :x > 0 THEN log10(:x) END", x=number)
    return _filled("CASE WHEN :x > 0 AND :base > 0 THEN ln(:x) / ln(:base) END", x=number, base=node.this)


def _absolute(node: exp.Expr) -> exp.Expr:
    """ABS works on durations too."""
    return _filled("greatest(:x, -:x)", x=exp.paren(node.this))


def _compared(node: exp.Expr) -> exp.Expr:
    """DuckDB needs brackets around a comparison that is an operand of a comparison."""
    changed = _in_double(node)
    for key in ("this", "expression"):
        if isinstance(changed.args[key], _COMPARISONS):
            changed.set(key, exp.paren(changed.args[key]))
    return changed


def _in_double(node: exp.Expr) -> exp.Expr:
    """Spark compares floats with other numbers in double precision; DuckDB would round the others to floats."""
    changed = node.copy()
    sides = [side for side in changed.iter_expressions() if isinstance(side, exp.Expr)]
    floats = [side for side in sides if side.unnest().is_type(exp.DataType.Type.FLOAT)]
    if len(floats) < len(sides):
        for side in floats:
            side.replace(exp.cast(side.copy(), exp.DataType.Type.DOUBLE))
    return changed


_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ)


def _whole_units(microseconds: int) -> Callable[[exp.Expr], exp.Expr]:
    """The number of whole units since 1970, rounded down; DuckDB would truncate towards zero."""

    def rewrite(node: exp.Expr) -> exp.Expr:
        template = "(epoch_us(:x) - (epoch_us(:x) % {0} + {0}) % {0}) // {0}"
        return _filled(template.format(microseconds), x=node.this)

    return rewrite


_SECOND = "CAST(microsecond(:x) / 1000000 AS DECIMAL(8, 6))"
_DAY_OF_WEEK = "dayofweek(:x) + 1"

TIME_PARTS = {"SECOND": _SECOND, "SECONDS": _SECOND, "DOW": _DAY_OF_WEEK, "DAYOFWEEK": _DAY_OF_WEEK}
"""Parts of a time that differ from DuckDB: seconds include their fraction, and Sunday is day 1 of the week."""


def _part(node: exp.Expr, unit: exp.Expr, time: exp.Expr) -> exp.Expr:
    template = TIME_PARTS.get(unit.name.upper())
    return node.copy() if template is None else exp.paren(_filled(template, x=time))


def _extract(node: exp.Expr) -> exp.Expr:
    return _part(node, node.this, node.expression)


def _named(node: exp.Expr) -> exp.Expr:
    """Functions that sqlglot knows only by name and that DuckDB lacks or defines differently."""
    name = node.name.lower()
    if name == "date_part":
        return _part(node, *node.expressions)
    template = {"isnull": ":x IS NULL", "isnotnull": ":x IS NOT NULL"}.get(name)
    return node.copy() if template is None else exp.paren(_filled(template, x=node.expressions[0]))


def _day_of_week(node: exp.Expr) -> exp.Expr:
    return exp.paren(_filled(_DAY_OF_WEEK, x=node.this))


def _replacement(node: exp.Expr) -> exp.Expr:
    """REPLACE removes the search text if no replacement is given."""
    changed = node.copy()
    changed.set("replacement", node.args.get("replacement") or exp.Literal.string(""))
    return changed


def _element(node: exp.Expr) -> exp.Expr:
    """Positions in an array count from 0, and a negative one is none; DuckDB counts from 1, and back from the end."""
    (index,) = node.expressions
    if index.is_string:
        return _filled("map_extract_value(:x, :i)", x=node.this, i=index)
    return _filled("CASE WHEN :i >= 0 THEN list_extract(:x, :i + 1) END", x=node.this, i=index)


REWRITES: Mapping[type[exp.Expr], Callable[[exp.Expr], exp.Expr]] = {
    exp.Div: _division,
    exp.Sub: _difference,
    exp.IntDiv: _whole_division,
    exp.Mod: _remainder,
    exp.Like: _like,
    exp.ILike: _like,
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.Substring: _substring,
    exp.Floor: _whole,
    exp.Ceil: _whole,
    exp.Abs: _absolute,
    exp.Sign: _sign,
    exp.Ln: _logarithm,
    exp.Log: _logarithm,
    exp.DayOfWeek: _day_of_week,
    exp.Replace: _replacement,
    exp.StrToUnix: lambda node: _filled("epoch_us(:x) // 1000000", x=node.this),
    exp.UnixSeconds: _whole_units(1_000_000),
    exp.UnixMillis: _whole_units(1_000),
    exp.Extract: _extract,
    exp.Anonymous: _named,
    exp.Bracket: _element,
    **dict.fromkeys(_COMPARISONS, _compared),
    **dict.fromkeys((exp.Between, exp.In), _in_double),
}
"""The function that rewrites a node, by type of node."""
