"""The benchmark's joins as a user of Flink would write them in SQL."""

from __future__ import annotations

from pathlib import Path

from benchmarks.workload import Workload


def declare_stream(name: str, keys: dict[str, str], path: Path) -> str:
    """A stream in one CSV file, in the order of its times, so that no row is late. `ms` is the time as a number."""
    columns = ", ".join(["`ms` BIGINT", "`row` BIGINT", *(f"`{key}` {kind}" for key, kind in keys.items())])
    return (
        f"CREATE TABLE {name} ({columns}, ts AS TO_TIMESTAMP_LTZ(`ms`, 3), WATERMARK FOR ts AS ts) "
        f"WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = 'csv')"
    )


def declare_results(name: str, outputs: tuple[str, ...], path: Path | None) -> str:
    """A table of results: a directory of CSV files, or one that drops them."""
    columns = ", ".join(f"{output} BIGINT" for output in outputs)
    sink = (
        "'connector' = 'blackhole'"
        if path is None
        else f"'connector' = 'filesystem', 'path' = '{path}', 'format' = 'csv'"
    )
    return f"CREATE TABLE {name} ({columns}) WITH ({sink})"


def interval_joins(workload: Workload, order: tuple[str, ...]) -> str:
    """A chain of interval joins. Each joins one more stream by its time with the first stream's.

    An interval join takes one pair of time columns, so that the other times are compared as numbers.
    """
    first, *others = order
    text = f"SELECT {_selected(workload)} FROM {first}"
    span = f"INTERVAL '{workload.window_seconds}' SECOND"
    joined = [first]
    for name in others:
        interval = f"{name}.ts > {first}.ts - {span} AND {name}.ts < {first}.ts + {span}"
        conditions = [*_equalities(workload, name, joined), interval, *_near(workload, name, joined[1:])]
        text += f" JOIN {name} ON {' AND '.join(conditions)}"
        joined.append(name)
    return text


def regular_joins(workload: Workload, order: tuple[str, ...]) -> str:
    """Joins whose state never expires, which the multi-join operator takes: all times are compared as numbers."""
    text = f"SELECT {_selected(workload)} FROM {order[0]}"
    joined = [order[0]]
    for name in order[1:]:
        conditions = [*_equalities(workload, name, joined), *_near(workload, name, joined)]
        text += f" JOIN {name} ON {' AND '.join(conditions)}"
        joined.append(name)
    return text


def _selected(workload: Workload) -> str:
    return ", ".join(f"{stream}.`row` AS {stream}_row" for stream in workload.streams)


def _equalities(workload: Workload, name: str, joined: list[str]) -> list[str]:
    """The equalities of a stream with those before it: of columns with the same name, once for each column."""
    equalities = []
    for column in workload.columns[name]:
        partners = [other for other in joined if column in workload.columns[other]]
        if partners:
            equalities.append(f"{name}.{column} = {partners[0]}.{column}")
    return equalities


def _near(workload: Workload, name: str, others: list[str]) -> list[str]:
    return [f"ABS({name}.`ms` - {other}.`ms`) < {1_000 * workload.window_seconds}" for other in others]
