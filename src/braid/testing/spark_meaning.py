"""A tree parsed from Spark's SQL, rewritten so that DuckDB computes what Spark does (with ANSI mode off).

What is not rewritten means the same to both, but for two things: where Spark's whole numbers wrap around at
their limits DuckDB fails, and an integer that does not fit a narrower type is null here.
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


def _division(node: exp.Expr) -> exp.Expr:
    """Always in double precision, null where the divisor is zero."""
    left = exp.cast(node.this, exp.DataType.Type.DOUBLE)
    return exp.Div(this=left, expression=_null_if_zero(node.expression), typed=False, safe=False)


def _whole_division(node: exp.Expr) -> exp.Expr:
    """Truncated towards zero; DuckDB truncates integers only."""
    quotient = exp.IntDiv(this=node.this.copy(), expression=_null_if_zero(node.expression))
    return exp.cast(exp.func("trunc", quotient), exp.DataType.Type.BIGINT)


def _remainder(node: exp.Expr) -> exp.Expr:
    return exp.Mod(this=node.this.copy(), expression=_null_if_zero(node.expression))


def _null_if_zero(divisor: exp.Expr) -> exp.Expr:
    return exp.Nullif(this=divisor.copy(), expression=exp.Literal.number(0))


def _like(node: exp.Expr) -> exp.Expr:
    """A backslash escapes in Spark without being asked to."""
    if isinstance(node.parent, exp.Escape):
        return node.copy()
    return exp.Escape(this=node.copy(), expression=exp.Literal.string("\\"))


def _whole_cast(node: exp.Expr) -> exp.Expr:
    """A fraction is cut off; DuckDB would round."""
    if not node.is_type(*exp.DataType.INTEGER_TYPES):
        return node.copy()
    bits = 32 if node.is_type(exp.DataType.Type.INT) else 64
    cut = _filled(
        f"CASE WHEN typeof(:x) IN ('DOUBLE', 'FLOAT') THEN {_nearest('trunc(TRY_CAST(:x AS DOUBLE))', bits)} "
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
    kept = exp.func("greatest", length.copy(), exp.Literal.number(0)) if length is not None else None
    return exp.Substring(this=node.this.copy(), start=position, length=kept)


def _whole(node: exp.Expr) -> exp.Expr:
    """FLOOR and CEIL give integers."""
    return _filled(
        f"CASE WHEN typeof(:x) IN ('DOUBLE', 'FLOAT') THEN {_nearest('TRY_CAST(:x AS DOUBLE)', 64)} "
        "ELSE TRY_CAST(:x AS BIGINT) END",
        x=node.copy(),
    )


def _sign(node: exp.Expr) -> exp.Expr:
    return exp.cast(node.copy(), exp.DataType.Type.DOUBLE)


def _logarithm(node: exp.Expr) -> exp.Expr:
    """Null for what has no logarithm."""
    operand = node.args.get("expression") or node.this
    return _filled("CASE WHEN :x > 0 THEN :log END", x=operand, log=node.copy())


def _day_of_week(node: exp.Expr) -> exp.Expr:
    """From 1 for Sunday on; DuckDB counts from 0."""
    return exp.Paren(this=exp.Add(this=node.copy(), expression=exp.Literal.number(1)))


def _replacement(node: exp.Expr) -> exp.Expr:
    """Nothing is what a text is replaced with by default."""
    changed = node.copy()
    changed.set("replacement", node.args.get("replacement") or exp.Literal.string(""))
    return changed


REWRITES: Mapping[type[exp.Expr], Callable[[exp.Expr], exp.Expr]] = {
    exp.Div: _division,
    exp.IntDiv: _whole_division,
    exp.Mod: _remainder,
    exp.Like: _like,
    exp.ILike: _like,
    exp.Cast: _whole_cast,
    exp.TryCast: _whole_cast,
    exp.Substring: _substring,
    exp.Floor: _whole,
    exp.Ceil: _whole,
    exp.Sign: _sign,
    exp.Ln: _logarithm,
    exp.Log: _logarithm,
    exp.DayOfWeek: _day_of_week,
    exp.Replace: _replacement,
}
"""What to write instead of a node of each type."""
