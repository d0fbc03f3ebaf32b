"""GROUP BY for DuckDB: windows of event time become rows of their own, everything else is plain SQL."""

from __future__ import annotations

import sqlglot
from sqlglot import exp

from braid.model.duration import parse_duration

_WINDOWS = """
SELECT * FROM (SELECT 1), LATERAL (
    SELECT make_timestamp(begin) AT TIME ZONE 'UTC' AS "start",
           make_timestamp(begin + {length}) AT TIME ZONE 'UTC' AS "end"
    FROM (SELECT unnest(generate_series({last} - {reach}, {last}, {slide})) AS begin) WHERE {time} < begin + {length}
) AS "window"
"""
"""Every multiple of the slide from which on a window reaches over a result's time."""


def is_grouped(tree: exp.Select) -> bool:
    found = (node for item in tree.expressions for node in item.walk())
    return bool(tree.args.get("group") or tree.args.get("having")) or any(
        isinstance(node, exp.AggFunc) or (isinstance(node, exp.Anonymous) and node.name.lower() == "mean")
        for node in found
    )


def with_windows(body: exp.Select, time: exp.Expr) -> exp.Select:
    """The query with WINDOW(event_time, ..) of its GROUP BY spelled out, `time` being the event time of a result."""
    group = body.args.get("group")
    if group is None:
        return body
    for node in group.expressions:
        if isinstance(node, exp.Anonymous) and node.name.lower() == "window":
            length, slide = (parse_duration(node.expressions[place].name) or 0 for place in (1, -1))
            moment = f"({time.sql(dialect='duckdb', identify=True)})"
            last = f"({moment} - ({moment} % {slide} + {slide}) % {slide})"
            reach = length - length % slide
            text = _WINDOWS.format(length=length, slide=slide, time=moment, last=last, reach=reach)
            body.append("joins", sqlglot.parse_one(text, dialect="duckdb").args["joins"][0])
            node.replace(exp.column("start", "window"))
            group.append("expressions", exp.column("end", "window"))
    return body
