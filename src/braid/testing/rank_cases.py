"""Random queries with ROW_NUMBER: over streams with windows of every kind, over joins, and over groups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from braid.testing.choices import Choices, SeededChoices
from braid.testing.streams import TICK

COLUMNS = ("k", "v", "w", "s", "n")


@dataclass(frozen=True)
class RankCase:
    """A query over streams, and the number of rows of each stream in one batch."""

    text: str
    streams: Mapping[str, pa.Table]
    batch_rows: int | None


@dataclass(frozen=True)
class _Base:
    """What is ranked: columns with their names, FROM and what follows, and the ways to name the window."""

    columns: tuple[tuple[str, str], ...]
    rest: str
    windows: tuple[str, ...]


def random_ranks(seed: int) -> RankCase:
    """A random case, the same for the same seed."""
    choices = SeededChoices(seed)
    base = choices.pick((_one_stream, _one_stream, _joined, _joined_functions, _grouped, _grouped_function))(choices)
    streams = {name: _rows(choices, choices.integer(0, 20)) for name in "ab"}
    return RankCase(_text(choices, base), streams, choices.pick((None, 1, 2, 3, 7)))


def _function(choices: Choices, stream: str, alias: str, *, tumbles: bool = False) -> str:
    size = choices.integer(2, 9)
    slide = size if tumbles or choices.once_in(2) else choices.integer(1, size)
    name, lengths = ("TUMBLE", [size]) if slide == size else ("HOP", [slide, size])
    intervals = ", ".join(f"INTERVAL '{length}' SECONDS" for length in lengths)
    return f"{name}(TABLE {stream}, DESCRIPTOR(ts), {intervals}) AS {alias}"


def _time_window(choices: Choices) -> str:
    length = choices.integer(1, 8)
    slide = f", '{choices.integer(1, length)} seconds'" if choices.once_in(2) else ""
    return f"WINDOW(event_time, '{length} seconds'{slide})"


def _one_stream(choices: Choices) -> _Base:
    columns = tuple((name, name) for name in choices.shuffle(COLUMNS)[: choices.integer(1, 5)])
    if choices.once_in(3):
        return _Base(columns, "FROM a [NOW]", (_time_window(choices),))
    bounds = (("window_start", "window_start"), ("window_end", "window_end"))
    where = " WHERE n <> 3" if choices.once_in(3) else ""
    windows = ("window_start, window_end", "window_end", "x.window_start")
    return _Base((*columns, *bounds), f"FROM {_function(choices, 'a', 'x')}{where}", windows)


def _joined(choices: Choices) -> _Base:
    columns = tuple((f"{alias}.{name}", f"{alias}{name}") for alias in "xy" for name in choices.shuffle(COLUMNS)[:2])
    left, right = choices.integer(1, 6), choices.integer(1, 6)
    kind = choices.pick(("JOIN", "JOIN", "LEFT JOIN"))
    rest = f"FROM a [RANGE {left} SECONDS] AS x {kind} b [RANGE {right} SECONDS] AS y ON x.k = y.k"
    return _Base(columns, rest, (_time_window(choices),))


def _joined_functions(choices: Choices) -> _Base:
    """Streams with windows in FROM, joined by their windows or only by time."""
    columns = tuple((f"{alias}.{name}", f"{alias}{name}") for alias in "xy" for name in choices.shuffle(COLUMNS)[:2])
    function = _function(choices, "a", "x")
    same = choices.once_in(2)
    other = function.replace("TABLE a", "TABLE b").replace("AS x", "AS y") if same else "b [RANGE 3 SECONDS] AS y"
    on = "x.k = y.k" + (" AND x.window_start = y.window_start" if same else "")
    windows = ("x.window_start, x.window_end", "x.window_end")
    return _Base((*columns, ("x.window_end", "finish")), f"FROM {function} JOIN {other} ON {on}", windows)


def _grouped(choices: Choices) -> _Base:
    columns = (("x.k", "k"), ("COUNT(*)", "c"), ("MAX(y.n)", "m"))
    rest = (
        "FROM a [RANGE 4 SECONDS] AS x JOIN b [RANGE 2 SECONDS] AS y ON x.k = y.k OR x.k IS NULL "
        f"GROUP BY x.k, {_time_window(choices)}{' HAVING COUNT(*) > 1' if choices.once_in(3) else ''}"
    )
    return _Base((*columns, ("window.start", "begin")), rest, ("window.start", "window.end"))


def _grouped_function(choices: Choices) -> _Base:
    bounds = (("window_start", "window_start"), ("window_end", "window_end"))
    columns = (("v", "v"), ("COUNT(*)", "c"), ("SUM(n)", "total"), ("MIN(w)", "low"))
    rest = f"FROM {_function(choices, 'a', 'x')} GROUP BY v, window_start, window_end"
    return _Base((*columns, *bounds), rest, ("window_start, window_end", "window_start"))


def _text(choices: Choices, base: _Base) -> str:
    grouped = "GROUP BY" in base.rest
    named = dict(base.columns)
    limit = choices.pick(
        ("rn <= 1", "rn <= 2", "rn < 4", "3 >= rn", "rn = 1", "rn BETWEEN 2 AND 3", "rn > 1 AND rn <= 9")
    )
    if grouped and choices.once_in(2):
        # The SELECT that ranks reads the groups from another one.
        inner = f"SELECT {_list(base.columns)} {base.rest}"
        window = choices.pick([name for name in named.values() if name in ("begin", "window_start", "window_end")])
        over = _over(choices, window, list(named.values()))
        middle = f"SELECT {choices.pick(('*', ', '.join(named.values())))}, {over} AS rn FROM ({inner})"
        return _around(choices, middle, list(named.values()), limit)
    over = _over(choices, choices.pick(base.windows), [value for value, _ in base.columns])
    form = choices.integer(0, 2)
    if form == 0:
        condition = f" AND {choices.pick(list(named))} IS NOT NULL" if choices.once_in(4) else ""
        return f"SELECT {_list(base.columns)}, {over} AS rn {base.rest} QUALIFY {limit}{condition}"
    if form == 1:
        shown = _list(choices.shuffle(base.columns)[: choices.integer(1, len(base.columns))])
        return f"SELECT {shown} {base.rest} QUALIFY {limit.replace('rn', over)}"
    return _around(choices, f"SELECT {_list(base.columns)}, {over} AS rn {base.rest}", list(named.values()), limit)


def _list(columns: object) -> str:
    assert isinstance(columns, list | tuple)
    return ", ".join(value if value == name else f"{value} AS {name}" for value, name in columns)


def _over(choices: Choices, window: str, columns: list[str]) -> str:
    keys = choices.shuffle([window, *([choices.pick(columns)] if choices.once_in(2) else [])])
    items = [
        f"{column}{choices.pick(('', ' ASC', ' DESC', ' DESC'))}{choices.pick(('', '', ' NULLS FIRST', ' NULLS LAST'))}"
        for column in choices.shuffle(columns)[: choices.integer(1, 2)]
    ]
    return f"ROW_NUMBER() OVER (PARTITION BY {', '.join(keys)} ORDER BY {', '.join(items)})"


def _around(choices: Choices, ranked: str, names: list[str], limit: str) -> str:
    """A SELECT around one that ranks."""
    shown = choices.pick(
        ("*", ", ".join([*names, "rn"]), ", ".join(choices.shuffle(names)[:2]), f"r.{names[0]} AS x, rn")
    )
    condition = choices.pick(("", "", f" AND {names[-1]} IS NOT NULL"))
    if choices.once_in(3):
        return f"WITH r AS ({ranked}) SELECT {shown} FROM r WHERE {limit}{condition}"
    return f"SELECT {shown} FROM ({ranked}) AS r WHERE {limit}{condition}"


def _rows(choices: Choices, count: int) -> pa.Table:
    """Rows in order of arrival, with many equal values."""
    times = [choices.integer(-4, 14) * TICK + choices.pick((0, 0, 1, TICK // 2)) for _ in range(count)]
    values = {
        "ts": pa.array(times, pa.timestamp("us", "UTC")),
        "k": pa.array([choices.pick((1, 2, None)) for _ in range(count)], pa.int64()),
        "v": pa.array([choices.pick((0, 1, 2, None)) for _ in range(count)], pa.int32()),
        "w": pa.array([choices.pick((0.0, -0.0, 1.5, float("nan"), None)) for _ in range(count)], pa.float64()),
        "s": pa.array([choices.pick(("", "a", "ab", "b", "\u00e9", None)) for _ in range(count)], pa.string()),
        "n": pa.array(range(count), pa.int64()),
    }
    return pa.table(values)
