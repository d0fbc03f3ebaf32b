"""A tree parsed from Spark's SQL, rewritten so that DuckDB computes what Spark does (with ANSI mode off).

What is not rewritten means the same to both, but for these: where Spark's whole numbers wrap around at their limits
DuckDB fails; a number that does not fit a narrower integer is null here; and decimals smaller than a millionth are not
written with an exponent here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import sqlglot
from sqlglot import exp


def with_spark_meaning(tree: exp.Select) -> exp.Select:
    """The tree, changed in place for DuckDB: where the two differ, in words that mean the same to both."""
    # Children before parents, because a rewritten node takes its children along.
    for node in reversed(list(tree.walk(bfs=True))):
        rewrite = REWRITES.get(type(node))
        if rewrite is not None:
            node.replace(rewrite(node))
    return tree


def _filled(template: str, **operands: exp.Expr) -> exp.Expr:
    """An expression in DuckDB's words with operands in the places of :name."""
    parsed: exp.Expr = sqlglot.parse_one(template, dialect="duckdb")
    return exp.replace_placeholders(parsed, **operands)


CUT = "trunc(TRY_CAST(:x AS DOUBLE))"
"""A floating-point number without its fraction."""


def _division(node: exp.Expr) -> exp.Expr:
    """Always in double precision, null where the divisor is zero."""
    left = exp.cast(node.this, exp.DataType.Type.DOUBLE)
    return exp.Div(this=left, expression=_null_if_zero(node.expression), typed=False, safe=False)


def _difference(node: exp.Expr) -> exp.Expr:
    """Of two dates, a length of time; DuckDB counts days."""
    if not all(side.unnest().is_type(exp.DataType.Type.DATE) for side in (node.this, node.expression)):
        return node.copy()
    moments = [exp.cast(side.copy(), exp.DataType.Type.TIMESTAMP) for side in (node.this, node.expression)]
    return exp.Sub(this=moments[0], expression=moments[1])


def _whole_division(node: exp.Expr) -> exp.Expr:
    """Of integers or decimals, truncated towards zero."""
    quotient = exp.IntDiv(this=node.this.copy(), expression=_null_if_zero(node.expression))
    return exp.TryCast(this=exp.func("trunc", quotient), to=exp.DataType.build("bigint"))


def _remainder(node: exp.Expr) -> exp.Expr:
    return exp.Mod(this=node.this.copy(), expression=_null_if_zero(node.expression))


def _null_if_zero(divisor: exp.Expr) -> exp.Expr:
    return exp.Nullif(this=divisor.copy(), expression=exp.Literal.number(0))


def _like(node: exp.Expr) -> exp.Expr:
    """A backslash escapes in Spark without being asked to."""
    if isinstance(node.parent, exp.Escape):
        return node.copy()
    return exp.Escape(this=node.copy(), expression=exp.Literal.string("\\"))


def _cast(node: exp.Expr) -> exp.Expr:
    """To an integer, a fraction is cut off; DuckDB would round. A timestamp has no zone."""
    if node.is_type(exp.DataType.Type.TIMESTAMPTZ, exp.DataType.Type.TIMESTAMPLTZ):
        return exp.TryCast(this=node.this.copy(), to=exp.DataType.build("timestamp", dialect="duckdb"))
    if not node.is_type(*exp.DataType.INTEGER_TYPES):
        return node.copy()
    bits = 32 if node.is_type(exp.DataType.Type.INT) else 64
    cut = _filled(
        f"CASE WHEN typeof(:x) IN ('DOUBLE', 'FLOAT') THEN {_nearest(CUT, bits)} "
        "WHEN typeof(:x) = 'VARCHAR' OR starts_with(typeof(:x), 'DECIMAL') "
        "THEN TRY_CAST(trunc(TRY_CAST(:x AS DECIMAL(38, 10))) AS BIGINT) END",
        x=node.this,
    )
    return exp.func("coalesce", exp.TryCast(this=cut, to=node.args["to"].copy()), node.copy())


def _nearest(number: str, bits: int) -> str:
    """A floating-point number, without its fraction, as the nearest integer of so many bits; NaN is 0."""
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    return (
        f"CASE WHEN isnan({number}) THEN 0 WHEN {number} >= {high} THEN {high} "
        f"WHEN {number} <= {low} THEN {low} ELSE TRY_CAST({number} AS BIGINT) END"
    )


def _substring(node: exp.Expr) -> exp.Expr:
    """Position 0 is the first, and a negative length is none."""
    position = _filled("CASE WHEN :x = 0 THEN 1 ELSE :x END", x=node.args["start"])
    length = node.args.get("length")
    kept = None if length is None else _filled("CASE WHEN :x < 0 THEN 0 ELSE :x END", x=length)
    return exp.Substring(this=node.this.copy(), start=position, length=kept)


