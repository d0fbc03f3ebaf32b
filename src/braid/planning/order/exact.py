"""The cheapest plan there is, for every join order and every placement at once.

What a join yields depends only on which streams are in it, so the cheapest way to have set S at site v is a dynamic
program over sets and sites: S is made at some site u out of two parts that are had there, and shipped from u to v.
A derived stream that is advertised is one more way to have its set.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from braid.errors import PlanningError
from braid.model.tree import JoinTree, Leaf, Merge, Reused
from braid.planning.deadline import NO_DEADLINE, Deadline
from braid.planning.order.subsets import Level, levels, splits
from braid.planning.problem import Offer, Problem
from braid.planning.solution.tree import TreeSolution
from braid.planning.transport import Transport

Floats = NDArray[np.float64]

MOST_STREAMS = 14
MOST_BYTES = 2**30
"""No more memory than this is taken for the table of sets and sites."""

CELLS_AT_A_TIME = 1 << 17
"""So many candidates are compared together that they stay in the processor's cache."""


class Choice(NamedTuple):
    """A set that is had at `site`: as an input or an offer (`parts` is None), or made of two parts."""

    mask: int
    site: int
    parts: tuple[Choice, Choice] | None


@dataclass(frozen=True, eq=False)
class Inputs:
    """What the dynamic program works on: the figures of all sets, and what is there to begin with.

    `given[S]` holds the cost of having S at each site without joining anything for it: infinite where it is not
    there. `works[S]` holds the cost of joining each split of S, of every S; None if joining anything is free.
    """

    network: Transport
    volumes: Floats
    given: Mapping[int, Floats]
    works: Mapping[int, Floats] | None = None

    @property
    def streams(self) -> int:
        return len(self.volumes).bit_length() - 1


@dataclass(frozen=True, eq=False)
class Optimum:
    """The finished table: `made[S]` is the cost of making S at each site, `had[S]` of having it there."""

    inputs: Inputs
    made: Floats
    had: Floats
    considered: int

    def choice(self, target: int | None) -> Choice:
        """How to have the whole, at a site or anywhere, at the least cost."""
        if target is None:
            return self._made(len(self.made) - 1, int(self.made[-1].argmin()))
        return self._had(len(self.made) - 1, target)

    def _had(self, mask: int, target: int) -> Choice:
        costs = self.made[mask] + self.inputs.network.costs_to(self.inputs.volumes[mask], target)
        return self._made(mask, int(costs.argmin()))

    def _made(self, mask: int, site: int) -> Choice:
        given = self.inputs.given.get(mask)
        if given is not None and given[site] <= self.made[mask][site]:
            return Choice(mask, site, None)
        lefts, rights = splits(mask)
        costs = self.had[lefts, site] + self.had[rights, site]
        if self.inputs.works is not None:
            costs += self.inputs.works[mask]
        # Of splits that cost the same, the one that moves least through its joins: no cross product without need.
        volumes = self.inputs.volumes[lefts] + self.inputs.volumes[rights]
        best = int(np.where(costs <= costs.min() * (1 + 1e-12), volumes, np.inf).argmin())
        return Choice(mask, site, (self._had(int(lefts[best]), site), self._had(int(rights[best]), site)))


def optimise(inputs: Inputs, deadline: Deadline = NO_DEADLINE) -> Optimum:
    """Fill the table of all sets and sites."""
    sets, sites = len(inputs.volumes), inputs.network.sites
    # Memory is first touched where it is filled, a block at a time: a gigabyte at once would take seconds.
    made, had = np.empty((sets, sites)), np.empty((sets, sites))
    made[0] = had[0] = had[-1] = np.inf
    considered = 0
    for stream in range(inputs.streams):
        deadline.check()
        made[1 << stream] = inputs.given[1 << stream]
        had[1 << stream] = inputs.network.spread(made[1 << stream], inputs.volumes[1 << stream])
    for level in levels(inputs.streams):
        for rows, columns in _blocks(level, sites):
            deadline.check()
            if columns.start == 0:
                for mask in level.masks[rows].tolist():
                    made[mask] = inputs.given.get(mask, np.inf)
            _make(level, rows, columns, had, made, inputs.works)
        considered += level.lefts.size * sites
        for mask in level.masks.tolist():
            if mask != sets - 1:
                deadline.check()
                had[mask] = inputs.network.spread(made[mask], inputs.volumes[mask])
    return Optimum(inputs, made, had, considered)


