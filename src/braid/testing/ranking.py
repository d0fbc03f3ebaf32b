"""ROW_NUMBER for DuckDB: it ranks as the query says, with an order that decides all ties."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from braid.language.nodes import conjuncts_of
from braid.language.top_n import is_rank, rank_nodes


def decide_ties(tree: exp.Select, values: Sequence[exp.Expr]) -> None:
    """Let each ORDER BY go on with the columns of the result, then with the conditions of QUALIFY, in the direction of
    its last item."""
    names = {item.alias for item in tree.expressions if item.alias and is_rank(item.unalias())}
    qualify = tree.args.get("qualify")
    for column in [] if qualify is None else list(qualify.find_all(exp.Column)):
        if column.name in names and not column.table:
            column.replace(rank_nodes(tree)[0].copy())
    conditions = (
        [] if qualify is None else [part.copy() for part in conjuncts_of(qualify.this) if not part.find(exp.Window)]
    )
    for node in rank_nodes(tree):
        order = node.args["order"]
        descending = bool(order.expressions[-1].args.get("desc"))
        for value in (*values, *conditions):
            if not value.find(exp.Window) and not isinstance(value, exp.Literal):
                order.append("expressions", exp.Ordered(this=value.copy(), desc=descending, nulls_first=not descending))