def _whole(node: exp.Expr) -> exp.Expr:
    """FLOOR and CEIL give integers."""
    return _filled(
        f"CASE WHEN typeof(:x) IN ('DOUBLE', 'FLOAT') THEN {_nearest('TRY_CAST(:x AS DOUBLE)', 64)} "
        "ELSE TRY_CAST(:x AS BIGINT) END",
        x=node.copy(),
    )


def _sign(node: exp.Expr) -> exp.Expr:
    """NaN has none."""
    return _filled(
        "CASE WHEN isnan(TRY_CAST(:x AS DOUBLE)) THEN TRY_CAST(:x AS DOUBLE) ELSE CAST(sign(:x) AS DOUBLE) END",
        x=node.this,
    )


def _logarithm(node: exp.Expr) -> exp.Expr:
    """Null for what has no logarithm; to any base but e it is a quotient."""
    number = node.args.get("expression")
    if number is None:
        return _filled("CASE WHEN :x > 0 THEN ln(:x) END", x=node.this)
    if node.this.name == "10":
        return _filled("CASE WHEN :x > 0 THEN log10(:x) END", x=number)
    return _filled("CASE WHEN :x > 0 AND :base > 0 THEN ln(:x) / ln(:base) END", x=number, base=node.this)


def _absolute(node: exp.Expr) -> exp.Expr:
    """Also of lengths of time."""
    return _filled("greatest(:x, -:x)", x=exp.paren(node.this))


def _compared(node: exp.Expr) -> exp.Expr:
    """DuckDB wants brackets where the result of a comparison is compared."""
    changed = _in_double(node)
    for key in ("this", "expression"):
        if isinstance(changed.args[key], _COMPARISONS):
            changed.set(key, exp.paren(changed.args[key]))
    return changed


def _in_double(node: exp.Expr) -> exp.Expr:
    """Floats meet other numbers in double precision; DuckDB would round the others to floats."""
    changed = node.copy()
    sides = [side for side in changed.iter_expressions() if isinstance(side, exp.Expr)]
    floats = [side for side in sides if side.unnest().is_type(exp.DataType.Type.FLOAT)]
    if len(floats) < len(sides):
        for side in floats:
            side.replace(exp.cast(side.copy(), exp.DataType.Type.DOUBLE))
    return changed


_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ)


def _whole_units(microseconds: int) -> Callable[[exp.Expr], exp.Expr]:
    """Units since 1970, rounded down; DuckDB cuts off."""

    def rewrite(node: exp.Expr) -> exp.Expr:
        template = "(epoch_us(:x) - (epoch_us(:x) % {0} + {0}) % {0}) // {0}"
        return _filled(template.format(microseconds), x=node.this)

    return rewrite


_SECOND = "CAST(microsecond(:x) / 1000000 AS DECIMAL(8, 6))"
_DAY_OF_WEEK = "dayofweek(:x) + 1"

PARTS = {"SECOND": _SECOND, "SECONDS": _SECOND, "DOW": _DAY_OF_WEEK, "DAYOFWEEK": _DAY_OF_WEEK}
"""Parts of a time that DuckDB has otherwise: seconds come with their fraction, and Sunday is day 1 of the week."""


def _part(node: exp.Expr, unit: exp.Expr, time: exp.Expr) -> exp.Expr:
    template = PARTS.get(unit.name.upper())
    return node.copy() if template is None else exp.paren(_filled(template, x=time))


def _extract(node: exp.Expr) -> exp.Expr:
    return _part(node, node.this, node.expression)


def _named(node: exp.Expr) -> exp.Expr:
    """Functions that sqlglot knows by their names alone, and DuckDB as operators, or otherwise."""
    name = node.name.lower()
    if name == "date_part":
        return _part(node, *node.expressions)
    template = {"isnull": ":x IS NULL", "isnotnull": ":x IS NOT NULL"}.get(name)
    return node.copy() if template is None else exp.paren(_filled(template, x=node.expressions[0]))


def _day_of_week(node: exp.Expr) -> exp.Expr:
    return exp.paren(_filled(_DAY_OF_WEEK, x=node.this))


def _replacement(node: exp.Expr) -> exp.Expr:
    """Nothing is what a text is replaced with by default."""
    changed = node.copy()
    changed.set("replacement", node.args.get("replacement") or exp.Literal.string(""))
    return changed


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
    **dict.fromkeys(_COMPARISONS, _compared),
    **dict.fromkeys((exp.Between, exp.In), _in_double),
}
"""What to write instead of a node of each type."""
