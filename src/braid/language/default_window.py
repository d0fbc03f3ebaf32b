"""A window for the streams of a text that have none."""

from __future__ import annotations

from collections.abc import Collection

from braid.language.dialect import parse_statement
from braid.language.nodes import StreamTable, span_of
from braid.language.resolving import match_name
from braid.language.top_n import is_part_of_ranking
from braid.language.view_nodes import ancestors, is_view
from braid.model.duration import Duration, microseconds
from braid.model.window import Range


def with_default_window(text: str, window: Duration, tables: Collection[str] = ()) -> str:
    """The text with `[RANGE window]` after each stream that has no window, but not after these tables.

    A SELECT in FROM has the windows that it is written with: without any, it reads its stream row by row.

    >>> with_default_window("SELECT a.k FROM a, b [NOW] AS c WHERE a.k = c.k", "10 minutes")
    'SELECT a.k FROM a [RANGE 10 MINUTES], b [NOW] AS c WHERE a.k = c.k'
    """
    written = f" {Range(microseconds('the window of streams without one', window))}"
    statement = parse_statement(text)
    statement.set("with_", None)
    spans = []
    for table in statement.find_all(StreamTable):
        is_inner = any(is_view(node) and not is_part_of_ranking(node) for node in ancestors(table))
        is_known = bool(match_name(table.name, tables)) or is_part_of_ranking(table)
        if table.window is None and not is_inner and not is_known:
            spans.append(span_of(table if is_view(table) else table.this))
    # From the last to the first, so that the places of the others stay right.
    for end in sorted({span.end for span in spans if span is not None}, reverse=True):
        text = text[:end] + written + text[end:]
    return text
