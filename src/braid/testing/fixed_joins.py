"""Outer, semi and anti joins for DuckDB: its own, in which each ON also says that lifetimes overlap.

In DuckDB, `greatest` and `least` leave out nulls: after an outer join they are the lifetime of the rows that are there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from braid.language.nodes import COMMA, StreamTable
from braid.model.fixed_join import longest_lifetime
from braid.model.window import FOREVER, Window
from braid.testing.lifetimes import END, START


@dataclass(frozen=True)
class Pair:
    """A join of FROM, and the entries that it joins: those of its left side and those of its right side."""

    join: exp.Join
    left: tuple[StreamTable, ...]
    right: tuple[StreamTable, ...]

    @property
    def entries(self) -> tuple[StreamTable, ...]:
        return (*self.left, *self.right)


def pairs_of(body: exp.Select) -> list[Pair]:
    """The joins of FROM, those within an entry before the one that joins it. A comma joins what stands around it."""
    pairs: list[Pair] = []
    _entries_of(body.args["from_"].this, body.args.get("joins") or (), pairs)
    return pairs


def _entries_of(table: exp.Expr, following: Sequence[exp.Join], pairs: list[Pair]) -> tuple[StreamTable, ...]:
    """The entries in an entry of FROM and in the joins that follow it; their pairs are added to `pairs`."""
    entries = (table,) if isinstance(table, StreamTable) else _entries_of(table.this, (), pairs)
    commas: list[tuple[exp.Join, tuple[StreamTable, ...]]] = []
    groups = [entries]
    for join in (*(table.args.get("joins") or ()), *following):
        right = _entries_of(join.this, (), pairs)
        if join.meta.get(COMMA):
            commas.append((join, right))
            groups.append(right)
        else:
            pairs.append(Pair(join, groups[-1], right))
            groups[-1] = (*groups[-1], *right)
    together = groups[0]
    for (join, _), group in zip(commas, groups[1:], strict=True):
        pairs.append(Pair(join, together, group))
        together = (*together, *group)
    return together


def is_fixed(join: exp.Expr) -> bool:
    """Whether a join is an outer, semi or anti join."""
    return bool(join.args.get("side")) or is_hiding(join)


def is_hiding(join: exp.Expr) -> bool:
    """Whether the stream of a join can be read in its ON only."""
    return str(join.args.get("kind") or "").upper() in ("SEMI", "ANTI")


def starts_of(names: Sequence[str]) -> exp.Expr:
    return exp.func("greatest", *(exp.column(START, name) for name in names))


def ends_of(names: Sequence[str]) -> exp.Expr:
    return exp.func("least", *(exp.column(END, name) for name in names))


def overlap(names: Sequence[str]) -> exp.Expr:
    """Whether rows of these streams, those of them that are not null, are alive together."""
    return exp.LT(this=starts_of(names), expression=ends_of(names))


@dataclass(frozen=True)
class TiedStream:
    """An entry of FROM for DuckDB: its name, the name of its relation, its window, and whether it is a table."""

    name: str
    relation: str
    window: Window
    is_table: bool


@dataclass(frozen=True)
class _Joined:
    """Streams that are joined already, and the event time of a row; `time` is None if they are all tables.

    A row lives at most `longest`, and comes at most `lag` after its start.
    """

    names: tuple[str, ...]
    time: exp.Expr | None
    longest: int
    lag: int = 0


def tie_lifetimes(pairs: Sequence[Pair], streams: Mapping[int, TiedStream]) -> tuple[exp.Expr, list[exp.Expr]]:
    """Add to each ON that the lifetimes of all rows it joins overlap.

    `streams` are known by the identities of their entries. Returns the event time of a result, and what WHERE must say
    of joins that have no ON. A row without a partner is certain when it ends, and no row of the other side that began
    before that can come; the row of a semi join is certain when its first partner starts. Which partners a row has in a
    table is always certain.
    """
    joined = {entry: _alone(stream) for entry, stream in streams.items()}
    conditions: list[exp.Expr] = []
    for pair in pairs:
        left, right = joined[id(pair.left[0])], joined[id(pair.right[0])]
        if is_fixed(pair.join):
            both = _tie_fixed(pair.join, left, right, streams[id(pair.right[0])])
        else:
            both = _inner(left, right)
            conditions += _tie_inner(pair.join, both)
        joined.update(dict.fromkeys(map(id, pair.entries), both))
    whole = joined[id(pairs[-1].left[0])]
    assert whole.time is not None
    return whole.time, conditions


def _alone(stream: TiedStream) -> _Joined:
    if stream.is_table:
        return _Joined((), None, FOREVER)
    return _Joined((stream.name,), exp.column(START, stream.name), longest_lifetime(stream.window))


def _inner(left: _Joined, right: _Joined) -> _Joined:
    if left.time is None or right.time is None:
        return right if left.time is None else left
    time = exp.func("greatest", left.time.copy(), right.time.copy())
    names = (*left.names, *right.names)
    return _Joined(names, time, min(left.longest, right.longest), max(left.lag, right.lag))


def _tie_inner(join: exp.Join, both: _Joined) -> Iterator[exp.Expr]:
    """Say in ON that all rows are alive together; yields it if the join has no ON."""
    if len(both.names) < 2:
        return
    if join.meta.get(COMMA):
        yield overlap(both.names)
        return
    written = join.args.get("on")
    join.set("kind", None)
    join.set("on", exp.and_(*([] if written is None else [written]), overlap(both.names)))


def _tie_fixed(join: exp.Join, left: _Joined, right: _Joined, right_stream: TiedStream) -> _Joined:
    kind = str(join.args.get("kind") or "").upper()
    side = "LEFT" if is_hiding(join) else str(join.args.get("side")).upper()
    if is_hiding(join):
        join.set("side", None)  # As DuckDB writes it.
    if right.time is None:
        return left
    assert left.time is not None
    names = (*left.names, *right.names)
    condition = exp.and_(join.args.get("on") or exp.true(), overlap(names), copy=True)
    join.set("on", condition)
    absent_right = _end_of_alone(left, right.lag)
    waiting = max(left.lag, left.longest)
    if kind == "SEMI":
        moment = exp.func("min", exp.func("greatest", left.time.copy(), right.time.copy()))
        relation = exp.alias_(
            exp.to_table(right_stream.relation, quoted=True), right_stream.name, quoted=True, table=True
        )
        relation.this.set("quoted", True)
        first = exp.Subquery(this=exp.select(moment).from_(relation).where(condition.copy()))
        return replace(left, time=first, lag=waiting)
    if kind == "ANTI":
        return replace(left, time=absent_right, lag=waiting)
    left_is_absent, right_is_absent = (starts_of(part.names).is_(exp.null()) for part in (left, right))
    both = exp.func("greatest", left.time.copy(), right.time.copy())
    time = (
        exp.case().when(right_is_absent, absent_right).when(left_is_absent, _end_of_alone(right, left.lag)).else_(both)
    )
    preserved = {"LEFT": [(left, right)], "RIGHT": [(right, left)]}.get(side, [(left, right), (right, left)])
    longest = max(part.longest for part, _ in preserved)
    lag = max(left.lag, right.lag, *(part.longest + other.lag for part, other in preserved))
    return _Joined(names, time, longest, lag)


def _end_of_alone(part: _Joined, lag: int) -> exp.Expr:
    """The event time of a row of one side without a partner, if the other side's rows come with this lag."""
    assert part.time is not None
    end = exp.func("nullif", ends_of(part.names), exp.convert(FOREVER))
    return exp.func("greatest", part.time.copy(), exp.Add(this=end, expression=exp.convert(lag)) if lag else end)
