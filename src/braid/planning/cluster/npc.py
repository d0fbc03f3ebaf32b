"""Net present cost: Bottom-Up, but a coordinator joins what it has only if waiting is expected to cost more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from braid.planning.cluster.bottom_up import BottomUp, tied_groups
from braid.planning.cluster.hierarchy import Hierarchy
from braid.planning.cluster.views import Views
from braid.planning.order.exact import Choice


@dataclass(frozen=True)
class NetPresentCost(BottomUp):
    """Weighs joining now against waiting for the next level.

    Joining now costs what it costs within the cluster, plus what it may cost to bring the join of all remote streams
    here from wherever above it is found; waiting may cost to bring the result of the query. What something may cost
    to bring is reckoned over the longest way within a cluster of the level where it is found.
    """

    max_cs: int = 32
    name: str = "npc"

    def partitions(self, views: Views, local: Sequence[Choice], parts: Sequence[Choice], level: int) -> bool:
        problem = views.problem
        remote = problem.everything & ~sum(part.mask for part in local)
        chances = _chances(views, local[0].site, level)

        def later(mask: int) -> float:
            return sum(chance * _longest(views, problem.volume(mask), above) for above, chance in chances.items())

        trial = Views(problem, views.hierarchy, self.name)
        joins = later(problem.everything) >= self._cost_now(trial, local, level) + later(remote)
        if not joins:
            # What was planned to find out was planned for nothing; whoever joins now plans nothing else.
            views.considered += trial.considered
        return joins

    def _cost_now(self, trial: Views, local: Sequence[Choice], level: int) -> float:
        """What the joins of the local streams cost within their cluster, planned on the side."""
        problem = trial.problem
        cluster = trial.hierarchy.cluster(trial.hierarchy.representative(local[0].site, level), level)
        cost = 0.0
        for group in tied_groups(problem, local):
            made = trial.solve(group, cluster, level, cluster.coordinator)
            cost += _cost(trial, made, group)
            cost += problem.network.cost(problem.volume(made.mask), made.site, cluster.coordinator)
        return cost


def _cost(views: Views, choice: Choice, known: Sequence[Choice]) -> float:
    """The cost of what had to be made for a choice, beyond what is known already."""
    problem = views.problem
    if choice in known:
        return 0.0
    if choice.parts is None:
        return next(offer.cost for offer in problem.offers if (offer.mask, offer.site) == (choice.mask, choice.site))
    return problem.work(*(part.mask for part in choice.parts)) + sum(
        _cost(views, part, known) + problem.network.cost(problem.volume(part.mask), part.site, choice.site)
        for part in choice.parts
    )


def _longest(views: Views, volume: float, level: int) -> float:
    """What shipping costs at most within a cluster of a level: it need not be the volume times a distance."""
    clusters = views.hierarchy.levels[level - 1]
    return max(float(views.problem.network.matrix(volume, cluster.members).max()) for cluster in clusters)


def _chances(views: Views, site: int, level: int) -> dict[int, float]:
    """How likely what is missing is first seen at each level above: by the share of sites that come into view there."""
    hierarchy: Hierarchy = views.hierarchy
    total = len(hierarchy.sites)
    seen = [0]
    for above in range(1, hierarchy.height + 1):
        cluster = hierarchy.cluster(hierarchy.representative(site, above), above)
        seen.append(sum(views.below(cluster, above, other) for other in hierarchy.sites))
    return {above: (seen[above] - seen[above - 1]) / total for above in range(level + 1, hierarchy.height + 1)}
