"""Which windows outer, semi and anti joins can have: whether a row has a partner is decided when the row ends."""

from __future__ import annotations

from collections.abc import Sequence

from braid.errors import QueryError
from braid.model.query import FixedJoin, Source


def check_windows(sources: Sequence[Source], joins: Sequence[FixedJoin], text: str) -> None:
    """Refuse windows that count rows where the end of a row must be known when the row comes.

    Rows are counted in the order of event time, and rows without a partner come only when they end: after other joins,
    they would come too late to be counted with.
    """
    if not joins:
        return
    for source in sources:
        if source.window.counts_rows:
            raise _counts_rows(source, f"before {joins[0].kind.value}", text)
    for position, join in enumerate(joins):
        if not join.source.window.counts_rows:
            continue
        if position:
            raise _counts_rows(join.source, f"after {joins[position - 1].kind.value}", text)
        if join.kind.preserves_right:
            raise _counts_rows(join.source, f"in {join.kind.value}", text)
        if join.kind.shows_right and len(joins) > 1:
            raise _counts_rows(join.source, f"before {joins[1].kind.value}", text)


def _counts_rows(source: Source, where: str, text: str) -> QueryError:
    return QueryError(
        f"'{source.alias}' {where} has a window that counts rows",
        text,
        source.span,
        "it must be known when a row ends; write [RANGE ..], or test the stream with EXISTS or NOT EXISTS in WHERE",
    )
