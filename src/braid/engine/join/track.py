"""One plan at work: takes new rows along the joins of its lanes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa

from braid.engine.join.combinations import Combinations, heads
from braid.engine.join.completion import HEADS_AT_ONCE
from braid.engine.join.lanes import Lane, Lanes, StateKey
from braid.engine.join.operators import EmitOperator, JoinOperator, PassOperator
from braid.engine.join.parts import NewRows
from braid.engine.join.trial import Trial
from braid.engine.window.join_state import JoinState
from braid.engine.window.window_state import Renaming


class Track:
    """Runs the joins of a plan.

    If `until` is given (a row id for each stream), it emits only combinations with at least one row below it: the newer
    track of another plan emits the others.
    """

    def __init__(self, lanes: Lanes) -> None:
        self.lanes = lanes
        self.uses_prefilter = True
        """Whether heads of long sequences are dropped early if a later window has no candidate for them."""
        self.until: dict[str, int] | None = None
        self.trial: Trial | None = None
        """Divides the new rows between the lanes of this plan and those of an earlier plan, if there is a trial."""

    def is_over(self) -> bool:
        """Whether all rows below `until` have left their windows."""
        inlets = self.lanes.inlets
        return self.until is not None and all(inlets[alias].window.tail >= self.until[alias] for alias in inlets)

    @property
    def join_states(self) -> dict[StateKey, JoinState]:
        """The join states, by the keys that they have and the sources that they combine."""
        return self.lanes.join_states

    def complete_everything(self) -> None:
        """Find all missing combinations of all join states."""
        for lane in self.lanes.all:
            lane.completer.complete_everything()

    def see_from(self, since: Mapping[str, int]) -> None:
        """Ignore rows below these ids, and take all join states for complete."""
        for join in self.lanes.join_operators:
            join.matcher.since = since.get(join.matcher.name, 0)
        for join_state in self.join_states.values():
            join_state.missing = None

    def rename(self, alias: str, renaming: Renaming) -> None:
        """The rows of a stream have got new ids."""
        if self.until is not None:
            self.until[alias] = renaming.bound(self.until[alias])
        for join_state in self.join_states.values():
            join_state.rename(alias, renaming)
        for join in self.lanes.join_operators:
            if join.matcher.name == alias and join.matcher.since:
                join.matcher.since = renaming.bound(join.matcher.since)

    def step(self, first_new: Mapping[str, int]) -> Iterator[pa.RecordBatch]:
        """The results of new rows: of each stream, those from the id in `first_new` on."""
        if self.trial is not None:
            yield from self._try_out(self.trial, first_new)
        else:
            new_rows = self.lanes.new_rows(first_new)
            for lane in self.lanes.all:
                yield from self._step(lane, new_rows)
        for lanes in self.all_lanes:
            for lane in lanes.all:
                for emitter in lane.dataflow.emitters:
                    yield from emitter.flush()

    @property
    def all_lanes(self) -> tuple[Lanes, ...]:
        """The lanes of the plan, and during a trial also those of the earlier plan."""
        return (self.lanes,) if self.trial is None else (self.lanes, self.trial.old)

    def _step(self, lane: Lane, new_rows: NewRows) -> Iterator[pa.RecordBatch]:
        """The results of new rows in one lane.

        Streams take their new rows along one after the other, in the order of the dataflow. A row sees the new rows of
        streams before its own, but only the old rows of streams after it. So each combination is found once, by the
        last of its rows in this order. New combinations of a join state take their turn like the rows of a stream.
        """
        dataflow, limits = lane.dataflow, dict(new_rows.first)
        lane.completer.complete_for_new_rows(lambda alias: list(new_rows.of_part(alias, lane.part, HEADS_AT_ONCE)))
        for name in dataflow.order:
            join_state = dataflow.join_states.get(name)
            if join_state is None:
                for rows in new_rows.of_part(name, lane.part, HEADS_AT_ONCE):
                    yield from self._follow(lane, name, rows, limits)
                limits[name] = dataflow.bases[name].window.next_id
            else:
                for first, last in join_state.take_new():
                    for begin in range(first, last, HEADS_AT_ONCE):
                        rows = heads(join_state, begin, min(begin + HEADS_AT_ONCE, last))
                        yield from self._follow(lane, name, rows, limits)

    def _try_out(self, trial: Trial, first_new: Mapping[str, int]) -> Iterator[pa.RecordBatch]:
        """The results of new rows that are divided between two plans of probe sequences.

        Both plans process the streams in the same order, so that each head may go along either of them.
        """
        limits = dict(first_new)
        new_rows = {lanes: lanes.new_rows(first_new) for lanes in self.all_lanes}
        for alias in self.lanes.rest.order:
            last = self.lanes.bases[alias].window.next_id
            if trial.concerns(alias):
                for piece in trial.divide(alias, first_new[alias], last):
                    for lane in piece.lanes.all:
                        rows = new_rows[piece.lanes].chosen(alias, lane.part, piece.ids)
                        yield from self._follow(lane, alias, rows, limits, piece.emits)
            else:
                for lane in self.lanes.all:
                    for rows in new_rows[self.lanes].of_part(alias, lane.part, HEADS_AT_ONCE):
                        yield from self._follow(lane, alias, rows, limits)
            limits[alias] = last

    def _follow(
        self, lane: Lane, name: str, rows: Combinations, limits: Mapping[str, int], emits: bool = True
    ) -> Iterator[pa.RecordBatch]:
        """Take combinations of a stream through all its operators, until they are emitted or added to a join state."""
        if not len(rows):
            return
        dataflow = lane.dataflow
        for operator in dataflow.operators[name]:
            if isinstance(operator, JoinOperator):
                if name not in dataflow.inlets:
                    lane.completer.complete_for(operator, rows)
                for matches in self._matches(operator, rows, limits):
                    own_matches = lane.own(name, operator.matcher.name, matches)
                    yield from self._follow(lane, operator.result, own_matches, limits, emits)
            elif isinstance(operator, PassOperator):
                if operator.join_state is None:
                    yield from self._follow(lane, operator.result, rows, limits, emits)
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
