"""One plan at work: new rows are taken along its joins, and what is missing of its kept combinations is found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa

from braid.engine.join.combinations import Combinations, Side, heads
from braid.engine.join.completion import HEADS_AT_ONCE, Completer
from braid.engine.join.dataflow import Dataflow, EmitStep, JoinStep, PassStep
from braid.engine.join.guards import passing
from braid.engine.window.join_state import JoinState
from braid.engine.window.window_state import Renaming
from braid.model.program import ALWAYS, Guard


class Track:
    """Runs the joins of a program, all of whose inlets and kept combinations the dataflow has.

    Of all combinations it finds, it emits those with at least one row below `until`, if that is given.
    """

    def __init__(self, dataflow: Dataflow) -> None:
        self.dataflow = dataflow
        self.completer = Completer(dataflow)
        self.looks_ahead = True
        """Whether rows are asked first if they have a match in every window of a long sequence."""
        self.until: dict[str, int] | None = None

    def is_over(self) -> bool:
        """Whether nothing is left of the rows that it alone looks after."""
        inlets = self.dataflow.inlets
        return self.until is not None and all(inlets[alias].window.tail >= self.until[alias] for alias in inlets)

    @property
    def kept(self) -> dict[frozenset[str], JoinState]:
        """What is kept, by the streams it is of."""
        return {frozenset(kept.aliases): kept for kept in self.dataflow.kept.values()}

    def see_from(self, since: Mapping[str, int]) -> None:
        """Look at no rows before these ids, and take all kept combinations for complete."""
        for steps in self.dataflow.steps.values():
            for step in steps:
                if isinstance(step, JoinStep):
                    step.matcher.since = since.get(step.matcher.name, 0)
        for kept in self.dataflow.kept.values():
            kept.missing = None

    def rename(self, alias: str, renaming: Renaming) -> None:
        """The rows of a stream have got new ids."""
        if self.until is not None:
            self.until[alias] = renaming.bound(self.until[alias])
        for kept in self.dataflow.kept.values():
            kept.rename(alias, renaming)
        for steps in self.dataflow.steps.values():
            for step in steps:
                if isinstance(step, JoinStep) and step.matcher.name == alias and step.matcher.since:
                    step.matcher.since = renaming.bound(step.matcher.since)

    def step(self, first_new: Mapping[str, int]) -> Iterator[pa.RecordBatch]:
        """Results of the rows that are new, those from an id on for each stream.

        What is new is taken along stream by stream, in the order of the dataflow: it sees what is new of those that
        were before it, and of those after it only what is old. So each combination is found once, by the last of its
        parts. New combinations that are kept take their turn as those of any other stream do, all at once.
        """
        self.completer.for_new_rows(first_new)
        limits = dict(first_new)
        for name in self.dataflow.order:
            kept = self.dataflow.kept.get(name)
            side: Side = self.dataflow.bases[name] if kept is None else kept
            for first, last in [(limits[name], side.window.head)] if kept is None else kept.take_new():
                for place in range(first, last, HEADS_AT_ONCE):
                    yield from self._follow(name, heads(side, place, min(place + HEADS_AT_ONCE, last)), limits)
            if kept is None:
                limits[name] = side.window.head
        for emitter in self.dataflow.emitters:
            yield from emitter.flush()

    def _follow(self, name: str, rows: Combinations, limits: Mapping[str, int]) -> Iterator[pa.RecordBatch]:
        """Take combinations along every instruction that reads the stream they belong to, until they are kept."""
        for step in self.dataflow.steps[name]:
            if isinstance(step, JoinStep):
                if name not in self.dataflow.inlets:
                    self.completer.ask(step, rows)
                for matches in self._matches(step, self._guarded(rows, step.guard), limits):
                    yield from self._follow(step.result, matches, limits)
            elif isinstance(step, PassStep):
                if step.kept is None:
                    yield from self._follow(step.result, rows, limits)
                else:
                    step.kept.add(rows)
            elif isinstance(step, EmitStep):
                yield from step.emitter.add(self._emitted(rows))

    def _matches(self, step: JoinStep, probing: Combinations, limits: Mapping[str, int]) -> Iterator[Combinations]:
        for matcher in step.prefilter if self.looks_ahead else ():
            probing = matcher.having_any(probing, matcher.limit(limits))
        return step.matcher.matches_of(probing, step.matcher.limit(limits))

    def _emitted(self, rows: Combinations) -> Combinations:
        if self.until is None:
            return rows
        older = np.zeros(len(rows), np.bool_)
        for alias, _, ids in rows.by_stream():
            older |= ids < self.until[alias]
        return rows.take(np.flatnonzero(older))

    def _guarded(self, rows: Combinations, guard: Guard) -> Combinations:
        if guard is ALWAYS:
            return rows
        number = None if guard.partitions is None else self.dataflow.numbers[guard.partitions.attribute_class]
        (alias,) = rows.side.aliases
        places = self.dataflow.inlets[alias].admission.key_places
        passed = passing(rows, guard, number, None if number is None else places.get(number))
        return rows.take(np.flatnonzero(passed))
