"""Net present cost: Bottom-Up, but a coordinator joins its streams only if waiting is expected to cost more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from braid.planning.cluster.bottom_up import BottomUp, tied_groups
from braid.planning.cluster.hierarchy import Hierarchy
from braid.planning.cluster.views import Views
from braid.planning.order.exact import Choice


@dataclass(frozen=True)
class NetPresentCost(BottomUp):
    """Compares the cost of joining now with the expected cost of waiting for the next level.

    Joining now costs the joins within the cluster, plus the expected cost of shipping the join of all remote streams
    here from a level above. Waiting costs the expected cost of shipping the result of the query. Both expectations
    assume the longest path within a cluster of the level where the remote streams are found.
    """

    max_cs: int = 32
    name: str = "npc"

    def joins_now(self, views: Views, local: Sequence[Choice], level: int) -> bool:
        problem = views.problem
        remote = problem.everything & ~sum(choice.mask for choice in local)
        chances = _chances(views, local[0].site, level)

        def expected_shipping(mask: int) -> float:
            return sum(chance * _longest(views, problem.volume(mask), above) for above, chance in chances.items())

        trial = Views(problem, views.hierarchy, self.name)
        cost_of_joining = self._cost_now(trial, local, level) + expected_shipping(remote)
        joins_now = expected_shipping(problem.everything) >= cost_of_joining
        if not joins_now:
            # The plans of the trial count in addition. If the join is made now, it is planned again and counted then.
            views.considered += trial.considered
        return joins_now

    def _cost_now(self, trial: Views, local: Sequence[Choice], level: int) -> float:
        """The cost of joining the local streams within their cluster, by planning it in a trial."""
        problem = trial.problem
        cluster = trial.hierarchy.cluster(trial.hierarchy.representative(local[0].site, level), level)
        cost = 0.0
        for group in tied_groups(problem, local):
            joined = trial.solve(group, cluster, level, cluster.coordinator)
            cost += _cost(trial, joined, group)
            cost += problem.transport.cost(problem.volume(joined.mask), joined.site, cluster.coordinator)
        return cost


def _cost(views: Views, choice: Choice, known: Sequence[Choice]) -> float:
    """The cost of the joins and shipping of a choice; the choices in `known` are available and cost nothing."""
    problem = views.problem
    if choice in known:
        return 0.0
    if choice.inputs is None:
        return next(offer.cost for offer in problem.offers if (offer.mask, offer.site) == (choice.mask, choice.site))
    return problem.work(*(below.mask for below in choice.inputs)) + sum(
        _cost(views, below, known) + problem.transport.cost(problem.volume(below.mask), below.site, choice.site)
        for below in choice.inputs
    )


def _longest(views: Views, volume: float, level: int) -> float:
    """The largest cost of shipping a volume within a cluster of a level; it need not be proportional to the volume."""
    clusters = views.hierarchy.levels[level - 1]
    return max(float(views.problem.transport.matrix(volume, cluster.members).max()) for cluster in clusters)


def _chances(views: Views, site: int, level: int) -> dict[int, float]:
    """For each level above, the probability that the missing streams are found there first.

    That is the share of sites that are below the cluster of that level and not below the cluster of the level before.
    """
    hierarchy: Hierarchy = views.hierarchy
    total = len(hierarchy.sites)
    seen = [0]  # The sites below the cluster of each level.
    for above in range(1, hierarchy.height + 1):
        cluster = hierarchy.cluster(hierarchy.representative(site, above), above)
        seen.append(sum(views.below(cluster, above, other) for other in hierarchy.sites))
    return {above: (seen[above] - seen[above - 1]) / total for above in range(level + 1, hierarchy.height + 1)}
