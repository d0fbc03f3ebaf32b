"""The lanes of a plan: one dataflow for each part of the keys, all on the same windows.

A combination belongs to exactly one part, so no two lanes find the same combination, and each lane has an order of
processing of its own. Parts divide the keys of one attribute class. A row that has this key goes along the lane of its
part only. A row of a stream without this key goes along all lanes, and each lane drops the combinations of other parts
as soon as it has joined a stream with the key.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from braid.engine.counts import JoinCounts
from braid.engine.input.inlet import Inlet
from braid.engine.join.combinations import Base, Combinations
from braid.engine.join.completion import Completer
from braid.engine.join.dataflow import Dataflow
from braid.engine.join.operators import JoinOperator
from braid.engine.join.parts import KeyParts, NewRows, Share
from braid.engine.window.join_state import JoinState
from braid.model.program import SiteProgram

StateKey = tuple[Share, frozenset[str]]
"""Identifies a join state of a plan: the keys it is for, and the sources that it combines."""


@dataclass(frozen=True)
class Lane:
    """The joins of one part of the keys; `parts` is None if there is only one part."""

    dataflow: Dataflow
    completer: Completer
    share: Share
    part: int
    parts: KeyParts | None

    def own(self, probe: str, probed: str, matches: Combinations) -> Combinations:
        """The matches that belong to this lane. They are filtered if `probed` is the first stream with the key."""
        if self.parts is None:
            return matches
        members = self.dataflow.members
        key_stream = self.parts.key_stream(members[probed])
        if key_stream is None or self.parts.key_stream(members[probe]) is not None:
            return matches
        return self.parts.within(matches, key_stream, self.part)


class Lanes:
    """The lanes of a program. Lanes with the same keys as those of an earlier program take over its join states.

    The join state of all keys can also serve the lane of the keys without a partition, which never asks for others.
    """

    def __init__(
        self,
        program: SiteProgram,
        hash_bits: int,
        lifetime: Sequence[str] = (),
        inlets: Mapping[str, Inlet] | None = None,
        earlier: Mapping[StateKey, JoinState] | None = None,
    ) -> None:
        self.program = program
        partitions = tuple(partition for partition, _ in program.parts)
        share = Share(partitions)
        rest = Dataflow(program, hash_bits, lifetime, inlets, _reusable(earlier or {}, share))
        self.inlets: Mapping[str, Inlet] = rest.inlets
        self.bases: Mapping[str, Base] = rest.bases
        self.parts = KeyParts(partitions, rest.class_numbers, rest.inlets) if partitions else None
        lanes = [self._lane(rest, share, 0)]
        for part, (partition, part_program) in enumerate(program.parts, 1):
            share = Share((partition,), others=False)
            dataflow = Dataflow(part_program, hash_bits, lifetime, rest.inlets, _reusable(earlier or {}, share))
            lanes.append(self._lane(dataflow, share, part))
        self.all = tuple(lanes)

    def _lane(self, dataflow: Dataflow, share: Share, part: int) -> Lane:
        return Lane(dataflow, Completer(dataflow, self.parts, part), share, part, self.parts)

    @property
    def rest(self) -> Dataflow:
        """The dataflow of the keys that have no partition; of all keys, if there are no parts."""
        return self.all[0].dataflow

    @property
    def join_states(self) -> dict[StateKey, JoinState]:
        return {
            (lane.share, frozenset(join_state.aliases)): join_state
            for lane in self.all
            for join_state in lane.dataflow.join_states.values()
        }

    @property
    def named_join_states(self) -> dict[str, JoinState]:
        """The join states by names that are unique among all lanes."""
        return {
            f"{lane.part}:{name}" if lane.part else name: join_state
            for lane in self.all
            for name, join_state in lane.dataflow.join_states.items()
        }

    @property
    def join_operators(self) -> Iterator[JoinOperator]:
        for lane in self.all:
            for _, join in lane.dataflow.join_operators:
                yield join

    @property
    def work(self) -> int:
        """The work of all joins so far."""
        return sum(lane.dataflow.work for lane in self.all)

    @property
    def completion_work(self) -> int:
        """The part of `work` that completed join states after a plan change."""
        return sum(lane.completer.work for lane in self.all)

    def counts(self) -> Iterator[JoinCounts]:
        """What each join has counted so far."""
        for lane in self.all:
            yield from lane.dataflow.counts()

    def new_rows(self, first_new: Mapping[str, int]) -> NewRows:
        """The new rows of a step by the lanes that they go along."""
        return NewRows(self.bases, first_new, self.parts)


def _reusable(earlier: Mapping[StateKey, JoinState], share: Share) -> dict[frozenset[str], JoinState]:
    """The earlier join states that hold all combinations of these keys, by their sources.

    If there are two for the same sources, the one of exactly these keys is taken: it comes last.
    """
    exact_last: Iterable[StateKey] = sorted(earlier, key=lambda key: key[0] == share)
    usable = (key for key in exact_last if key[0] == share or (share.others and key[0].includes(share)))
    return {sources: earlier[keys, sources] for keys, sources in usable}
