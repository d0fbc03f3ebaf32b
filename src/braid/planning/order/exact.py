"""The optimum over all join orders and all placements, by dynamic programming over sets of streams and sites.

The result of a join depends only on the streams in it, and not on their order. The cheapest way to have the join of set
S at site v is to make it at some site u, from two inputs that are available at u, and to ship it from u to v. An
advertised derived stream is one more way to have the join of its streams.
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
"""The most streams that are planned."""
MOST_BYTES = 2**30
"""The most memory for the table of sets and sites."""

CELLS_AT_A_TIME = 1 << 17
"""The candidates that are compared together: few enough to stay in the processor's cache."""


class Choice(NamedTuple):
    """A plan for the join of the streams in `mask`, made at `site` from two `inputs`.

    `inputs` is None for a stream and for an offer, which need no join.
    """

    mask: int
    site: int
    inputs: tuple[Choice, Choice] | None


@dataclass(frozen=True, eq=False)
class SearchInputs:
    """The input of the dynamic program.

    `volumes[S]` is the volume of the join of set S. `available[S]` holds the cost of having S at each site without a
    join, infinite where it is not available. `works[S]` holds the cost of joining each split of S; `works` is None if
    all joins are free.
    """

    transport: Transport
    volumes: Floats
    available: Mapping[int, Floats]
    works: Mapping[int, Floats] | None = None

    @property
    def streams(self) -> int:
        return len(self.volumes).bit_length() - 1


@dataclass(frozen=True, eq=False)
class Optimum:
    """The finished table: `make_costs[S]` is the cost of making S at each site, `have_costs[S]` of having it there."""

    inputs: SearchInputs
    make_costs: Floats
    have_costs: Floats
    considered: int

    def choice(self, target: int | None) -> Choice:
        """The cheapest plan for the join of all streams, with its result at the target, or at any site."""
        if target is None:
            return self._make(len(self.make_costs) - 1, int(self.make_costs[-1].argmin()))
        return self._have(len(self.make_costs) - 1, target)

    def _have(self, mask: int, target: int) -> Choice:
        costs = self.make_costs[mask] + self.inputs.transport.costs_to(self.inputs.volumes[mask], target)
        return self._make(mask, int(costs.argmin()))

    def _make(self, mask: int, site: int) -> Choice:
        available = self.inputs.available.get(mask)
        if available is not None and available[site] <= self.make_costs[mask][site]:
            return Choice(mask, site, None)
        lefts, rights = splits(mask)
        costs = self.have_costs[lefts, site] + self.have_costs[rights, site]
        if self.inputs.works is not None:
            costs += self.inputs.works[mask]
        # Of splits with the same cost, take the one with the smallest inputs, to avoid unnecessary cross products.
        volumes = self.inputs.volumes[lefts] + self.inputs.volumes[rights]
        best = int(np.where(costs <= costs.min() * (1 + 1e-12), volumes, np.inf).argmin())
        return Choice(mask, site, (self._have(int(lefts[best]), site), self._have(int(rights[best]), site)))


def optimise(inputs: SearchInputs, deadline: Deadline = NO_DEADLINE) -> Optimum:
    """Fill the table of all sets and sites."""
    sets, sites = len(inputs.volumes), inputs.transport.sites
    # `np.empty` leaves the memory untouched until a block of it is filled: a gigabyte at once would take seconds.
    make_costs, have_costs = np.empty((sets, sites)), np.empty((sets, sites))
    make_costs[0] = have_costs[0] = have_costs[-1] = np.inf
    considered = 0
    for stream in range(inputs.streams):
        deadline.check()
        make_costs[1 << stream] = inputs.available[1 << stream]
        have_costs[1 << stream] = inputs.transport.spread(make_costs[1 << stream], inputs.volumes[1 << stream])
    for level in levels(inputs.streams):
        for rows, columns in _blocks(level, sites):
            deadline.check()
            if columns.start == 0:
                for mask in level.masks[rows].tolist():
                    make_costs[mask] = inputs.available.get(mask, np.inf)
            _lower(level, rows, columns, have_costs, make_costs, inputs.works)
        considered += level.lefts.size * sites
        for mask in level.masks.tolist():
            if mask != sets - 1:
                deadline.check()
                have_costs[mask] = inputs.transport.spread(make_costs[mask], inputs.volumes[mask])
    return Optimum(inputs, make_costs, have_costs, considered)


