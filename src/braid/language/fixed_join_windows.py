"""Which windows outer, semi and anti joins can have: whether a row has a partner is decided when the row ends."""

from __future__ import annotations

from collections.abc import Sequence

from braid.errors import QueryError
from braid.model.fixed_join import lags
from braid.model.query import FixedJoin, Source
from braid.model.window import FOREVER


def check_windows(sources: Sequence[Source], joins: Sequence[FixedJoin], text: str) -> None:
    """Refuse windows where the end of a row must be known when the row comes, or how long rows live.

    Rows are counted in the order of event time, and rows without a partner come only when they end: after other joins,
    they would come too late to be counted with.
    """
    if not joins:
        return
    for source in sources:
        if source.window.counts_rows:
            raise _counts_rows(source, f"before {joins[0].kind.value}", text)
    windows = [source.window for source in sources]
    known_lags = lags(windows, [(join.kind, join.source.window) for join in joins])
    for position, (join, lag) in enumerate(zip(joins, known_lags, strict=True)):
        if join.kind.preserves_right and lag == FOREVER:
            raise _has_no_end(join, joins[:position], text)
        if not join.source.window.counts_rows:
            continue
        if position:
            raise _counts_rows(join.source, f"after {joins[position - 1].kind.value}", text)
        if join.kind.preserves_right:
            raise _counts_rows(join.source, f"in {join.kind.value}", text)
        if join.kind.shows_right and len(joins) > 1:
            raise _counts_rows(join.source, f"before {joins[1].kind.value}", text)


def _has_no_end(join: FixedJoin, before: Sequence[FixedJoin], text: str) -> QueryError:
    kinds = ", ".join(dict.fromkeys(earlier.kind.value for earlier in before))
    return QueryError(
        f"how long rows live before the {join.kind.value} of '{join.source.alias}' is not known",
        text,
        join.source.span,
        f"rows of {kinds} without a partner come when they end, and only then a row of '{join.source.alias}' is known "
        "to have none: write [RANGE ..] or [TUMBLE ..] before it, or put it first",
    )


def _counts_rows(source: Source, where: str, text: str) -> QueryError:
    return QueryError(
        f"'{source.alias}' {where} has a window that counts rows",
        text,
        source.span,
        "it must be known when a row ends; write [RANGE ..], or test the stream with EXISTS or NOT EXISTS in WHERE",
    )
