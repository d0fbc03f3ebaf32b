"""A hierarchy of clusters: sites form clusters, the coordinators of clusters form clusters again, up to a single one.

At level 1 the nodes are the sites; at each higher level the nodes are the coordinators of the clusters below. A level
takes the distance between the coordinators that represent two sites for the distance between the sites. The error of
this estimate is at most twice the sum of the largest distances within clusters of the levels below (theorem 1 of the
IFLOW paper).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from braid.errors import PlanningError
from braid.model.checks import check
from braid.planning.cluster.kmeans import bounded_clusters
from braid.planning.deadline import NO_DEADLINE, Deadline

Floats = NDArray[np.float64]


def check_size(max_cs: int) -> None:
    """Raise a `PlanningError` if this cannot be the largest size of a cluster."""
    check(max_cs, int, "max_cs", PlanningError)
    if max_cs < 2:
        raise PlanningError(f"clusters hold at least 2 sites, so max_cs cannot be {max_cs}; give 2 or more")


@dataclass(frozen=True, slots=True)
class Cluster:
    """Nodes that are near each other; the coordinator represents all of them at the next level."""

    coordinator: int
    members: tuple[int, ...]

    def __post_init__(self) -> None:
        if self.coordinator not in self.members:
            raise PlanningError(f"the coordinator {self.coordinator} must be one of the members {self.members}")


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """Clusters of at most `max_cs` nodes on each level; the last level has one cluster."""

    distances: Floats
    max_cs: int
    levels: tuple[tuple[Cluster, ...], ...]

    @classmethod
    def build(cls, distances: Floats, max_cs: int, deadline: Deadline = NO_DEADLINE) -> Hierarchy:
        """Cluster all sites by k-means on their distances; the coordinator is the member nearest to all others."""
        check_size(max_cs)
        levels: list[tuple[Cluster, ...]] = []
        nodes = np.arange(len(distances), dtype=np.int64)
        while True:
            groups = bounded_clusters(distances[np.ix_(nodes, nodes)], max_cs, deadline)
            clusters = tuple(_cluster(distances, nodes[group].tolist()) for group in groups)
            levels.append(clusters)
            if len(clusters) == 1:
                return cls(distances, max_cs, tuple(levels))
            nodes = np.array(sorted(cluster.coordinator for cluster in clusters), np.int64)

    @property
    def height(self) -> int:
        return len(self.levels)

    @property
    def sites(self) -> tuple[int, ...]:
        """All sites of the hierarchy."""
        return tuple(sorted(site for cluster in self.levels[0] for site in cluster.members))

    @cached_property
    def _parents(self) -> tuple[dict[int, Cluster], ...]:
        """For each level, the cluster of each node."""
        return tuple({member: cluster for cluster in level for member in cluster.members} for level in self.levels)

    def cluster(self, node: int, level: int) -> Cluster:
        """The cluster of a node at a level; levels count from 1."""
        return self._parents[level - 1][node]

    def led_by(self, coordinator: int, level: int) -> Cluster:
        """The cluster of a level that has a given coordinator."""
        return next(cluster for cluster in self.levels[level - 1] if cluster.coordinator == coordinator)

    def representative(self, site: int, level: int) -> int:
        """The node that represents a site at a level."""
        for below in range(1, level):
            site = self.cluster(site, below).coordinator
        return site

    def estimate(self, source: int, target: int, level: int) -> float:
        """The distance between two sites as estimated at a level."""
        return float(self.distances[self.representative(source, level), self.representative(target, level)])

    def diameter(self, level: int) -> float:
        """The largest distance within a cluster of a level (the paper's d)."""
        return max(
            float(self.distances[np.ix_(cluster.members, cluster.members)].max()) for cluster in self.levels[level - 1]
        )

    def error(self, level: int) -> float:
        """An upper bound of how much too small the estimate of a level is (theorem 1)."""
        return sum(2 * self.diameter(below) for below in range(1, level))

    def join(self, site: int) -> Hierarchy:
        """The hierarchy with one more site. Its cluster is found from the top down, always at the nearest node."""
        if site in self._parents[0]:
            raise PlanningError(f"site {site} is in the hierarchy already")
        node = self.levels[-1][0].coordinator
        for level in range(self.height, 0, -1):
            cluster = self.cluster(node, level)
            node = min(cluster.members, key=lambda member: (self.distances[member, site], member))
        return self._change(1, self.cluster(node, 1), (*self.cluster(node, 1).members, site))

    def leave(self, site: int) -> Hierarchy:
        """The hierarchy without a site. If the site was a coordinator, another member replaces it on all levels."""
        if site not in self._parents[0]:
            raise PlanningError(f"site {site} is not in the hierarchy")
        if len(self._parents[0]) == 1:
            raise PlanningError(f"site {site} is the last one and cannot leave")
        cluster = self.cluster(site, 1)
        return self._change(1, cluster, tuple(member for member in cluster.members if member != site))

    def _change(self, level: int, old: Cluster, members: tuple[int, ...]) -> Hierarchy:
        """Give a cluster other members, split it if it is too large now, and update the levels above."""
        groups = [members] if members else []
        if len(members) > self.max_cs:
            splits = bounded_clusters(self.distances[np.ix_(members, members)], self.max_cs)
            groups = [tuple(members[position] for position in split) for split in splits]
        new = tuple(_cluster(self.distances, list(group), old.coordinator) for group in groups)
        clusters = (*(cluster for cluster in self.levels[level - 1] if cluster is not old), *new)
        changed = replace(self, levels=(*self.levels[: level - 1], clusters, *self.levels[level:]))
        if len(clusters) == 1:
            return replace(changed, levels=changed.levels[:level])
        if level == self.height:
            nodes = tuple(sorted(cluster.coordinator for cluster in clusters))
            top = _cluster(self.distances, list(nodes))
            return replace(changed, levels=(*changed.levels, (top,)))
        above = changed.cluster(old.coordinator, level + 1)
        coordinators = {cluster.coordinator for cluster in new}
        if {old.coordinator} == coordinators:
            return changed
        others = tuple(member for member in above.members if member != old.coordinator)
        return changed._change(level + 1, above, (*others, *sorted(coordinators)))


def _cluster(distances: Floats, members: list[int], preferred: int | None = None) -> Cluster:
    """A cluster whose coordinator is the preferred one, or else the member with the least distance to all others."""
    if preferred in members:
        return Cluster(preferred, tuple(sorted(members)))
    ordered = sorted(members)
    total = distances[np.ix_(ordered, ordered)].sum(axis=0)
    return Cluster(ordered[int(total.argmin())], tuple(ordered))
