"""Just-in-time completion: what is missing of kept combinations is found when somebody asks for it.

Whoever probes incomplete combinations has them completed first for the rows that ask: which older rows of one of their
streams matter is looked up, those that have been attempted before are left out, and the rest is taken along the very
joins that new rows go through. Where these in turn probe combinations that are incomplete, the same happens there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from braid.engine.arrays.jit import Words
from braid.engine.join.combinations import Combinations, heads, rows_with
from braid.engine.join.dataflow import Completion, Dataflow, JoinStep
from braid.engine.window.join_state import JoinState

HEADS_AT_ONCE = 1 << 15
"""Heads go through their joins in pieces of this many, so that what they touch stays in the processor's cache."""

MOST_ASKED = 1 << 20
"""So many ids that completion is asked for are held before those that are the same become one."""


class Completer:
    """Completes the kept combinations of an dataflow."""

    def __init__(self, dataflow: Dataflow) -> None:
        self._dataflow = dataflow
        # The streams whose rows probe kept combinations first of all, those of inputs before those of what they make.
        self._asking = [
            (alias, step)
            for kept in dataflow.kept.values()
            for alias in dataflow.inlets
            for step in dataflow.steps[alias]
            if isinstance(step, JoinStep) and step.kept is kept
        ]

    def everything(self) -> None:
        """Find all that is missing, inputs before what they are inputs of."""
        for name, kept in self._dataflow.kept.items():
            if kept.check_missing():
                completion = self._dataflow.completion_of(name)
                self._add(kept, completion, _older(kept, completion))

    def for_new_rows(self, first_new: Mapping[str, int]) -> None:
        """Find what the rows of each stream from an id on will ask for first.

        All of them ask before anything is looked for, from the top of the tree to the bottom, so that what somebody
        asks for is asked for below at the same time; then each join adds what is missing once.
        """
        asked: list[tuple[JoinStep, Words]] = []
        passed_on: dict[int, list[Combinations]] = {}
        for alias, step in reversed(self._asking):
            kept, completion = _parts(step)
            if not kept.check_missing():
                continue
            base = self._dataflow.bases[alias]
            new = heads(base, first_new[alias], base.window.head)
            ids = _asked_for(kept, completion, [new, *passed_on.pop(id(step), ())])
            if len(ids):
                asked.append((step, ids))
                rows = rows_with(completion.base, ids, kept.horizon)
                passed_on.setdefault(id(completion.path[0]), []).append(rows)
        for step, ids in reversed(asked):
            self._add(*_parts(step), ids, asked_before=True)

    def ask(self, step: JoinStep, probing: Combinations) -> None:
        """Find what some combinations need of those that a join probes."""
        if step.kept is not None and len(probing) and step.kept.check_missing():
            kept, completion = _parts(step)
            self._add(kept, completion, _asked_for(kept, completion, [probing]))

    def _add(self, kept: JoinState, completion: Completion, asked: Words, asked_before: bool = False) -> None:
        """Add all older combinations of some rows; the first join on their way may have been asked already."""
        missing, alias = kept.missing, completion.base.alias
        if missing is None:
            return
        fresh = missing.fresh(alias, asked)
        for first in range(0, len(fresh), HEADS_AT_ONCE):
            rows = rows_with(completion.base, fresh[first : first + HEADS_AT_ONCE], kept.horizon)
            for found in self._along(completion.path, rows, missing.before, asked_before):
                kept.add_older(missing.lacking(found))
        missing.attempt(alias, fresh)

    def _along(
        self, path: Sequence[JoinStep], rows: Combinations, before: Mapping[str, int], asked_before: bool = False
    ) -> Iterator[Combinations]:
        """Combinations that some rows are part of, through all joins of a path."""
        if not path:
            yield rows
            return
        if not asked_before:
            self.ask(path[0], rows)
        matcher = path[0].matcher
        for matches in matcher.matches_of(rows, matcher.limit(before)):
            yield from self._along(path[1:], matches, before)


def _parts(step: JoinStep) -> tuple[JoinState, Completion]:
    assert step.kept is not None and step.completion is not None
    return step.kept, step.completion


def _older(kept: JoinState, completion: Completion) -> Words:
    assert kept.missing is not None
    return kept.missing.older(completion.base.alias)


def _asked_for(kept: JoinState, completion: Completion, probing: Iterable[Combinations]) -> Words:
    """The rows, not attempted yet, whose combinations are missing to those who probe; each once."""
    missing, alias, finder = kept.missing, completion.base.alias, completion.finder
    assert missing is not None
    asking = [rows for rows in probing if len(rows)]
    if not asking:
        return np.empty(0, np.int64)
    if finder is None:
        return missing.fresh(alias, missing.older(alias))
    matches = (found for rows in asking for found in finder.matches_of(rows, missing.before[alias]))
    return _each_once(missing.fresh(alias, found.ids) for found in matches)


def _each_once(parts: Iterable[Words]) -> Words:
    """The different ids of some parts, never holding many more than these."""
    held, size, most = [np.empty(0, np.int64)], 0, MOST_ASKED
    for ids in parts:
        # They may lie in a buffer that the next part will overwrite.
        held.append(ids.copy())
        size += len(ids)
        if size > most:
            held = [np.unique(np.concatenate(held))]
            size = len(held[0])
            most = max(most, 2 * size)
    return np.unique(np.concatenate(held))
