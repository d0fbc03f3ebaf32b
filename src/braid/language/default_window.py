"""A window for the streams of a text that have none."""

from __future__ import annotations

from braid.language.dialect import parse_statement
from braid.language.nodes import StreamTable, span_of
from braid.model.duration import Duration, microseconds
from braid.model.window import Range


def with_default_window(text: str, window: Duration) -> str:
    """The text with `[RANGE window]` after each stream that has no window.

    >>> with_default_window("SELECT a.k FROM a, b [NOW] AS c WHERE a.k = c.k", "10 minutes")
    'SELECT a.k FROM a [RANGE 10 MINUTES], b [NOW] AS c WHERE a.k = c.k'
    """
    written = f" {Range(microseconds('the window of streams without one', window))}"
    spans = [span_of(table.this) for table in parse_statement(text).find_all(StreamTable) if table.window is None]
    # From the last to the first, so that the places of the others stay right.
    for end in sorted({span.end for span in spans if span is not None}, reverse=True):
        text = text[:end] + written + text[end:]
    return text
