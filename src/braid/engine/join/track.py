"""One plan at work: takes new rows along the joins of a dataflow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa

from braid.engine.join.combinations import Base, Combinations, Side, heads, rows_with
from braid.engine.join.completion import HEADS_AT_ONCE, Completer
from braid.engine.join.dataflow import Dataflow
from braid.engine.join.guards import passing
from braid.engine.join.operators import EmitOperator, JoinOperator, PassOperator
from braid.engine.join.trial import Trial
from braid.engine.window.join_state import JoinState
from braid.engine.window.window_state import Renaming
from braid.model.program import ALWAYS, Guard
from braid.model.window import FOREVER


class Track:
    """Runs the joins of a dataflow.

    If `until` is given (a row id for each stream), it emits only combinations with at least one row below it: the newer
    track of another plan emits the others.
    """

    def __init__(self, dataflow: Dataflow) -> None:
        self.dataflow = dataflow
        self.completer = Completer(dataflow)
        self.uses_prefilter = True
        """Whether heads of long sequences are dropped early if a later window has no candidate for them."""
        self.until: dict[str, int] | None = None
        self.trial: Trial | None = None
        """Divides the new rows between this dataflow and that of an earlier plan, if there is a trial."""

    def is_over(self) -> bool:
        """Whether all rows below `until` have left their windows."""
        inlets = self.dataflow.inlets
        return self.until is not None and all(inlets[alias].window.tail >= self.until[alias] for alias in inlets)

    @property
    def join_states(self) -> dict[frozenset[str], JoinState]:
        """The join states, by the sources that they combine."""
        return {frozenset(join_state.aliases): join_state for join_state in self.dataflow.join_states.values()}

    def see_from(self, since: Mapping[str, int]) -> None:
        """Ignore rows below these ids, and take all join states for complete."""
        for _, join in self.dataflow.join_operators:
            join.matcher.since = since.get(join.matcher.name, 0)
        for join_state in self.dataflow.join_states.values():
            join_state.missing = None

    def rename(self, alias: str, renaming: Renaming) -> None:
        """The rows of a stream have got new ids."""
        if self.until is not None:
            self.until[alias] = renaming.bound(self.until[alias])
        for join_state in self.dataflow.join_states.values():
            join_state.rename(alias, renaming)
        for _, join in self.dataflow.join_operators:
            if join.matcher.name == alias and join.matcher.since:
                join.matcher.since = renaming.bound(join.matcher.since)

    def step(self, first_new: Mapping[str, int]) -> Iterator[pa.RecordBatch]:
        """The results of new rows: of each stream, those from the id in `first_new` on.

        Streams take their new rows along one after the other, in the order of the dataflow. A row sees the new rows of
        streams before its own, but only the old rows of streams after it. So each combination is found once, by the
        last of its rows in this order. New combinations of a join state take their turn like the rows of a stream.
        """
        self.completer.complete_for_new_rows(first_new)
        limits = dict(first_new)
        for name in self.dataflow.order:
            join_state = self.dataflow.join_states.get(name)
            if join_state is None:
                base = self.dataflow.bases[name]
                if self.trial is not None and self.trial.concerns(name):
                    yield from self._try_out(self.trial, base, limits[name], limits)
                else:
                    yield from self._follow_new(name, base, limits[name], base.window.next_id, limits)
                limits[name] = base.window.next_id
            else:
                for first, last in join_state.take_new():
                    yield from self._follow_new(name, join_state, first, last, limits)
        for dataflow in self.dataflows:
            for emitter in dataflow.emitters:
                yield from emitter.flush()

    @property
    def dataflows(self) -> tuple[Dataflow, ...]:
        """The dataflow of the plan, and during a trial also that of the earlier plan."""
        return (self.dataflow,) if self.trial is None else (self.dataflow, self.trial.old)

    def _try_out(self, trial: Trial, base: Base, first: int, limits: Mapping[str, int]) -> Iterator[pa.RecordBatch]:
        for piece in trial.divide(base.alias, first, base.window.next_id):
            results = self._follow(
                piece.dataflow, base.alias, rows_with(base, piece.ids, -FOREVER), limits, piece.emits
            )
            yield from results

    def _follow_new(
        self, name: str, side: Side, first: int, last: int, limits: Mapping[str, int]
    ) -> Iterator[pa.RecordBatch]:
        for begin in range(first, last, HEADS_AT_ONCE):
            rows = heads(side, begin, min(begin + HEADS_AT_ONCE, last))
            yield from self._follow(self.dataflow, name, rows, limits)

    def _follow(
        self, dataflow: Dataflow, name: str, rows: Combinations, limits: Mapping[str, int], emits: bool = True
    ) -> Iterator[pa.RecordBatch]:
        """Take combinations of a stream through all its operators, until they are emitted or added to a join state."""
        for operator in dataflow.operators[name]:
            if isinstance(operator, JoinOperator):
                if name not in dataflow.inlets:
                    self.completer.complete_for(operator, rows)
                for matches in self._matches(operator, self._guarded(rows, operator.guard), limits):
                    yield from self._follow(dataflow, operator.result, matches, limits, emits)
            elif isinstance(operator, PassOperator):
                if operator.join_state is None:
                    yield from self._follow(dataflow, operator.result, rows, limits, emits)
                else:
                    operator.join_state.add(rows)
            elif isinstance(operator, EmitOperator) and emits:
                yield from operator.emitter.add(self._emitted(rows))

    def _matches(self, join: JoinOperator, probing: Combinations, limits: Mapping[str, int]) -> Iterator[Combinations]:
        for matcher in join.prefilter if self.uses_prefilter else ():
            probing = matcher.having_candidate(probing, matcher.limit(limits))
        return join.matcher.matches_of(probing, join.matcher.limit(limits))

    def _emitted(self, rows: Combinations) -> Combinations:
        """The combinations that this track emits (see `until`)."""
        if self.until is None:
            return rows
        older = np.zeros(len(rows), np.bool_)
        for alias, _, ids in rows.by_stream():
            older |= ids < self.until[alias]
        return rows.take(np.flatnonzero(older))

    def _guarded(self, rows: Combinations, guard: Guard) -> Combinations:
        """The rows that a guard lets through."""
        if guard is ALWAYS:
            return rows
        class_number, key_position = None, None
        if guard.partitions is not None:
            (alias,) = rows.side.aliases
            class_number = self.dataflow.class_numbers[guard.partitions.attribute_class]
            key_position = self.dataflow.inlets[alias].admission.key_positions.get(class_number)
        return rows.take(np.flatnonzero(passing(rows, guard, class_number, key_position)))
