"""Random queries over tables, and over SELECTs and window functions in FROM."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from braid.model.window import Now, Range, Rows, Tumble, Unbounded, Window
from braid.testing.choices import Choices, SeededChoices
from braid.testing.streams import TICK

ALIASES = "xyz"
LATENESS = 100 * TICK
"""In microseconds: no row is later than this."""


@dataclass(frozen=True)
class ViewCase:
    """A query over streams and tables, and the number of rows of each stream in one batch."""

    text: str
    streams: Mapping[str, pa.Table]
    tables: Mapping[str, pa.Table]
    batch_rows: int | None
    plan: Mapping[str, Sequence[str]] | None

    @property
    def options(self) -> dict[str, Any]:
        """The arguments of `braid.run` besides the query and the streams."""
        fixed = {"tables": self.tables, "lateness": "100 seconds"}
        return fixed | {"batch_rows": self.batch_rows, "plan": self.plan}


@dataclass(frozen=True)
class _Entry:
    """A stream of FROM; `definition` is what WITH says of it."""

    alias: str
    text: str
    counts_rows: bool
    definition: str = ""


def random_views(seed: int) -> ViewCase:
    """A random case, the same for the same seed."""
    choices = SeededChoices(seed)
    count = choices.pick((1, 2, 2, 2, 3))
    entries = [_make_entry(choices, alias, alone=count == 1) for alias in ALIASES[:count]]
    may_be_outer = len(entries) > 1 and not any(entry.counts_rows for entry in entries)
    outer = choices.pick(("LEFT JOIN", "FULL JOIN")) if may_be_outer and choices.once_in(3) else ""
    tables = _make_table_joins(choices, entries, outer)
    text = _make_text(choices, entries, tables, outer)
    streams = {name: _make_rows(choices, choices.integer(0, 16)) for name in "abc"}
    aliases = [entry.alias for entry in entries]
    plan = {head: choices.shuffle([alias for alias in aliases if alias != head]) for head in aliases}
    batch_rows = choices.pick((None, 1, 2, 3, 5, 1000))
    return ViewCase(text, streams, _make_tables(choices), batch_rows, None if outer else plan)


def _make_window(choices: Choices) -> tuple[str, bool]:
    """A window, and whether it counts rows."""
    length = choices.integer(1, 12) * TICK
    ranges = (Range(length), Range(length), Range(length, 2 * TICK))
    kinds: tuple[Window, ...] = (*ranges, Tumble(length), Unbounded(), Now())
    window: Window = Rows(choices.integer(1, 6)) if choices.once_in(8) else choices.pick(kinds)
    return str(window), window.counts_rows


def _make_entry(choices: Choices, alias: str, *, alone: bool) -> _Entry:
    stream, other = choices.pick("abc"), choices.pick("abc")
    window, counts_rows = _make_window(choices)
    kind = choices.integer(0, 8)
    if kind == 0:
        return _Entry(alias, f"{stream} {window} AS {alias}", counts_rows)
    if kind == 1:
        size, slide = choices.integer(2, 9), choices.integer(1, 4)
        arguments = f"TABLE {stream}, DESCRIPTOR(ts), INTERVAL {min(slide, size)} SECONDS, INTERVAL '{size}' SECONDS"
        return _Entry(alias, f"{choices.pick(('HOP({})', 'TABLE(HOP({}))')).format(arguments)} AS {alias}", False)
    if kind == 2:
        function = f"TUMBLE(TABLE {stream}, DESCRIPTOR(TS), INTERVAL '{choices.integer(1, 9)}' SECOND)"
        return _Entry(alias, f"{function} {alias}", False)
    select = _make_select(choices, stream, other, kind)
    if choices.once_in(3):
        # A view may hide a stream of the same name.
        name = choices.pick((f"view_{alias}", stream)) if alone else f"view_{alias}"
        return _Entry(alias, f"{name} {window} AS {alias}", counts_rows, f"{name} AS ({select})")
    return _Entry(alias, f"({select}) {window} AS {alias}", counts_rows)


def _make_select(choices: Choices, stream: str, other: str, kind: int) -> str:
    time = choices.pick(("", ", ts", ", ts AS moment"))
    where = choices.pick(("", " WHERE v > 2", " WHERE v > 2 OR k IS NULL"))
    if kind == 3:
        return f"SELECT k, v + 1 AS v, n{time} FROM {stream}{where}"
    if kind == 4:
        return f"SELECT * FROM {stream}{where}"
    if kind == 5:
        third = f" UNION ALL SELECT k, v, n, ts FROM {stream} WHERE v = 1" if choices.once_in(3) else ""
        return f"SELECT k, v, n, ts FROM {stream} UNION ALL SELECT k, v * 2, n + 100, ts FROM {other}{where}{third}"
    if kind == 6:
        join = choices.pick(("JOIN", "LEFT JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN"))
        shown = "t.w AS v" if join in ("JOIN", "LEFT JOIN") else "s.v"
        return f"SELECT s.k, {shown}, s.n, s.ts FROM {stream} AS s {join} t ON t.k = s.k AND t.w > s.v"
    if kind == 7:
        inner = f"SELECT k, v, n, ts FROM {stream}{where}"
        return f"SELECT k, v, n FROM ({inner}) AS inside WHERE n < 12"
    condition = "p.k = q.k AND p.n < 9 AND q.n < 9"
    return (
        f"SELECT p.k, q.v, p.n FROM {stream} [RANGE 4 SECONDS] AS p, {other} [TUMBLE 3 SECONDS] AS q WHERE {condition}"
    )


@dataclass(frozen=True)
class _TableJoin:
    kind: str
    name: str
    on: str
    comes_first: bool = False
    """Whether it comes before all joins of streams."""

    @property
    def shows(self) -> bool:
        return self.kind in ("JOIN", "LEFT JOIN")

    def __str__(self) -> str:
        return f" {self.kind} {self.name} ON {self.on}"


def _make_table_joins(choices: Choices, entries: Sequence[_Entry], outer: str) -> list[_TableJoin]:
    """Tables joined with streams whose windows do not count rows; `outer` is the kind of the streams' join, if any."""
    hosts = [entry.alias for entry in entries if not entry.counts_rows]
    joins = []
    for name in ("t", "u")[: choices.integer(0, 2) if hosts else 0]:
        first = bool(outer) and choices.once_in(2)
        host = "x" if first else choices.pick(hosts)
        # A stream that an outer join leaves out may only be joined with a table in a way that keeps its nulls.
        nullable = not first and bool(outer) and (host != "x" or outer == "FULL JOIN")
        kinds = ("JOIN", "JOIN", "LEFT JOIN", "LEFT JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN")
        kind = "LEFT JOIN" if nullable else choices.pick(kinds)
        conditions = [f"{name}.k = {host}.k"]
        if choices.once_in(3):
            conditions.append(f"{name}.w <> {host}.v")
        if choices.once_in(5):
            conditions.append(f"{host}.n > 3")
        if kind == "JOIN" and choices.once_in(3) and not outer:
            conditions.append(f"{name}.w <> {choices.pick(entries).alias}.n")
        if choices.once_in(6) and not nullable:
            conditions = [f"{name}.w < {host}.n AND {name}.w > 3"]
        joins.append(_TableJoin(kind, name, " AND ".join(choices.shuffle(conditions)), first))
    return joins


