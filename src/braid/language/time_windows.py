"""WINDOW(event_time, ..) in GROUP BY and PARTITION BY, and the bounds of such a window: window.start and window.end."""

from __future__ import annotations

from sqlglot import exp

from braid.language.expressions.node_reader import NodeReader
from braid.language.nodes import span_of
from braid.model.duration import parse_duration
from braid.model.expressions.aggregates import WINDOW_END, WINDOW_START
from braid.model.expressions.expression import Call
from braid.model.grouping import SessionWindow, TimeWindow
from braid.model.output import EVENT_TIME_COLUMN
from braid.model.window import LONGEST

WINDOW_NAMES = ("window", "session_window")
"""What the window of GROUP BY is called in SELECT."""

WINDOW_EXAMPLE = "for example WINDOW(event_time, '10 seconds') or WINDOW(event_time, '1 minute', '10 seconds')"


SHORTEST_GAP = 1_000
"""In microseconds: watermarks of Spark, which groups by sessions, are whole milliseconds."""

SESSION_EXAMPLE = "for example GROUP BY bidder, SESSION_WINDOW(event_time, '10 seconds')"


def is_session_window(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.lower() == "session_window"


def session_window(reader: NodeReader, node: exp.Expr) -> SessionWindow:
    """SESSION_WINDOW(event_time, gap)."""
    time, *gaps = node.expressions or [None]
    if not _is_event_time(time) or len(gaps) != 1:
        problem = f"SESSION_WINDOW takes {EVENT_TIME_COLUMN} and the gap that ends a session"
        raise reader.error(node, problem, SESSION_EXAMPLE)
    gap = _length(reader, gaps[0])
    if gap < SHORTEST_GAP:
        raise reader.error(gaps[0], "the gap of sessions is shorter than a millisecond", SESSION_EXAMPLE)
    return SessionWindow(gap)


def is_time_window(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.lower() == "window"


def time_window(reader: NodeReader, node: exp.Expr) -> TimeWindow:
    """WINDOW(event_time, length) or WINDOW(event_time, length, slide)."""
    time, *lengths = node.expressions or [None]
    if not _is_event_time(time):
        problem = f"the first argument of WINDOW must be {EVENT_TIME_COLUMN}"
        raise reader.error(node, problem, WINDOW_EXAMPLE)
    if not 1 <= len(lengths) <= 2:
        raise reader.error(node, "WINDOW takes event_time, a length and at most one slide", WINDOW_EXAMPLE)
    length = _length(reader, lengths[0])
    slide = _length(reader, lengths[-1])
    if slide > length:
        problem = "the slide of WINDOW is longer than its length, so some results would be in no window"
        raise reader.error(lengths[1], problem, "make the slide at most as long as the length")
    return TimeWindow(length, slide)


def _is_event_time(node: exp.Expr | None) -> bool:
    return isinstance(node, exp.Column) and not node.table and node.name.lower() == EVENT_TIME_COLUMN


def _length(reader: NodeReader, node: exp.Expr) -> int:
    """A length of time in quotes, in microseconds."""
    length = parse_duration(node.name) if isinstance(node, exp.Literal) and node.is_string else None
    if length is None or not 0 < length <= LONGEST:
        raise reader.error(node, "the length of a window must be a length of time in quotes", WINDOW_EXAMPLE)
    return length


def bound_of_window(reader: NodeReader, node: exp.Expr) -> Call | None:
    """window.start or window.end, or the same of session_window; None for anything else."""
    if not isinstance(node, exp.Column):
        return None
    if not node.table and node.name.lower() in WINDOW_NAMES:
        raise reader.error(node, "a window has two bounds", "select window.start, window.end or both")
    if node.table.lower() not in WINDOW_NAMES:
        return None
    bounds = {"start": WINDOW_START, "end": WINDOW_END}
    if node.name.lower() not in bounds:
        raise reader.error(node, f"a window has no '{node.name}'", "it has window.start and window.end")
    return Call(bounds[node.name.lower()].function, (), span_of(node))