def _blocks(level: Level, sites: int) -> Iterator[tuple[slice, slice]]:
    """The sets of a level and their splits, so many at a time that their candidates stay in the cache."""
    sets, ways = level.lefts.shape
    splits_at_a_time = min(ways, max(1, CELLS_AT_A_TIME // sites))
    sets_at_a_time = max(1, CELLS_AT_A_TIME // (splits_at_a_time * sites))
    for row in range(0, sets, sets_at_a_time):
        for column in range(0, ways, splits_at_a_time):
            yield slice(row, row + sets_at_a_time), slice(column, column + splits_at_a_time)


def _make(
    level: Level, rows: slice, columns: slice, had: Floats, made: Floats, works: Mapping[int, Floats] | None
) -> None:
    """The cheapest of some ways to make some sets of a level, at every site, where it is cheaper than those before."""
    masks = level.masks[rows]
    costs = had[level.lefts[rows, columns]]
    costs += had[level.rights[rows, columns]]
    if works is not None:
        costs += np.stack([works[mask][columns] for mask in masks.tolist()])[:, :, None]
    made[masks] = np.minimum(made[masks], costs.min(axis=1))


def inputs_of(problem: Problem, planner: str = "exact") -> Inputs:
    """The figures of a problem, for the dynamic program."""
    streams, sites = len(problem.streams), problem.network.sites
    check_limits(streams, sites, planner)
    given: dict[int, Floats] = {}
    for stream, origin in enumerate(problem.origins):
        given.setdefault(1 << stream, np.full(sites, np.inf))[origin] = 0.0
    for offer in problem.offers:
        given.setdefault(offer.mask, np.full(sites, np.inf))[offer.site] = offer.cost
    works: dict[int, Floats] = {}
    free = True
    for level in levels(streams):
        problem.deadline.check()
        joined = problem.works(level.lefts, level.rights)
        free = free and not joined.any()
        works.update(zip(level.masks.tolist(), joined, strict=True))
    return Inputs(problem.network, problem.volumes, given, None if free else works)


def check_limits(streams: int, sites: int, planner: str) -> None:
    """Raise an error if a problem is too large for the table."""
    most = min(MOST_STREAMS, (MOST_BYTES // (16 * sites)).bit_length() - 1)
    if streams > most:
        where = "" if most == MOST_STREAMS else f" on {sites:,} sites"
        raise PlanningError(
            f"'{planner}' takes at most {most} streams{where}, and the query has {streams}; "
            "choose planner='stream_join_opt' or planner='greedy'"
        )


def tree_of(choice: Choice, problem: Problem) -> tuple[JoinTree, dict[Merge, str]]:
    """A choice as a tree with places."""
    placement: dict[Merge, str] = {}

    def build(part: Choice) -> JoinTree:
        if part.parts is None:
            return leaf_of(problem, part.mask, part.site)
        merge = Merge((build(part.parts[0]), build(part.parts[1])))
        placement[merge] = problem.topology.names[part.site]
        return merge

    return build(choice), placement


def leaf_of(problem: Problem, mask: int, site: int) -> Leaf | Reused:
    """What a set is that nobody has to make."""
    if mask.bit_count() == 1:
        return Leaf(problem.streams[mask.bit_length() - 1])
    offer: Offer = next(offer for offer in problem.offers if (offer.mask, offer.site) == (mask, site))
    return Reused(problem.names(mask), problem.topology.names[site], offer.match.advertisement.name)


@dataclass(frozen=True)
class Exact:
    """The optimum over all join trees and placements, with reuse; for up to 14 streams.

    `considered` counts pairs of parts compared at a site.
    """

    name: str = "exact"

    def plan(self, problem: Problem) -> TreeSolution:
        inputs = inputs_of(problem, self.name)
        optimum = optimise(inputs, problem.deadline)
        tree, placement = tree_of(optimum.choice(problem.sink), problem)
        return TreeSolution(problem, tree, placement, optimum.considered)
