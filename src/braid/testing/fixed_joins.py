"""Outer, semi and anti joins for DuckDB: its own, in which each ON also says that lifetimes overlap.

In DuckDB, `greatest` and `least` leave out nulls: after an outer join they are the lifetime of the rows that are there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from braid.model.window import FOREVER
from braid.testing.lifetimes import END, START


@dataclass(frozen=True)
class Fixed:
    """A join of FROM that is not an inner join; `name` is DuckDB's name of its stream."""

    join: exp.Join
    name: str


def is_fixed(join: exp.Expr) -> bool:
    """Whether a join is an outer, semi or anti join."""
    return bool(join.args.get("side")) or is_hiding(join)


def is_hiding(join: exp.Expr) -> bool:
    """Whether the stream of a join can be read in its ON only."""
    return str(join.args.get("kind") or "").upper() in ("SEMI", "ANTI")


def fixed_joins(body: exp.Select, names: Mapping[int, str]) -> list[Fixed]:
    """The fixed joins of a query, given DuckDB's names of its tables by their identities."""
    joins = body.args.get("joins") or ()
    return [Fixed(join, names[id(join.this)]) for join in joins if is_fixed(join)]


def starts_of(names: Sequence[str]) -> exp.Expr:
    return exp.func("greatest", *(exp.column(START, name) for name in names))


def ends_of(names: Sequence[str]) -> exp.Expr:
    return exp.func("least", *(exp.column(END, name) for name in names))


def overlap(names: Sequence[str]) -> exp.Expr:
    """Whether rows of these streams, those of them that are not null, are alive together."""
    return exp.LT(this=starts_of(names), expression=ends_of(names))


def tie_lifetimes(
    body: exp.Select,
    inner: Sequence[str],
    joins: Sequence[Fixed],
    alive: Mapping[str, str],
    tables: frozenset[str] = frozenset(),
) -> exp.Expr:
    """Add to each ON that the lifetimes of all streams so far overlap; returns the event time of a result.

    `inner` are the streams of the inner joins, which overlap too. `alive` maps streams to their relations. A row
    without a partner is certain when it ends, and the row of a semi join when its first partner starts. Which partners
    a row has in one of `tables` is always certain.
    """
    _tie_inner(body, inner)
    visible = list(inner)
    time = starts_of(visible)
    for fixed in joins:
        join, name = fixed.join, fixed.name
        if name in tables:
            join.set("side", None if is_hiding(join) else join.args.get("side"))
            continue
        condition = exp.and_(join.args["on"], overlap([*visible, name]), copy=True)
        join.set("on", condition)
        kind = str(join.args.get("kind") or "").upper()
        if kind == "SEMI":
            join.set("side", None)
            moment = exp.func("min", exp.func("greatest", time.copy(), exp.column(START, name)))
            relation = exp.alias_(exp.to_table(alive[name], quoted=True), name, quoted=True, table=True)
            relation.this.set("quoted", True)
            time = exp.Subquery(this=exp.select(moment).from_(relation).where(condition.copy()))
            continue
        absent = exp.func("greatest", time.copy(), exp.func("nullif", ends_of(visible), exp.convert(FOREVER)))
        if kind == "ANTI":
            join.set("side", None)
            time = absent
            continue
        # A row of either side without a partner ends alone; otherwise the later of the two starts counts.
        is_alone = exp.column(START, name).is_(exp.null())
        right_end = exp.func("nullif", exp.column(END, name), exp.convert(FOREVER))
        right_alone = exp.func("greatest", exp.column(START, name), right_end)
        left_is_absent = starts_of(visible).is_(exp.null())
        both = exp.func("greatest", time.copy(), exp.column(START, name))
        time = exp.case().when(is_alone, absent).when(left_is_absent, right_alone).else_(both)
        visible.append(name)
    return time


def _tie_inner(body: exp.Select, inner: Sequence[str]) -> None:
    """Add to the last inner join that the lifetimes of all inner streams overlap."""
    joins = [join for join in body.args.get("joins") or () if not is_fixed(join)]
    if not joins:
        within_brackets = body.args["from_"].find(exp.Join)
        if within_brackets is None:
            return
        joins = within_brackets.parent.args["joins"]
    last = joins[-1]
    conditions = [overlap(inner)]
    if last.args.get("on") is not None:
        conditions.append(last.args["on"])
    last.set("kind", None)
    last.set("on", exp.and_(*conditions))
