"""`(x, y) IN (SELECT ..)` for DuckDB, which compares rows as values: there, a null within a row equals a null."""

from __future__ import annotations

from sqlglot import exp


def compare_each(subquery: exp.Select) -> None:
    """Write the IN of several values around a subquery as EXISTS, with one comparison for each value, as in SQL.

    NOT IN is false or null, and so leaves a row out, if for any row of the subquery the comparison is not false.
    """
    test = subquery.find_ancestor(exp.In)
    if test is None or not isinstance(test.this, exp.Tuple):
        return
    columns = [column.unalias() for column in subquery.expressions]
    pairs = zip(test.this.expressions, columns, strict=True)
    equal: exp.Expr = exp.and_(*(exp.EQ(this=value.copy(), expression=column.copy()) for value, column in pairs))
    if isinstance(test.parent, exp.Not | exp.Paren):
        equal = exp.func("coalesce", equal, exp.true())
    subquery.where(equal, append=True, copy=False)
    test.replace(exp.Exists(this=subquery))
