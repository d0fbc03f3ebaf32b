"""How streams match each other, whatever the plan: a few new rows of each probe every window they are tied to.

What the joins of the running plan count tells little about other plans: a pair of streams that is never joined first is
never seen alone. A sample of all pairs is seen alike under every plan, so that what is learnt from it does not change
with the plan it leads to.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from braid.engine.arrays.jit import Words
from braid.engine.join.combinations import rows_with
from braid.engine.join.dataflow import Dataflow
from braid.engine.join.matcher import Matcher
from braid.engine.window.window_state import WindowState
from braid.model.window import FOREVER

SAMPLED = 64
"""So many rows of a stream are sampled at a time, at most."""

MOST_LOOKS = 1 << 16
"""Where no index finds the matches, no more rows of windows are looked at than this."""


@dataclass(frozen=True, slots=True)
class PairCounts:
    """Of the new rows of `head`, `probes` were looked up in the window of `stream`, which had `matches` for them."""

    head: str
    stream: str
    rows: int
    probes: int
    matches: int


class Sampler:
    """Probes by pairs of streams, on the windows of an dataflow."""

    def __init__(self, dataflow: Dataflow) -> None:
        self._windows = {alias: inlet.window for alias, inlet in dataflow.inlets.items()}
        self._dataflow = dataflow
        self._classes = {alias: dataflow.program.query.graph.classes_of(alias) for alias in self._windows}
        self._matchers: dict[tuple[str, str], Matcher | None] = {}

    def sample(self, new: Mapping[str, int], most: int) -> tuple[PairCounts, ...]:
        """Of two streams the one with more new rows probes the other; `new` tells how many came last.

        Pairs without an index are left out: to build and keep one would cost more than it tells.
        """
        found = []
        firsts = {alias: _first(window, new[alias]) for alias, window in self._windows.items()}
        rows = {alias: self._windows[alias].head - first for alias, first in firsts.items()}
        for pair in combinations(self._windows, 2):
            head, stream = sorted(pair, key=rows.__getitem__, reverse=True)
            matcher = self._matcher(head, stream) if rows[head] else None
            counts = None if matcher is None else self._count(head, firsts[head], min(rows[head], most), matcher)
            if counts is not None:
                found.append(PairCounts(head, stream, rows[head], *counts))
        return tuple(found)

    def key_words(self, new: Mapping[str, int]) -> Iterator[tuple[str, int, Words]]:
        for alias, window in self._windows.items():
            first = _first(window, new[alias])
            for number in self._classes[alias]:
                for words in window.word_parts(number, first, window.head):
                    yield alias, number, words

    def _matcher(self, head: str, stream: str) -> Matcher | None:
        if (head, stream) not in self._matchers:
            self._matchers[head, stream] = self._dataflow.pair(head, stream)
        return self._matchers[head, stream]

    def _count(self, head: str, first: int, probes: int, matcher: Matcher) -> tuple[int, int] | None:
        window, probed = self._windows[head], matcher.window
        if not matcher.classes:
            probes = max(1, min(probes, MOST_LOOKS // max(1, len(probed))))
        elif not probed.has_index(matcher.classes):
            return None
        # Rows lie in the order of their index buckets: evenly spaced ones are a fair sample.
        ids = first + np.arange(probes) * (window.head - first) // probes
        sampled = rows_with(self._dataflow.bases[head], ids, -FOREVER)
        matches = sum(len(found) for found in matcher.matches_of(sampled, probed.head))
        return probes, matches


def _first(window: WindowState, new: int) -> int:
    """The id of the first of so many rows that came last, as far as they are still here.

    By ids alone new rows cannot be told: a window that makes room gives new ones to rows it had before.
    """
    return max(window.head - new, window.tail)
