"""Views for the oracle: the rows of each SELECT and window function in FROM, found before the query around it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from sqlglot import exp

from braid.language.nodes import StreamTable, WindowNode
from braid.language.top_n import is_part_of_ranking, with_inlined_ranks
from braid.language.view_nodes import definitions, has_windows, outermost_views, put_name, union_sides, view_kind
from braid.language.views import with_event_time
from braid.model.output import EVENT_TIME_COLUMN
from braid.model.stream import Stream
from braid.model.window import Now
from braid.model.window_function import WINDOW_END, WINDOW_START, WindowFunction
from braid.testing.relation import microseconds

Answer = Callable[..., pa.Table]
"""The results of a statement: `answer(tree, data)`; `event_time` names one more column for their event times."""


def has_name(name: str, known: Collection[str]) -> bool:
    return name.casefold() in {other.casefold() for other in known}


@dataclass(frozen=True)
class InputData:
    """The rows and event-time columns of streams, and the rows of tables, by name."""

    streams: Mapping[str, pa.Table]
    times: Mapping[str, str]
    tables: Mapping[str, pa.Table]
    text: str

    def with_stream(self, name: str, rows: pa.Table, time: str) -> InputData:
        return replace(self, streams={**self.streams, name: rows}, times={**self.times, name: time})

    def stream_name(self, name: str) -> str:
        return name if name in self.streams else next(other for other in self.streams if has_name(name, [other]))

    def with_views(self, tree: exp.Select, answer: Answer) -> InputData:
        """The data with the views of a statement, which then names them instead."""
        data = self
        with_inlined_ranks(tree)
        for definition in definitions(tree.args.get("with_"), self.text):
            data = data._with_select(definition.alias, definition.this, answer)
        tree.set("with_", None)
        for table in outermost_views(tree):
            if is_part_of_ranking(table):
                # The SELECT around it works on each of its rows.
                rows = answer(table.args["select"].unnest().copy(), data)
                put_name(table, f"{table.alias_or_name} (SELECT)")
                data = replace(data, tables={**data.tables, table.name: rows})
                continue
            name = f"{table.alias_or_name} ({view_kind(table)})"
            if table.function is not None:
                data = data._with_windows(name, table.name, table.function)
            else:
                data = data._with_select(name, table.args["select"], answer)
            put_name(table, name)
        return data

    def _with_select(self, name: str, select: exp.Expr, answer: Answer) -> InputData:
        sides = list(union_sides(select))
        rows, time = zip(*(self._rows(side.copy(), answer) for side in sides), strict=True)
        columns = rows[0].column_names
        united = pa.concat_tables([side.rename_columns(columns).cast(rows[0].schema) for side in rows])
        return self.with_stream(name, united, time[0])

    def _rows(self, select: Any, answer: Answer) -> tuple[pa.Table, str]:
        """The rows that a SELECT gives, and the column of their event time."""
        select = select.unnest()
        if has_windows(select):
            return answer(select, self, event_time=EVENT_TIME_COLUMN), EVENT_TIME_COLUMN
        data = self.with_views(select, answer)
        tables = list(select.find_all(StreamTable))
        entry = next(table for table in tables if not has_name(table.name, self.tables))
        name = data.stream_name(entry.name)
        # A row that is alive at its own time only, once: that is the row.
        entry.set("window", WindowNode(this=Now()))
        stream = Stream(name, data.streams[name].schema, data.times[name])
        time = with_event_time(select, entry.alias_or_name, stream)
        return answer(select, data), time

    def _with_windows(self, name: str, stream: str, function: WindowFunction) -> InputData:
        """The rows of a stream, each once for each window that it is in."""
        stream = self.stream_name(stream)
        rows, time = self.streams[stream], self.times[stream]
        positions, starts = [], []
        for position, moment in enumerate(microseconds(rows.column(time)).to_pylist()):
            if moment is None:
                continue
            start = moment - moment % function.slide
            while start > moment - function.size:
                positions.append(position)
                starts.append(start)
                start -= function.slide
        kind = pa.timestamp("us", rows.schema.field(time).type.tz)
        windowed = rows.take(pa.array(positions, pa.int64()))
        windowed = windowed.append_column(WINDOW_START, pa.array(starts, kind))
        windowed = windowed.append_column(WINDOW_END, pa.array([start + function.size for start in starts], kind))
        return self.with_stream(name, windowed, time)
