"""What a transition strategy is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from braid.engine.join.lanes import StateKey
from braid.engine.join.track import Track
from braid.engine.window.join_state import JoinState
from braid.model.plan import Plan

BuildTrack = Callable[[Mapping[StateKey, JoinState]], Track]
"""Builds a track for the new plan, which takes over those of the given join states that the new plan has, too."""

Transition = Callable[[list[Track], BuildTrack], list[Track]]
"""Maps the running tracks, newest last (none at the start), to the tracks that run from now on."""


@dataclass(frozen=True, slots=True)
class Strategy:
    """A named way from one plan to another while rows keep coming."""

    name: str
    transition: Transition
    keeps_join_states: bool = True

    def plan(self, plan: Plan) -> Plan:
        """A plan as this strategy runs it: without join states, if the strategy keeps none."""
        return plan if self.keeps_join_states else plan.without_join_states()


def reusable(running: list[Track]) -> Mapping[StateKey, JoinState]:
    """The join states of the plan in use; none if no plan runs, or if several run side by side."""
    return running[-1].join_states if len(running) == 1 else {}
