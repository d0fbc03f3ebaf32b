"""Sites in clusters, the coordinators of clusters in clusters again, and so on up to a single one.

At level 1 the nodes are the sites themselves; the nodes of a higher level are the coordinators of the clusters below.
Seen from level l, a site is where its representative of that level is: the paper's approximation, off by no more than
twice the sum of the largest distances within clusters of the levels below (theorem 1).
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
    """Refuse what cannot be the number of sites that a cluster holds at most."""
    check(max_cs, int, "max_cs", PlanningError)
    if max_cs < 2:
        raise PlanningError(f"clusters hold at least 2 sites, so max_cs cannot be {max_cs}; give 2 or more")


@dataclass(frozen=True, slots=True)
class Cluster:
    """Nodes that are near each other; one of them stands for all at the next level."""

    coordinator: int
    members: tuple[int, ...]

    def __post_init__(self) -> None:
        if self.coordinator not in self.members:
            raise PlanningError(f"the coordinator {self.coordinator} is none of the members {self.members}")


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """Clusters of at most `max_cs` nodes on each level; the last level has one cluster."""

    distances: Floats
    max_cs: int
    levels: tuple[tuple[Cluster, ...], ...]

    @classmethod
    def build(cls, distances: Floats, max_cs: int, deadline: Deadline = NO_DEADLINE) -> Hierarchy:
        """Cluster all sites by k-means on their distances; coordinators are nearest to their fellow members."""
        check_size(max_cs)
        levels: list[tuple[Cluster, ...]] = []
        nodes = np.arange(len(distances), dtype=np.int64)
        while True:
            groups = bounded_clusters(distances[np.ix_(nodes, nodes)], max_cs, deadline)
            clusters = tuple(_cluster(distances, nodes[group].tolist()) for group in groups)
            levels.append(clusters)
            if len(clusters) == 1:
                return cls(distances, max_cs, tuple(levels))
            nodes = np.array(sorted(found.coordinator for found in clusters), np.int64)

    @property
    def height(self) -> int:
        return len(self.levels)

    @property
    def sites(self) -> tuple[int, ...]:
        """All sites that are in some cluster."""
        return tuple(sorted(site for found in self.levels[0] for site in found.members))

    @cached_property
    def _parents(self) -> tuple[dict[int, Cluster], ...]:
        """Of each level, the cluster of each node."""
        return tuple({member: found for found in level for member in found.members} for level in self.levels)

    def cluster(self, node: int, level: int) -> Cluster:
        """The cluster of a node of a level; levels count from 1."""
        return self._parents[level - 1][node]

    def led_by(self, coordinator: int, level: int) -> Cluster:
        """The cluster of a level that a node stands for at the next."""
        return next(found for found in self.levels[level - 1] if found.coordinator == coordinator)

    def representative(self, site: int, level: int) -> int:
        """The node that stands for a site at a level."""
        for below in range(1, level):
            site = self.cluster(site, below).coordinator
        return site

    def estimate(self, source: int, target: int, level: int) -> float:
        """The distance between two sites as a level sees it."""
        return float(self.distances[self.representative(source, level), self.representative(target, level)])

    def diameter(self, level: int) -> float:
        """The largest distance within a cluster of a level (the paper's d)."""
        return max(
            float(self.distances[np.ix_(found.members, found.members)].max()) for found in self.levels[level - 1]
        )

    def error(self, level: int) -> float:
        """By how much the estimate of a level may be too small (theorem 1)."""
        return sum(2 * self.diameter(below) for below in range(1, level))

    def join(self, site: int) -> Hierarchy:
        """The hierarchy with one more site: from the top down, always on to the nearest node."""
        if site in self._parents[0]:
            raise PlanningError(f"site {site} is in the hierarchy already")
        node = self.levels[-1][0].coordinator
        for level in range(self.height, 0, -1):
            found = self.cluster(node, level)
            node = min(found.members, key=lambda member: (self.distances[member, site], member))
        return self._change(1, self.cluster(node, 1), (*self.cluster(node, 1).members, site))

    def leave(self, site: int) -> Hierarchy:
        """The hierarchy without a site; where it was coordinator, the next best takes its place on all levels."""
        if site not in self._parents[0]:
            raise PlanningError(f"site {site} is not in the hierarchy")
        if len(self._parents[0]) == 1:
            raise PlanningError(f"site {site} is the last one and cannot leave")
        found = self.cluster(site, 1)
        return self._change(1, found, tuple(member for member in found.members if member != site))

    def _change(self, level: int, old: Cluster, members: tuple[int, ...]) -> Hierarchy:
        """Give a cluster other members, split it if it grew too large, and carry the change upwards."""
        groups = [members] if members else []
        if len(members) > self.max_cs:
            parts = bounded_clusters(self.distances[np.ix_(members, members)], self.max_cs)
            groups = [tuple(members[number] for number in part) for part in parts]
        new = tuple(_cluster(self.distances, list(group), old.coordinator) for group in groups)
        clusters = (*(found for found in self.levels[level - 1] if found is not old), *new)
        changed = replace(self, levels=(*self.levels[: level - 1], clusters, *self.levels[level:]))
        if len(clusters) == 1:
            return replace(changed, levels=changed.levels[:level])
        if level == self.height:
            nodes = tuple(sorted(found.coordinator for found in clusters))
            top = _cluster(self.distances, list(nodes))
            return replace(changed, levels=(*changed.levels, (top,)))
        above = changed.cluster(old.coordinator, level + 1)
        leaders = {found.coordinator for found in new}
        if {old.coordinator} == leaders:
            return changed
        kept = tuple(member for member in above.members if member != old.coordinator)
        return changed._change(level + 1, above, (*kept, *sorted(leaders)))


def _cluster(distances: Floats, members: list[int], preferred: int | None = None) -> Cluster:
    """A cluster led by the member with the least distance to all others, or by the one preferred if it is there."""
    if preferred in members:
        return Cluster(preferred, tuple(sorted(members)))
    ordered = sorted(members)
    apart = distances[np.ix_(ordered, ordered)].sum(axis=0)
    return Cluster(ordered[int(apart.argmin())], tuple(ordered))
