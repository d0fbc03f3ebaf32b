"""GROUP BY for DuckDB: windows of event time become a lateral join; everything else is plain SQL."""

from __future__ import annotations

import sqlglot
from sqlglot import exp

from braid.language.top_n import rank_nodes
from braid.model.duration import parse_duration

_WINDOWS = """
SELECT * FROM (SELECT 1), LATERAL (
    SELECT make_timestamp(begin) AT TIME ZONE 'UTC' AS "start",
           make_timestamp(begin + {length}) AT TIME ZONE 'UTC' AS "end"
    FROM (SELECT unnest(generate_series({last} - {reach}, {last}, {slide})) AS begin) WHERE {time} < begin + {length}
) AS "window"
"""
"""The windows that contain the event time of a result: they begin at multiples of the slide."""


def is_grouped(tree: exp.Select) -> bool:
    """Whether a query has GROUP BY, HAVING or an aggregate."""
    if tree.args.get("group") or tree.args.get("having"):
        return True
    nodes = (node for item in tree.expressions for node in item.walk())
    return any(_is_aggregate(node) for node in nodes)


def _is_aggregate(node: exp.Expr) -> bool:
    # sqlglot does not know MEAN as an aggregate.
    return isinstance(node, exp.AggFunc) or (isinstance(node, exp.Anonymous) and node.name.lower() == "mean")


def with_windows(body: exp.Select, time: exp.Expr) -> exp.Select:
    """The query with WINDOW(event_time, ..) in GROUP BY or PARTITION BY as a join; `time` is a result's event time."""
    group = body.args.get("group")
    keys = [] if group is None else group.expressions
    windows = list(filter(_is_window, keys))
    partitions = [key for node in rank_nodes(body) for key in node.args.get("partition_by") or []]
    for number, node in enumerate([*windows, *filter(_is_window, partitions)]):
        if number == 0:
            # WINDOW(event_time, length) or WINDOW(event_time, length, slide)
            length, slide = (parse_duration(node.expressions[position].name) or 0 for position in (1, -1))
            moment = f"({time.sql(dialect='duckdb', identify=True)})"
            last = f"({moment} - ({moment} % {slide} + {slide}) % {slide})"
            reach = length - length % slide
            text = _WINDOWS.format(length=length, slide=slide, time=moment, last=last, reach=reach)
            body.append("joins", sqlglot.parse_one(text, dialect="duckdb").args["joins"][0])
        node.replace(exp.column("start", "window"))
    if windows and group is not None:
        group.append("expressions", exp.column("end", "window"))
    return body


def _is_window(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.lower() == "window"
