"""Binding one stream of FROM to its declaration: its name, and the columns that its window partitions by."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa

from braid.errors import QueryError, Span, did_you_mean
from braid.language.resolving import match_name
from braid.model.expressions.types import has_equality, has_union
from braid.model.query import Source
from braid.model.stream import Stream
from braid.model.table import Table


def bind_source(source: Source, streams: Mapping[str, Stream | Table], text: str) -> Source:
    """The source with its declaration, and with the columns of its window as the declaration spells them."""
    matches = match_name(source.stream, streams)
    if not matches:
        span = _word_span(source.stream, source.span, text)
        hint = did_you_mean(source.stream, streams)
        raise QueryError(f"there is no stream '{source.stream}'", text, span, hint)
    if len(matches) > 1:
        problem = f"stream '{source.stream}' could be {' or '.join(matches)}"
        raise QueryError(problem, text, source.span, "write it exactly")
    declaration = streams[matches[0]]
    if isinstance(declaration, Table):
        problem = f"'{source.stream}' is a table, and its rows are alive at all times"
        raise QueryError(problem, text, source.span, "leave out the window")
    if source.window.counts_rows:
        _check_ordered(source, declaration, text)
    window = source.window.with_columns(lambda name: _window_column(name, source, declaration, text))
    return replace(source, window=window, declaration=declaration)


def _check_ordered(source: Source, declaration: Stream, text: str) -> None:
    """Refuse a column without an order: ROWS counts rows of the same event time in the order of their columns."""
    for column in declaration.schema:
        if has_union(column.type):
            raise QueryError(
                f"stream '{source.stream}' cannot be counted by rows: its column '{column.name}' is a union, "
                "which has no order",
                text,
                source.span,
                "leave the column out of the stream",
            )


def _window_column(name: str, source: Source, declaration: Stream, text: str) -> str:
    """The column of a declaration that PARTITION BY or UNTIL names."""
    columns = declaration.schema.names
    matches = match_name(name, columns)
    is_end = source.window.end_column is not None
    span = _word_span(name, source.span, text, after="until" if is_end else "by")
    if len(matches) != 1:
        raise no_single_column(name, source.alias, matches, columns, text, span)
    type_ = declaration.schema.field(matches[0]).type
    if is_end and not pa.types.is_timestamp(type_):
        problem = f"'{name}' is {type_}, and a row ends at a timestamp"
        raise QueryError(problem, text, span, "name a column of timestamps, or write [RANGE ..]")
    if not has_equality(type_):
        problem = f"rows cannot be partitioned by '{name}', which is {type_}"
        raise QueryError(problem, text, span, "partition by a column of a simple type")
    return matches[0]


def no_single_column(
    name: str, alias: str, matches: list[str], columns: list[str], text: str, span: Span | None
) -> QueryError:
    """The error for a name that matches none of the columns of a stream, or several of them."""
    if matches:
        return QueryError(f"column '{name}' could be {' or '.join(matches)}", text, span, "write it exactly")
    return QueryError(f"stream '{alias}' has no column '{name}'", text, span, did_you_mean(name, columns))


def _word_span(word: str, span: Span | None, text: str, after: str = "") -> Span | None:
    """The span of a word in the FROM entry at `span`, or of the whole entry if the word is not in it."""
    if span is None:
        return None
    entry = text[span.start : span.end]
    start = max(0, entry.lower().find(after)) if after else 0
    match = re.compile(rf"(?<!\w){re.escape(word)}(?!\w)").search(entry, start)
    return span if match is None else Span(span.start + match.start(), span.start + match.end())
