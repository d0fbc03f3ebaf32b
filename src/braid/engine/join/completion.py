"""Just-in-time completion: finds the missing combinations of a join state when a row is about to probe it.

Before rows probe an incomplete join state, it is completed for these rows. A finder looks up which older rows of one of
its streams matter to them. Older rows that have been attempted before are left out; the others go through the same
joins as new rows do. If such a join probes another incomplete join state, that one is completed first, in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np

from braid.engine.arrays.jit import Words
from braid.engine.join.combinations import Combinations, rows_with
from braid.engine.join.dataflow import Dataflow
from braid.engine.join.operators import Completion, JoinOperator
from braid.engine.join.parts import KeyParts
from braid.engine.window.join_state import JoinState

HEADS_AT_ONCE = 1 << 15
"""Heads go through their joins in pieces of this size, so that the data of a piece stays in the processor's cache."""

MOST_COLLECTED = 1 << 20
"""The most row ids that are collected before duplicates are removed."""


class Completer:
    """Completes the join states of a dataflow: with the combinations of one part of the keys, if there are `parts`.

    It may add combinations of other parts, too. They are of no use and do no harm.
    """

    def __init__(self, dataflow: Dataflow, parts: KeyParts | None = None, part: int = 0) -> None:
        self._dataflow = dataflow
        self._parts = parts
        self._part = part
        self.work = 0
        """The work of all completions so far; the joins of the dataflow count it too."""
        self._first_joins = list(self._first_joins_with_join_states())

    def _first_joins_with_join_states(self) -> Iterator[tuple[str, JoinOperator]]:
        """The joins whose probing rows are those of a stream and which probe a join state.

        A join state comes after the join states it is made of.
        """
        for join_state in self._dataflow.join_states.values():
            for alias in self._dataflow.inlets:
                for join in self._dataflow.operators[alias]:
                    if isinstance(join, JoinOperator) and join.join_state is join_state:
                        yield alias, join

    @contextmanager
    def _counted(self) -> Iterator[None]:
        """Counts the work of what is done inside as work of completion."""
        before = self._dataflow.work
        yield
        self.work += self._dataflow.work - before

    def complete_everything(self) -> None:
        """Find all missing combinations of all join states, from the bottom of the tree to the top."""
        with self._counted():
            self._complete_everything()

    def _complete_everything(self) -> None:
        for name, join_state in self._dataflow.join_states.items():
            if join_state.check_missing():
                completion = self._dataflow.completion_paths.for_everything(name)
                assert join_state.missing is not None
                self._add(join_state, completion, join_state.missing.older_rows(completion.base.alias))

    def complete_for_new_rows(self, new_rows: Callable[[str], list[Combinations]]) -> None:
        """Find what new rows need in their first join; `new_rows` returns those of a stream.

        First all rows that need completing are collected, from the top of the tree to the bottom, so that rows needed
        at one join are known to the join below in time. Then each join adds its missing combinations, once.
        """
        with self._counted():
            self._complete_for_new_rows(new_rows)

    def _complete_for_new_rows(self, new_rows: Callable[[str], list[Combinations]]) -> None:
        needed: list[tuple[JoinOperator, Words]] = []
        needed_above: dict[int, list[Combinations]] = {}
        for alias, join in reversed(self._first_joins):
            join_state, completion = _completed_by(join)
            if not join_state.check_missing():
                continue
            ids = _needed_rows(join_state, completion, [*new_rows(alias), *needed_above.pop(id(join), ())])
            if len(ids):
                needed.append((join, ids))
                rows = rows_with(completion.base, ids, join_state.horizon)
                needed_above.setdefault(id(completion.path[0]), []).append(rows)
        for join, ids in reversed(needed):
            self._add(*_completed_by(join), ids, first_is_complete=True)

    def complete_for(self, join: JoinOperator, probing: Combinations) -> None:
        """Find the missing combinations that these probing combinations need in a join."""
        if join.join_state is not None:
            with self._counted():
                self._complete_for(join, probing)

    def _complete_for(self, join: JoinOperator, probing: Combinations) -> None:
        if join.join_state is not None and len(probing) and join.join_state.check_missing():
            join_state, completion = _completed_by(join)
            self._add(join_state, completion, _needed_rows(join_state, completion, [probing]))

    def _add(self, join_state: JoinState, completion: Completion, ids: Words, first_is_complete: bool = False) -> None:
        """Add all older combinations of some rows.

        `first_is_complete` says that the first join on their path is complete for them already.
        """
        missing, alias = join_state.missing, completion.base.alias
        if missing is None:
            return
        ids = missing.not_attempted(alias, ids)
        for first in range(0, len(ids), HEADS_AT_ONCE):
            rows = rows_with(completion.base, ids[first : first + HEADS_AT_ONCE], join_state.horizon)
            if self._parts is not None and self._parts.key_stream([alias]) is not None:
                rows = self._parts.within(rows, alias, self._part)
            for combinations in self._along(completion.path, rows, missing.before, first_is_complete):
                join_state.add_older(missing.not_added(combinations))
        missing.attempt(alias, ids)

    def _along(
        self,
        path: Sequence[JoinOperator],
        rows: Combinations,
        before: Mapping[str, int],
        first_is_complete: bool = False,
    ) -> Iterator[Combinations]:
        """The combinations of some rows through all joins of a path."""
        if not path:
            yield rows
            return
        if not first_is_complete:
            self._complete_for(path[0], rows)
        matcher = path[0].matcher
        for matches in matcher.matches_of(rows, matcher.limit(before)):
            yield from self._along(path[1:], matches, before)


def _completed_by(join: JoinOperator) -> tuple[JoinState, Completion]:
    """The join state that a join probes, and how to complete it."""
    assert join.join_state is not None and join.completion is not None
    return join.join_state, join.completion


def _needed_rows(join_state: JoinState, completion: Completion, probing: Iterable[Combinations]) -> Words:
    """The distinct rows, not attempted yet, whose combinations the probing ones need."""
    missing, alias, finder = join_state.missing, completion.base.alias, completion.finder
    assert missing is not None
    probing = [rows for rows in probing if len(rows)]
    if not probing:
        return np.empty(0, np.int64)
    if finder is None:
        return missing.not_attempted(alias, missing.older_rows(alias))
    matches = (piece for rows in probing for piece in finder.matches_of(rows, missing.before[alias]))
    return _distinct(missing.not_attempted(alias, piece.ids) for piece in matches)


def _distinct(pieces: Iterable[Words]) -> Words:
    """The distinct ids of some pieces; never holds many more ids than that."""
    collected, size, most = [np.empty(0, np.int64)], 0, MOST_COLLECTED
    for ids in pieces:
        # A piece may lie in a buffer that the next piece will overwrite.
        collected.append(ids.copy())
        size += len(ids)
        if size > most:
            collected = [np.unique(np.concatenate(collected))]
            size = len(collected[0])
            most = max(most, 2 * size)
    return np.unique(np.concatenate(collected))
