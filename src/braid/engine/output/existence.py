"""Existence tests (EXISTS, IN, EXCEPT): keep the results that a row of another stream matches, or that none does.

Tests come after the last join, so they do not depend on the plan. The joins give rows: the columns of the result, the
columns that tests compare, and the event time. Such a result waits until the watermarks of the tested streams have
passed its event time. Then all tested rows that were alive at that time are known, and the result is decided: it probes
the windows of the tested streams like a head that is alive only at its event time.
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
from braid.engine.output.waiting import TIME, WaitingRows
from braid.engine.segment import Segment, no_rows
from braid.model.expressions.expression import Column, map_columns
from braid.model.output import Star
from braid.model.predicate import Predicate
from braid.model.program import SiteProgram, keep_windows
from braid.model.query import Existence, Query, Source
from braid.model.stream import Stream
from braid.model.window import FOREVER, Now

WAITING = ""
"""The name of the log of waiting results. No stream can have this name."""


class ExistenceFilter:
    """Takes in results of the joins, and returns those that pass all tests, as soon as they are decided.

    `rows` is their schema: first the columns of the result, then those that tests compare (`query.compared`), last the
    event time.
    """

    def __init__(self, query: Query, rows: pa.Schema, *, hash_bits: int) -> None:
        names = [*(str(position) for position in range(len(rows) - 1)), TIME]
        self.schema = pa.schema([field.with_name(name) for name, field in zip(names, rows, strict=True)])
        compared = dict(zip(query.compared, names[len(query.selected) :], strict=False))
        self._tests = {
            existence.source.alias: _Test(existence, compared, self.schema, hash_bits) for existence in query.existences
        }
        self.inlets: Mapping[str, Inlet] = {alias: test.inlet for alias, test in self._tests.items()}
        self._waiting = no_rows(self.schema)
        self._reported = 0
        """`newly_waiting` has returned this many of the waiting results before, counted from the first."""
        self._released = -FOREVER
        """Results with event times before this are decided: the lowest watermark of the tested streams."""
        self._horizon = -FOREVER
        """No result with an event time before this will come any more."""

    @property
    def movable(self) -> bool:
        """Whether `state` is complete. A window that counts rows must be rebuilt from its segments."""
        return not any(inlet.source.window.counts_rows for inlet in self.inlets.values())

    @property
    def waiting(self) -> int:
        """The number of results that wait."""
        return int(self._waiting.num_rows)

    def step(
        self, segments: Iterable[Segment], results: Iterable[pa.RecordBatch], horizon: int
    ) -> list[pa.RecordBatch]:
        """Take in segments of the tested streams, and results of the joins; returns those that pass.

        After this step, no more results with an event time before `horizon` come.
        """
        self._receive(segments)
        self._horizon = horizon
        new = [pa.RecordBatch.from_arrays(batch.columns, schema=self.schema) for batch in results]
        if new:
            self._waiting = pa.concat_batches([self._waiting, *new])
        ready = self._take_ready()
        for test in self._tests.values():
            if ready.num_rows:
                passing = test.passing(ready, _times(ready))
                ready = ready if passing.all() else ready.filter(pa.array(passing))
        return [ready] if ready.num_rows else []

    def _take_ready(self) -> pa.RecordBatch:
        """The results that can be decided now; they no longer wait."""
        is_ready = _times(self._waiting) < self._released
        if not is_ready.any():
            return no_rows(self.schema)
        ready, still_waits = self._waiting.filter(pa.array(is_ready)), ~is_ready
        self._reported = int(still_waits[: self._reported].sum())
        self._waiting = self._waiting.filter(pa.array(still_waits))
        return ready

    def restore(self, segments: Iterable[Segment]) -> None:
        """Take in segments of the tested streams, but decide nothing."""
        self._receive(segments)

    def wait(self, logs: Mapping[str, Iterable[pa.RecordBatch]]) -> None:
        """Take back the results of `newly_waiting`; those that have been decided since are dropped."""
        for results in logs.get(WAITING, ()):
            undecided = pa.array(_times(results) >= self._released)
            self._waiting = pa.concat_batches([self._waiting, results.filter(undecided)])
        self._reported = self.waiting

    def newly_waiting(self) -> WaitingRows:
        """The results that have come since the last call and still wait."""
        new = self._waiting.slice(self._reported)
        self._reported = self.waiting
        return WaitingRows(WAITING, new, TIME, self._released)

    def _receive(self, segments: Iterable[Segment]) -> None:
        """New rows of tested streams enter their windows, after expired ones have left them."""
        for segment in segments:
            for inlet in self.inlets.values():
                if inlet.declaration.name == segment.stream:
                    inlet.receive(segment)
        # New results may be as old as the horizon of the last step, waiting ones as old as `_released`.
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
    """One existence test: a join of results with the tested stream that only asks whether there is a match."""

    def __init__(self, existence: Existence, compared: Mapping[Column, str], schema: pa.Schema, hash_bits: int) -> None:
        self._negated = existence.negated
        alias = existence.source.alias
        results = f"results for {alias}"
        query = Query(
            "",
            (Source(results, results, Now(), Stream(results, schema, TIME)), existence.source),
            (Star(None),),
            tuple(_read_from_results(predicate, results, compared) for predicate in existence.predicates),
        )
        # Not a lowered plan: a test has two windows and one probe, so there is nothing to plan.
        sides = Sides(SiteProgram(query, tuple(keep_windows(query))), hash_bits)
        self.inlet = sides.inlets[alias]
        self._results = sides.inlets[results]
        self._base: Base = sides.bases[results]
        self._matcher = MatcherBuilder(sides).for_streams(results, alias)

    def passing(self, rows: pa.RecordBatch, times: Words) -> Flags:
        """Which results pass the test: those with a match alive at their event time or, if negated, those without."""
        has_match = np.zeros(rows.num_rows, np.bool_)
        # Results that are not admitted (a null key, a condition on results alone) match nothing.
        admitted, positions = self._results.admission.admit(rows, times, times + 1)
        window = self._results.window
        first = window.append(admitted)
        for begin in range(first, window.next_id, PIECE):
            probing = heads(self._base, begin, min(begin + PIECE, window.next_id))
            matched = self._matcher.having_match(probing, self.inlet.window.next_id)
            has_match[positions[matched.ids - first]] = True
        window.forget(FOREVER)
        return ~has_match if self._negated else has_match


def _read_from_results(predicate: Predicate, results: str, compared: Mapping[Column, str]) -> Predicate:
    """A condition that reads the columns of joined streams from results instead."""

    def replace(column: Column) -> Column:
        return Column(results, compared[column]) if column in compared else column

    return Predicate(map_columns(predicate.expression, replace))


def _times(rows: pa.RecordBatch) -> Words:
    return event_times(rows.column(TIME))