def _make_text(choices: Choices, entries: Sequence[_Entry], tables: Sequence[_TableJoin], outer: str) -> str:
    first, *others = entries
    text = first.text + "".join(str(join) for join in tables if join.comes_first)
    for entry in others:
        kind = outer if entry is others[0] else "LEFT JOIN"
        text += f" {kind if outer else 'JOIN'} {entry.text} ON {entry.alias}.k = x.k"
    text += "".join(str(join) for join in tables if not join.comes_first)
    columns = [f"{entry.alias}.{name}" for entry in entries for name in ("n", "v")]
    shown = [join.name for join in tables if join.shows]
    columns += [f"{table}.{name}" for table in shown for name in ("k", "w", "name")]
    if shown:
        columns.append("upper(name)" if len(shown) == 1 else "concat(t.name, u.name)")
    where = " WHERE x.n < 14" if choices.once_in(4) else ""
    definitions = ", ".join(entry.definition for entry in entries if entry.definition)
    selected = "x.*" if choices.once_in(8) else ", ".join(columns)
    return f"{f'WITH {definitions} ' if definitions else ''}SELECT {selected} FROM {text}{where}"


def _make_rows(choices: Choices, count: int) -> pa.Table:
    """Rows in order of arrival, some of them out of order, some with nulls."""
    times = [(choices.integer(-6, 20) * TICK) + choices.pick((0, 0, 1, TICK // 2)) for _ in range(count)]
    return pa.table(
        {
            "ts": pa.array(times, pa.timestamp("us")),
            "k": pa.array([choices.pick((1, 2, 3, None)) for _ in range(count)], pa.int64()),
            "v": pa.array([choices.pick((0, 1, 2, 3, 4, None)) for _ in range(count)], pa.int64()),
            "n": pa.array(range(count), pa.int64()),
        }
    )


def _make_tables(choices: Choices) -> dict[str, pa.Table]:
    """Tables with repeated and null keys, sometimes empty."""
    tables = {}
    for name, kind in (("t", pa.int64()), ("u", pa.int32())):
        count = choices.integer(0, 5)
        tables[name] = pa.table(
            {
                "k": pa.array([choices.pick((1, 2, 4, None)) for _ in range(count)], kind),
                "w": pa.array([choices.pick((0, 2, 5, None)) for _ in range(count)], pa.int64()),
                "name": pa.array([choices.pick(("p", "q", None)) for _ in range(count)], pa.string()),
            }
        )
    return tables
