"""How streams match each other, whatever the plan: a sample of new rows probes every window they are joined with.

The counts of the running plan say little about other plans: two streams that are never joined first are never seen
alone. A sample covers all pairs of streams equally under every plan, so what is learnt from it does not depend on the
plan that happens to run.
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

MOST_SAMPLED = 64
"""The most rows sampled per stream."""

MOST_SCANNED = 1 << 16
"""The most rows of a window that a sample compares if the window has no index for it."""


@dataclass(frozen=True, slots=True)
class PairCounts:
    """`head` has `rows` new rows; `probes` of them probed the window of `stream` and found `matches` there."""

    head: str
    stream: str
    rows: int
    probes: int
    matches: int


class Sampler:
    """Probes pairs of streams, on the windows of a dataflow."""

    def __init__(self, dataflow: Dataflow) -> None:
        self._windows = {alias: inlet.window for alias, inlet in dataflow.inlets.items()}
        self._dataflow = dataflow
        self._classes = {alias: dataflow.program.query.graph.classes_of(alias) for alias in self._windows}
        self._matchers: dict[tuple[str, str], Matcher | None] = {}

    def sample(self, new: Mapping[str, int], most: int) -> tuple[PairCounts, ...]:
        """The counts of each pair of streams; `new` is the number of new rows of each stream.

        The stream with more new rows probes the other. Pairs whose window lacks the index are left out: building and
        maintaining one would cost more than the sample is worth.
        """
        pair_counts = []
        first_new = {alias: _first_new(window, new[alias]) for alias, window in self._windows.items()}
        rows = {alias: self._windows[alias].head - first for alias, first in first_new.items()}
        for pair in combinations(self._windows, 2):
            head, stream = sorted(pair, key=rows.__getitem__, reverse=True)
            matcher = self._matcher(head, stream) if rows[head] else None
            if matcher is None:
                continue
            counts = self._count(head, first_new[head], min(rows[head], most), matcher)
            if counts is not None:
                pair_counts.append(PairCounts(head, stream, rows[head], *counts))
        return tuple(pair_counts)

    def key_words(self, new: Mapping[str, int]) -> Iterator[tuple[str, int, Words]]:
        """The key words of the new rows, by stream and attribute class (see `Engine.key_words`)."""
        for alias, window in self._windows.items():
            first = _first_new(window, new[alias])
            for class_number in self._classes[alias]:
                for words in window.word_stretches(class_number, first, window.head):
                    yield alias, class_number, words

    def _matcher(self, head: str, stream: str) -> Matcher | None:
        if (head, stream) not in self._matchers:
            self._matchers[head, stream] = self._dataflow.matchers.for_tied_streams(head, stream)
        return self._matchers[head, stream]

    def _count(self, head: str, first: int, probes: int, matcher: Matcher) -> tuple[int, int] | None:
        """Probes and matches of a sample; None if the index for it does not exist."""
        window, probed = self._windows[head], matcher.window
        if not matcher.classes:
            probes = max(1, min(probes, MOST_SCANNED // max(1, len(probed))))
        elif not probed.has_index(matcher.classes):
            return None
        # Rows lie in the order of their index buckets, so evenly spaced rows are a fair sample.
        ids = first + np.arange(probes) * (window.head - first) // probes
        sampled = rows_with(self._dataflow.bases[head], ids, -FOREVER)
        matches = sum(len(piece) for piece in matcher.matches_of(sampled, probed.head))
        return probes, matches


def _first_new(window: WindowState, new: int) -> int:
    """The id of the first new row, or of the first row in the window if new rows have left it.

    An id remembered from before the step would not do: a window that makes room gives its old rows new ids.
    """
    return max(window.head - new, window.tail)
