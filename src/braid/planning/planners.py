"""The `Planner` protocol, and all planners by name."""

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
from braid.planning.place.at_sink import AtSink
from braid.planning.place.in_network import InNetwork
from braid.planning.place.phased import Phased
from braid.planning.place.relaxation import Relaxation
from braid.planning.problem import Problem
from braid.planning.solution.solution import Solution


@runtime_checkable
class Planner(Protocol):
    """Turns a problem into a solution.

    The same problem always has the same solution. If the deadline passes, `plan` raises a `DeadlineError`.
    """

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
    AtSink(),
)

PLANNERS: dict[str, Planner] = {planner.name: planner for planner in ALL}
"""Every planner by its name, with default settings."""


def planner_of(planner: str | Planner) -> Planner:
    """The planner with a given name; a planner is returned as it is."""
    if isinstance(planner, type) or not isinstance(planner, str | Planner):
        raise PlanningError(
            f"a planner must be a name such as 'exact' or a planner such as TopDown(), not {planner!r:.80}"
        )
    if not isinstance(planner, str):
        return planner
    if planner not in PLANNERS:
        raise PlanningError(f"there is no planner '{planner}'; {did_you_mean(planner, PLANNERS)}")
    return PLANNERS[planner]


def solve(problem: Problem, planner: str | Planner) -> Deployment:
    """The deployment that a planner finds for a problem."""
    chosen = planner_of(planner)
    problem.deadline.check()
    return Deployment(chosen.name, chosen.plan(problem))