def _blocks(level: Level, sites: int) -> Iterator[tuple[slice, slice]]:
    """Slices of the sets of a level (rows) and of their splits (columns), each small enough for the cache."""
    sets, splits_per_set = level.lefts.shape
    splits_at_a_time = min(splits_per_set, max(1, CELLS_AT_A_TIME // sites))
    sets_at_a_time = max(1, CELLS_AT_A_TIME // (splits_at_a_time * sites))
    for row in range(0, sets, sets_at_a_time):
        for column in range(0, splits_per_set, splits_at_a_time):
            yield slice(row, row + sets_at_a_time), slice(column, column + splits_at_a_time)


def _lower(
    level: Level,
    rows: slice,
    columns: slice,
    have_costs: Floats,
    make_costs: Floats,
    works: Mapping[int, Floats] | None,
) -> None:
    """Lower the costs of making some sets of a level, at every site, where one of some splits is cheaper."""
    masks = level.masks[rows]
    costs = have_costs[level.lefts[rows, columns]]
    costs += have_costs[level.rights[rows, columns]]
    if works is not None:
        costs += np.stack([works[mask][columns] for mask in masks.tolist()])[:, :, None]
    make_costs[masks] = np.minimum(make_costs[masks], costs.min(axis=1))


def inputs_of(problem: Problem, planner: str = "exact") -> SearchInputs:
    """The input of the dynamic program for a problem."""
    streams, sites = len(problem.streams), problem.transport.sites
    check_limits(streams, sites, planner)
    available: dict[int, Floats] = {}
    for stream, origin in enumerate(problem.origins):
        available.setdefault(1 << stream, np.full(sites, np.inf))[origin] = 0.0
    for offer in problem.offers:
        available.setdefault(offer.mask, np.full(sites, np.inf))[offer.site] = offer.cost
    works: dict[int, Floats] = {}
    all_free = True
    for level in levels(streams):
        problem.deadline.check()
        costs = problem.works(level.lefts, level.rights)
        all_free = all_free and not costs.any()
        works.update(zip(level.masks.tolist(), costs, strict=True))
    return SearchInputs(problem.transport, problem.volumes, available, None if all_free else works)


def check_limits(streams: int, sites: int, planner: str) -> None:
    """Raise a `PlanningError` if a problem is too large for the table."""
    most = min(MOST_STREAMS, (MOST_BYTES // (16 * sites)).bit_length() - 1)
    if streams > most:
        where = "" if most == MOST_STREAMS else f" on {sites:,} sites"
        raise PlanningError(
            f"'{planner}' takes at most {most} streams{where}, and the query has {streams}; "
            "choose planner='stream_join_opt' or planner='greedy'"
        )


def tree_of(choice: Choice, problem: Problem) -> tuple[JoinTree, dict[Merge, str]]:
    """A choice as a join tree with the site of each join."""
    placement: dict[Merge, str] = {}

    def build(subplan: Choice) -> JoinTree:
        if subplan.inputs is None:
            return leaf_of(problem, subplan.mask, subplan.site)
        merge = Merge((build(subplan.inputs[0]), build(subplan.inputs[1])))
        placement[merge] = problem.topology.names[subplan.site]
        return merge

    return build(choice), placement


def leaf_of(problem: Problem, mask: int, site: int) -> Leaf | Reused:
    """The leaf for a set that needs no join: a stream, or a reused derived stream."""
    if mask.bit_count() == 1:
        return Leaf(problem.streams[mask.bit_length() - 1])
    offer: Offer = next(offer for offer in problem.offers if (offer.mask, offer.site) == (mask, site))
    return Reused(problem.names(mask), problem.topology.names[site], offer.match.advertisement.name)


@dataclass(frozen=True)
class Exact:
    """The optimum over all join trees and placements, with reuse; for up to 14 streams.

    `considered` counts the splits that were compared, at each site.
    """

    name: str = "exact"

    def plan(self, problem: Problem) -> TreeSolution:
        inputs = inputs_of(problem, self.name)
        optimum = optimise(inputs, problem.deadline)
        tree, placement = tree_of(optimum.choice(problem.sink), problem)
        return TreeSolution(problem, tree, placement, optimum.considered)
