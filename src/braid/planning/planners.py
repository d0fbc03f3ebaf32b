"""The planners by name, under one protocol."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from braid.errors import PlanningError, did_you_mean
from braid.planning.cluster.bottom_up import BottomUp
from braid.planning.cluster.npc import NetPresentCost
from braid.planning.cluster.top_down import TopDown
from braid.planning.deployment import Deployment
from braid.planning.order.best_sequences import BestSequences
from braid.planning.order.exact import Exact
from braid.planning.order.exhaustive import Exhaustive
from braid.planning.order.greedy import Greedy
from braid.planning.order.left_deep import LeftDeep
from braid.planning.order.stream_join_opt import Local, Simple, StreamJoinOpt
from braid.planning.partition.pmjoin import PMJoin
from braid.planning.place.in_network import InNetwork
from braid.planning.place.phased import Phased
from braid.planning.place.relaxation import Relaxation
from braid.planning.problem import Problem
from braid.planning.solution.solution import Solution


@runtime_checkable
class Planner(Protocol):
    """Turns a problem into a solution: always the same one for the same problem, within its deadline or not at all."""

    @property
    def name(self) -> str: ...

    def plan(self, problem: Problem) -> Solution: ...


ALL: tuple[Planner, ...] = (
    Exact(),
    Exhaustive(),
    TopDown(),
    BottomUp(),
    NetPresentCost(),
    Greedy(),
    BestSequences(),
    StreamJoinOpt(),
    Simple(),
    Local(),
    LeftDeep(),
    Exact("optimal"),
    PMJoin(),
    Phased(),
    Relaxation(),
    InNetwork(),
)

PLANNERS: dict[str, Planner] = {planner.name: planner for planner in ALL}
"""Every planner with its usual settings."""


def planner_of(given: str | Planner) -> Planner:
    """A planner by its name, or itself."""
    if isinstance(given, type) or not isinstance(given, str | Planner):
        raise PlanningError(f"a planner is one by name, such as 'exact', or one such as TopDown(), not {given!r:.80}")
    if not isinstance(given, str):
        return given
    if given not in PLANNERS:
        raise PlanningError(f"there is no planner '{given}'; {did_you_mean(given, PLANNERS)}")
    return PLANNERS[given]


def solve(problem: Problem, planner: str | Planner) -> Deployment:
    """What a planner makes of a problem."""
    chosen = planner_of(planner)
    problem.deadline.check()
    return Deployment(chosen.name, chosen.plan(problem))
