"""A network of sites and links, and the cheapest paths through it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from braid.errors import TopologyError, did_you_mean
from braid.model.checks import check, check_each
from braid.model.network import topology_files
from braid.model.network.sites import ATTRIBUTES, Attribute, Link, Site

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from scipy.sparse import csr_array

Floats = NDArray[np.float64]
Computed = TypeVar("Computed")

SITES_AT_A_TIME = 64
"""The number of sites whose shortest paths are computed between two calls of `pause`."""


@dataclass(frozen=True)
class Topology:
    """Sites and links. Two sites have at most one link per direction, and every site can reach every other."""

    sites: tuple[Site, ...]
    links: tuple[Link, ...]

    def __post_init__(self) -> None:
        check(self.sites, Iterable, "the sites of a topology", TopologyError)
        check(self.links, Iterable, "the links of a topology", TopologyError)
        object.__setattr__(self, "sites", tuple(self.sites))
        object.__setattr__(self, "links", tuple(self.links))
        check_each(self.sites, Site, "the sites of a topology", TopologyError)
        check_each(self.links, Link, "the links of a topology", TopologyError)
        if not self.sites:
            raise TopologyError("a topology needs at least one site")
        if len(self.positions) != len(self.sites):
            duplicate = next(name for name in self.names if self.names.count(name) > 1)
            raise TopologyError(f"two sites are called '{duplicate}'; rename one of them")
        self._check_links()
        self._check_connected()

    def _check_links(self) -> None:
        taken: set[tuple[str, str]] = set()
        for link in self.links:
            take_directions(link, self.positions, taken)

    def _check_connected(self) -> None:
        if len(self.sites) == 1:  # As for every query on one Spark, which needs nothing of scipy.
            return
        from scipy.sparse.csgraph import connected_components

        components, labels = connected_components(self._graph(np.ones(len(self._ends[0]))), connection="strong")
        if components > 1:
            unreachable = self.names[int(np.flatnonzero(labels != labels[0])[0])]
            raise TopologyError(
                f"no path leads from '{self.names[0]}' to '{unreachable}' and back; add a link between them"
            )

    @classmethod
    def from_links(
        cls,
        links: Iterable[Link | Mapping[str, Any] | tuple[Any, ...]] | Mapping[tuple[str, str], float],
        *,
        sites: Iterable[str | Site | Mapping[str, Any]] | None = None,
    ) -> Topology:
        """A topology from its links. Without `sites`, the sites are the ends of the links.

        A link is a `Link`, a mapping with its fields, `(source, target, latency)`, or `(source, target, {field: ..})`.
        Instead of a list of links, a mapping of pairs `(source, target)` to latencies is allowed.

        >>> Topology.from_links([("a", "b", 2.0), ("b", "c", 3.0)]).distance("a", "c")
        5.0
        """
        check(links, Iterable, "the links of a topology", TopologyError)
        if isinstance(links, Mapping):
            for ends in links:
                check(ends, tuple, "the ends of a link", TopologyError)
            links = [(*ends, latency) for ends, latency in links.items()]
        parsed = tuple(Link.of(link) for link in links)
        if sites is None:
            sites = dict.fromkeys(end for link in parsed for end in (link.source, link.target))
        check(sites, Iterable, "the sites of a topology", TopologyError)
        if isinstance(sites, str):
            raise TopologyError(
                f"the sites of a topology are a list of names, not the text '{sites}'; write ['{sites}']"
            )
        return cls(tuple(Site.of(site) for site in sites), parsed)

    @classmethod
    def load(cls, path: str | Path) -> Topology:
        """A topology from a YAML or JSON file with `sites` and `links`."""
        check(path, str | Path, "the path of a topology", TopologyError)
        links, sites = topology_files.read(Path(path))
        try:
            return cls.from_links(links, sites=sites)
        except TopologyError as error:
            raise TopologyError(f"{path}: {error}") from error

    def save(self, path: str | Path) -> None:
        """Write the topology to a file that `load` reads: JSON if the suffix is .json, else YAML."""
        check(path, str | Path, "the path of a topology", TopologyError)
        topology_files.write(self.sites, self.links, Path(path))

    def draw(self, axes: Axes | None = None, **options: Any) -> Axes:
        """Draw the network with matplotlib; see `braid.model.network.drawing.draw` for the options."""
        from braid.model.network.drawing import draw

        return draw(self.sites, self.links, axes, **options)

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(site.name for site in self.sites)

    @cached_property
    def positions(self) -> Mapping[str, int]:
        """The position of each site in `sites`, which is its index in arrays of distances."""
        return {site.name: position for position, site in enumerate(self.sites)}

    def position(self, name: str) -> int:
        """The position of a site in `sites`; `TopologyError` for an unknown name."""
        check(name, str, "the name of a site", TopologyError)
        if name not in self.positions:
            raise TopologyError(f"the topology has no site '{name}'; {did_you_mean(name, self.names)}")
        return self.positions[name]

    @cached_property
    def _ends(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """The source, the target and the position in `links` of each direction of each link."""
        forward = [(self.positions[link.source], self.positions[link.target]) for link in self.links]
        two_way = [position for position, link in enumerate(self.links) if not link.one_way]
        backward = [forward[position][::-1] for position in two_way]
        ends = np.array([*forward, *backward], np.int64).reshape(-1, 2)
        return ends[:, 0], ends[:, 1], np.array([*range(len(self.links)), *two_way], np.int64)

    def _graph(self, lengths: Floats) -> csr_array[np.float64]:
        """The network as a sparse matrix, given the length of each direction of each link."""
        from scipy.sparse import csr_array

        sources, targets, _ = self._ends
        shape = (len(self.sites), len(self.sites))
        return csr_array((lengths, (sources, targets)), shape=shape)

    def graph(self, lengths: Floats) -> csr_array[np.float64]:
        """The network as a sparse matrix, given the length of each link."""
        return self._graph(lengths[self._ends[2]])

    def lengths(self, attribute: Attribute) -> Floats:
        """One figure of every link, in the order of `links`; `TopologyError` if a link does not have it."""
        if attribute not in ATTRIBUTES:
            raise TopologyError(f"links have no figure '{attribute}'; {did_you_mean(str(attribute), ATTRIBUTES)}")
        missing = next((link for link in self.links if getattr(link, attribute) is None), None)
        if missing is not None:
            raise TopologyError(f"link {missing} has no {attribute}; give it, or choose a cost model that needs none")
        return np.array([getattr(link, attribute) for link in self.links], np.float64)

    @cached_property
    def _cache(self) -> dict[Hashable, Any]:
        return {}

    def remember(self, key: Hashable, compute: Callable[[], Computed]) -> Computed:
        """The result of `compute`, called once per key and cached as long as the topology lives.

        The result must depend on the key and the topology alone.
        """
        if key not in self._cache:
            self._cache[key] = compute()
        result: Computed = self._cache[key]
        return result

    def distances(self, attribute: Attribute = "latency", *, pause: Callable[[], None] | None = None) -> Floats:
        """Shortest-path distances between all sites by one figure of the links; computed once, read-only.

        `pause` is called regularly during the computation; it may raise an error to stop it.
        """
        return self.remember(("distances", attribute), lambda: self._all_distances(attribute, pause))

    def _all_distances(self, attribute: Attribute, pause: Callable[[], None] | None) -> Floats:
        from scipy.sparse.csgraph import dijkstra

        graph = self.graph(self.lengths(attribute))
        count = len(self.sites)
        matrix: Floats = np.empty((count, count))
        for start in range(0, count, SITES_AT_A_TIME):
            if pause is not None:
                pause()
            end = min(start + SITES_AT_A_TIME, count)
            matrix[start:end] = dijkstra(graph, indices=range(start, end))
        matrix.setflags(write=False)
        return matrix

    def distance(self, source: str, target: str, attribute: Attribute = "latency") -> float:
        """The length of the shortest path between two sites by one figure of the links."""
        start, end = self.position(source), self.position(target)
        if ("distances", attribute) in self._cache:
            return float(self.distances(attribute)[start, end])
        from scipy.sparse.csgraph import dijkstra

        return float(dijkstra(self.graph(self.lengths(attribute)), indices=[start])[0, end])


def take_directions(link: Link, sites: Collection[str], taken: set[tuple[str, str]]) -> None:
    """Add the directions of a link to those of the links before it; `TopologyError` if it does not go with them."""
    for end in (link.source, link.target):
        if end not in sites:
            raise TopologyError(f"link {link} names an unknown site '{end}'; {did_you_mean(end, sites)}")
    directions = {(link.source, link.target)}
    if not link.one_way:
        directions.add((link.target, link.source))
    if directions & taken:
        raise TopologyError(f"link {link} is given twice; keep one, or make both one_way")
    taken |= directions


def check_rewiring(before: Topology, after: Topology) -> None:
    """Refuse a network that is to replace another one while queries run and has other sites or links."""
    ends = [[(link.source, link.target, link.one_way) for link in network.links] for network in (before, after)]
    if before.names != after.names or ends[0] != ends[1]:
        raise TopologyError(
            "a topology that replaces another one while a query runs must have the same sites and links; "
            "only the figures of links may change"
        )
