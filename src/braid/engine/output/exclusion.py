"""Exclusions (NOT EXISTS, EXCEPT): keep the results of a join that no row of an excluded stream matches.

Exclusions come after the last join, so they do not depend on the plan. A result of the joins is a *candidate*: a row
with the columns of the result, the columns that exclusions compare, and its event time. A candidate waits until the
watermarks of the excluded streams have passed its event time: then all excluded rows that were alive at that time are
known. It is then decided: it probes the windows of the excluded streams like a head that is alive only at its event
time, and becomes a result if nothing matches.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import pyarrow as pa

from braid.engine.arrays.columns import Flags, State
from braid.engine.arrays.jit import Words
from braid.engine.input.inlet import Inlet
from braid.engine.input.lifetime import event_times
from braid.engine.join.combinations import Base, heads
from braid.engine.join.matcher import PIECE
from braid.engine.join.matcher_builder import MatcherBuilder
from braid.engine.join.sides import Sides
from braid.engine.segment import Segment, no_rows
from braid.model.expressions.expression import Column, map_columns
from braid.model.output import Star
from braid.model.predicate import Predicate
from braid.model.program import SiteProgram, keep_windows
from braid.model.query import Exclusion, Query, Source
from braid.model.stream import Stream
from braid.model.window import FOREVER, Now

TIME = "time"
"""The name of the last column of a candidate, its event time. The names of the others are their positions."""


class ExclusionFilter:
    """Takes in candidates, and returns those that no row excludes as soon as that is certain.

    The argument `results` is the schema of candidates: first the columns of the result, then those that exclusions
    compare (`query.compared`), last the event time. `timed` says whether results show their event time. The attribute
    `results` is the schema of what is returned.
    """

    def __init__(self, query: Query, results: pa.Schema, *, timed: bool, hash_bits: int) -> None:
        names = [*(str(position) for position in range(len(results) - 1)), TIME]
        self.schema = pa.schema([field.with_name(name) for name, field in zip(names, results, strict=True)])
        self._shown = [*range(len(query.selected)), *([len(results) - 1] if timed else [])]
        self.results = pa.schema([results.field(position) for position in self._shown])
        compared = dict(zip(query.compared, names[len(query.selected) :], strict=False))
        self._tests = {
            exclusion.source.alias: _Test(exclusion, compared, self.schema, hash_bits) for exclusion in query.exclusions
        }
        self.inlets: Mapping[str, Inlet] = {alias: test.inlet for alias, test in self._tests.items()}
        self._waiting = no_rows(self.schema)
        self._reported = 0
        """How many of the waiting candidates, from the first, `newly_waiting` has returned before."""
        self._released = -FOREVER
        """Candidates with event times before this are decided: the lowest watermark of the excluded streams."""
        self._horizon = -FOREVER
        """No candidate with an event time before this will come any more."""

    @property
    def movable(self) -> bool:
        """Whether `state` is complete. A window that counts rows must be rebuilt from its segments."""
        return not any(inlet.source.window.counts_rows for inlet in self.inlets.values())

    @property
    def waiting(self) -> int:
        """The number of candidates that wait."""
        return int(self._waiting.num_rows)

    def step(
        self, segments: Iterable[Segment], candidates: Iterable[pa.RecordBatch], horizon: int
    ) -> list[pa.RecordBatch]:
        """Take in segments of the excluded streams, and candidates; returns results.

        From now on no candidate with an event time before `horizon` will come.
        """
        self._receive(segments)
        self._horizon = horizon
        new = [pa.RecordBatch.from_arrays(batch.columns, schema=self.schema) for batch in candidates]
        if new:
            self._waiting = pa.concat_batches([self._waiting, *new])
        ready = self._take_ready()
        for test in self._tests.values():
            if ready.num_rows:
                matched = test.matched(ready, _times(ready))
                ready = ready.filter(pa.array(~matched)) if matched.any() else ready
        if not ready.num_rows:
            return []
        columns = [ready.column(position) for position in self._shown]
        return [pa.RecordBatch.from_arrays(columns, schema=self.results)]

    def _take_ready(self) -> pa.RecordBatch:
        """The candidates that can be decided now; they no longer wait."""
        is_ready = _times(self._waiting) < self._released
        if not is_ready.any():
            return no_rows(self.schema)
        ready, still_waits = self._waiting.filter(pa.array(is_ready)), ~is_ready
        self._reported = int(still_waits[: self._reported].sum())
        self._waiting = self._waiting.filter(pa.array(still_waits))
        return ready

    def restore(self, segments: Iterable[Segment]) -> None:
        """Take in segments of the excluded streams, but decide nothing."""
        self._receive(segments)

    def wait(self, candidates: pa.RecordBatch) -> None:
        """Take back candidates of `newly_waiting`; those that have been decided since are dropped."""
        undecided = pa.array(_times(candidates) >= self._released)
        self._waiting = pa.concat_batches([self._waiting, candidates.filter(undecided)])
        self._reported = self.waiting

    def newly_waiting(self) -> pa.RecordBatch:
        """The candidates that have come since the last call and still wait."""
        new = self._waiting.slice(self._reported)
        self._reported = self.waiting
        return new

    def _receive(self, segments: Iterable[Segment]) -> None:
        """New excluded rows enter their windows, after expired ones have left them."""
        for segment in segments:
            for inlet in self.inlets.values():
                if inlet.declaration.name == segment.stream:
                    inlet.receive(segment)
        # New candidates may be as old as the horizon of the last step, waiting ones as old as `_released`.
        needed = min(self._horizon, self._released)
        for inlet in self.inlets.values():
            # Rows can be counted only up to the watermark.
            inlet.enter(needed, inlet.watermark if inlet.source.window.counts_rows else None)
        self._released = min(inlet.watermark for inlet in self.inlets.values())

    def state(self) -> State:
        return {
            "streams": {alias: inlet.state() for alias, inlet in self.inlets.items()},
            "waiting": list(self._waiting.columns) if self.waiting else [],
            "reported": self._reported,
            "released": self._released,
            "horizon": self._horizon,
        }

    def load(self, state: State) -> None:
        for alias, inlet in self.inlets.items():
            inlet.load(state["streams"][alias])
        columns = state["waiting"]
        self._waiting = pa.RecordBatch.from_arrays(columns, schema=self.schema) if columns else no_rows(self.schema)
        self._reported, self._released, self._horizon = state["reported"], state["released"], state["horizon"]


class _Test:
    """One exclusion: a join of candidates with the excluded stream that only asks whether there is a match."""

    def __init__(self, exclusion: Exclusion, compared: Mapping[Column, str], schema: pa.Schema, hash_bits: int) -> None:
        alias = exclusion.source.alias
        candidates = f"candidates for {alias}"
        query = Query(
            "",
            (Source(candidates, candidates, Now(), Stream(candidates, schema, TIME)), exclusion.source),
            (Star(None),),
            tuple(_read_from_candidates(predicate, candidates, compared) for predicate in exclusion.predicates),
        )
        # Not a lowered plan: a test has two windows and one probe, so there is nothing to plan.
        sides = Sides(SiteProgram(query, tuple(keep_windows(query))), hash_bits)
        self.inlet = sides.inlets[alias]
        self._candidates = sides.inlets[candidates]
        self._base: Base = sides.bases[candidates]
        self._matcher = MatcherBuilder(sides).for_streams(candidates, alias)

    def matched(self, rows: pa.RecordBatch, times: Words) -> Flags:
        """Which candidates match an excluded row that is alive at their event time."""
        has_match = np.zeros(rows.num_rows, np.bool_)
        # Candidates that are not admitted (a null key, a condition on candidates alone) match nothing.
        admitted, positions = self._candidates.admission.admit(rows, times, times + 1)
        window = self._candidates.window
        first = window.append(admitted)
        for begin in range(first, window.next_id, PIECE):
            probing = heads(self._base, begin, min(begin + PIECE, window.next_id))
            matched = self._matcher.having_match(probing, self.inlet.window.next_id)
            has_match[positions[matched.ids - first]] = True
        window.forget(FOREVER)
        return has_match


def _read_from_candidates(predicate: Predicate, candidates: str, compared: Mapping[Column, str]) -> Predicate:
    """A condition that reads the columns of joined streams from candidates instead."""

    def replace(column: Column) -> Column:
        return Column(candidates, compared[column]) if column in compared else column

    return Predicate(map_columns(predicate.expression, replace))


def _times(rows: pa.RecordBatch) -> Words:
    return event_times(rows.column(TIME))
