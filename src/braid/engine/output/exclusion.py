"""Set exclusion_filter: of the results of a join, those that no row of an excluded stream matches.

It comes after the last join, so that it knows nothing of plans, and plans nothing of it. A result is a row of its own
by then (a candidate), with the columns that are compared and its event time. Whether it stays is known once every row
of the excluded streams that may be alive at that time is there: when their watermarks have passed it. Until then it
waits. Then it probes the windows of the excluded streams, as the head of a join would that lives for its own moment.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import pyarrow as pa

from braid.engine.arrays.columns import Flags, State
from braid.engine.arrays.jit import Words
from braid.engine.input.inlet import Inlet
from braid.engine.input.lifetime import event_times
from braid.engine.join.combinations import Base, heads
from braid.engine.join.dataflow import Dataflow
from braid.engine.join.matcher import PIECE
from braid.engine.segment import Segment, no_rows
from braid.model.expressions.expression import Column, map_columns
from braid.model.output import Star
from braid.model.predicate import Predicate
from braid.model.program import Filter, Instruction, SiteProgram, Update
from braid.model.query import Exclusion, Query, Source
from braid.model.stream import Stream
from braid.model.window import FOREVER, Now

TIME = "time"
"""The last column of a candidate, its event time; the others are called by their places."""


class ExclusionFilter:
    """Candidates in, in order of arrival; those that stay out, as soon as that is certain.

    `results` is the schema of candidates: first the columns of the result, then those that exclusions compare
    (`query.compared`), last the event time. `timed` says whether results keep their event time.
    """

    def __init__(self, query: Query, results: pa.Schema, *, timed: bool, hash_bits: int) -> None:
        names = [*(str(place) for place in range(len(results) - 1)), TIME]
        self.schema = pa.schema([field.with_name(name) for name, field in zip(names, results, strict=True)])
        self._shown = [*range(len(query.selected)), *([len(results) - 1] if timed else [])]
        self.results = pa.schema([results.field(place) for place in self._shown])
        compared = dict(zip(query.compared, names[len(query.selected) :], strict=False))
        self._tests = {
            exclusion.source.alias: _Test(exclusion, compared, self.schema, hash_bits) for exclusion in query.exclusions
        }
        self.inlets: Mapping[str, Inlet] = {alias: test.inlet for alias, test in self._tests.items()}
        self._waiting = no_rows(self.schema)
        self._told = 0
        self._released = -FOREVER
        self._horizon = -FOREVER

    @property
    def movable(self) -> bool:
        """Whether `state` tells everything."""
        return not any(inlet.source.window.counts_rows for inlet in self.inlets.values())

    @property
    def waiting(self) -> int:
        """How many candidates wait."""
        return int(self._waiting.num_rows)

    def step(
        self, segments: Iterable[Segment], candidates: Iterable[pa.RecordBatch], horizon: int
    ) -> list[pa.RecordBatch]:
        """Take segments of the excluded streams, and candidates; from now on none will come from before `horizon`."""
        self._receive(segments)
        self._horizon = horizon
        named = [pa.RecordBatch.from_arrays(batch.columns, schema=self.schema) for batch in candidates]
        if named:
            self._waiting = pa.concat_batches([self._waiting, *named])
        times = _times(self._waiting)
        decided = times < self._released
        if not decided.any():
            return []
        ready, waits = self._waiting.filter(pa.array(decided)), ~decided
        self._told = int(waits[: self._told].sum())
        self._waiting = self._waiting.filter(pa.array(waits))
        for test in self._tests.values():
            matched = test.matched(ready, _times(ready))
            ready = ready.filter(pa.array(~matched)) if matched.any() else ready
        if not ready.num_rows:
            return []
        return [pa.RecordBatch.from_arrays([ready.column(place) for place in self._shown], schema=self.results)]

    def restore(self, segments: Iterable[Segment]) -> None:
        """Take segments in that candidates have been compared with before."""
        self._receive(segments)

    def wait(self, candidates: pa.RecordBatch) -> None:
        """Take candidates back that `newly_waiting` told of, as far as they have not been decided since."""
        undecided = pa.array(_times(candidates) >= self._released)
        self._waiting = pa.concat_batches([self._waiting, candidates.filter(undecided)])
        self._told = self.waiting

    def newly_waiting(self) -> pa.RecordBatch:
        """The candidates that have come since this was last asked and wait still."""
        fresh = self._waiting.slice(self._told)
        self._told = self.waiting
        return fresh

    def _receive(self, segments: Iterable[Segment]) -> None:
        """What comes enters its window, after what no candidate will look for any more has left it."""
        for segment in segments:
            for inlet in self.inlets.values():
                if inlet.declaration.name == segment.stream:
                    inlet.receive(segment)
        # Candidates of this step may start where the last one ended, and those that wait where it was decided.
        needed = min(self._horizon, self._released)
        for inlet in self.inlets.values():
            # Who is counted is known only up to the watermark.
            inlet.enter(needed, inlet.watermark if inlet.source.window.counts_rows else None)
        self._released = min(inlet.watermark for inlet in self.inlets.values())

    def state(self) -> State:
        return {
            "streams": {alias: inlet.state() for alias, inlet in self.inlets.items()},
            "waiting": list(self._waiting.columns) if self.waiting else [],
            "told": self._told,
            "released": self._released,
            "horizon": self._horizon,
        }

    def load(self, state: State) -> None:
        for alias, inlet in self.inlets.items():
            inlet.load(state["streams"][alias])
        columns = state["waiting"]
        self._waiting = pa.RecordBatch.from_arrays(columns, schema=self.schema) if columns else no_rows(self.schema)
        self._told, self._released, self._horizon = state["told"], state["released"], state["horizon"]


class _Test:
    """One NOT EXISTS: the window of the excluded stream, and what probes it."""

    def __init__(self, exclusion: Exclusion, compared: Mapping[Column, str], schema: pa.Schema, hash_bits: int) -> None:
        alias = exclusion.source.alias
        candidates = f"candidates for {alias}"
        query = Query(
            "",
            (Source(candidates, candidates, Now(), Stream(candidates, schema, TIME)), exclusion.source),
            (Star(None),),
            tuple(_of_candidates(predicate, candidates, compared) for predicate in exclusion.predicates),
        )
        dataflow = Dataflow(SiteProgram(query, tuple(_windows(query))), hash_bits)
        self.inlet = dataflow.inlets[alias]
        self._candidates = dataflow.inlets[candidates]
        self._base: Base = dataflow.bases[candidates]
        self._matcher = dataflow.probe(candidates, alias)

    def matched(self, rows: pa.RecordBatch, times: Words) -> Flags:
        """Which candidates some row matches that is alive at their time."""
        found = np.zeros(rows.num_rows, np.bool_)
        # What is not admitted, for a null key or a condition on candidates alone, nothing matches.
        admitted, places = self._candidates.admission.admit(rows, times, times + 1)
        window = self._candidates.window
        first = window.append(admitted)
        for begin in range(first, window.head, PIECE):
            probing = heads(self._base, begin, min(begin + PIECE, window.head))
            matched = self._matcher.having_match(probing, self.inlet.window.head)
            found[places[matched.ids - first]] = True
        window.forget(FOREVER)
        return found


def _of_candidates(predicate: Predicate, candidates: str, compared: Mapping[Column, str]) -> Predicate:
    """A condition with what it reads of the joined streams read of candidates."""

    def of_candidates(column: Column) -> Column:
        return Column(candidates, compared[column]) if column in compared else column

    return Predicate(map_columns(predicate.expression, of_candidates))


def _windows(query: Query) -> Iterator[Instruction]:
    for alias in query.aliases:
        yield from (Filter(alias, predicate) for predicate in query.graph.selections_of(alias))
        yield Update(alias)


def _times(rows: pa.RecordBatch) -> Words:
    return event_times(rows.column(TIME))
