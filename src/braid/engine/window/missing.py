"""Which combinations are missing from a join state, because their rows came before the state existed."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from braid.engine.arrays.columns import Flags, State
from braid.engine.arrays.jit import Words
from braid.engine.arrays.ring import rows_below
from braid.engine.join.combinations import Combinations
from braid.engine.window.window_state import Renaming, WindowState


class Missing:
    """What may be missing from a join state: combinations of older rows only.

    A row is *older* if its id is below `before`: it came before the join state existed. Combinations with a newer row
    are found as new rows probe. All older combinations of a row are added at once, and the row is then *attempted*. So
    an older combination with an attempted row, of any stream, is in the join state already.
    """

    def __init__(self, windows: Mapping[str, WindowState]) -> None:
        self._windows = windows
        self.before = {alias: window.next_id for alias, window in windows.items()}
        self._first = {alias: window.tail for alias, window in windows.items()}
        self._attempted: dict[str, Flags] = {}
        """For each stream with attempted rows, a flag for each older row, from the id `_first` on."""
        self._remaining = {alias: len(window) for alias, window in windows.items()}

    def is_over(self) -> bool:
        """Whether nothing is missing: all older rows of one stream have been attempted, or have left its window."""
        return any(
            self._remaining[alias] == 0 or window.tail >= self.before[alias] for alias, window in self._windows.items()
        )

    def older_rows(self, alias: str) -> Words:
        """The older rows of a stream that are still in its window."""
        return np.arange(self._windows[alias].tail, self.before[alias])

    def not_attempted(self, alias: str, ids: Words) -> Words:
        """Of these older rows of a stream, those that have not been attempted."""
        attempted = self._attempted.get(alias)
        return ids if attempted is None else ids[~attempted[ids - self._first[alias]]]

    def attempt(self, alias: str, ids: Words) -> None:
        """Mark distinct rows, not attempted before, as attempted: all their older combinations have been added."""
        if alias not in self._attempted:
            self._attempted[alias] = np.zeros(self.before[alias] - self._first[alias], np.bool_)
        self._attempted[alias][ids - self._first[alias]] = True
        self._remaining[alias] -= len(ids)

    def not_added(self, combinations: Combinations) -> Combinations:
        """Of these combinations, those of older rows only that have not been added yet."""
        columns = {alias: column for column, alias in enumerate(self.before)}
        row_ids = combinations.row_ids(columns)
        chosen = rows_below(row_ids, np.array(list(self.before.values())))
        for alias, attempted in self._attempted.items():
            chosen = chosen[~attempted[row_ids[chosen, columns[alias]] - self._first[alias]]]
        return combinations if len(chosen) == len(combinations) else combinations.take(chosen)

    def rename(self, alias: str, renaming: Renaming) -> None:
        """The rows of a stream have got new ids."""
        older = renaming.old_ids[renaming.old_ids < self.before[alias]]
        if alias in self._attempted:
            self._attempted[alias] = self._attempted[alias][older - self._first[alias]]
            self._remaining[alias] = int(len(older) - self._attempted[alias].sum())
        else:
            self._remaining[alias] = len(older)
        self.before[alias] = renaming.bound(self.before[alias])
        self._first[alias] = renaming.first

    def state(self) -> State:
        return {
            "before": dict(self.before),
            "first": dict(self._first),
            "attempted": dict(self._attempted),
            "remaining": dict(self._remaining),
        }

    def load(self, state: State) -> None:
        self.before, self._first = dict(state["before"]), dict(state["first"])
        self._attempted, self._remaining = dict(state["attempted"]), dict(state["remaining"])
