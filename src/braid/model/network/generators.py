"""Networks to plan on: random ones from a seed, simple shapes, and the regions of a public cloud."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import numpy as np

from braid.errors import TopologyError
from braid.model.checks import check
from braid.model.network.sites import Link, Site
from braid.model.network.topology import Topology

Bounds = tuple[float, float]
"""The lowest and the highest value of a random cost."""


def transit_stub(
    *,
    transit_nodes: int = 4,
    stubs_per_transit: int = 4,
    stub_nodes: int = 8,
    transit_cost: Bounds = (10.0, 20.0),
    uplink_cost: Bounds = (5.0, 10.0),
    stub_cost: Bounds = (1.0, 3.0),
    extra_links: float = 0.3,
    seed: int = 1,
) -> Topology:
    """A small internet in the style of GT-ITM: a backbone of transit sites, and stub domains with cheaper links inside.

    The backbone and each domain are random trees with additional links: one per site in the backbone, and
    `extra_links` per site in a domain. Costs are drawn uniformly, and serve as latency and as cost per byte. The
    defaults give 132 sites; `transit_stub_128` has exactly 128.
    """
    _check_counts(1, transit_nodes=transit_nodes, stub_nodes=stub_nodes)
    _check_counts(0, stubs_per_transit=stubs_per_transit, seed=seed)
    generator = np.random.default_rng(seed)
    sites: list[Site] = []
    links: list[Link] = []

    def link(source: str, target: str, costs: Bounds) -> None:
        cost = float(generator.uniform(*costs))
        links.append(Link(source, target, latency=cost, cost_per_byte=cost))

    backbone = [f"t{node}" for node in range(transit_nodes)]
    sites += [Site(name, {"kind": "transit"}) for name in backbone]
    for source, target in _domain(backbone, generator, extra=1.0):
        link(source, target, transit_cost)
    for transit in backbone:
        for stub in range(stubs_per_transit):
            names = [f"{transit}s{stub}n{node}" for node in range(stub_nodes)]
            sites += [Site(name, {"kind": "stub", "domain": f"{transit}s{stub}"}) for name in names]
            link(transit, names[int(generator.integers(stub_nodes))], uplink_cost)
            for source, target in _domain(names, generator, extra_links):
                link(source, target, stub_cost)
    return Topology(tuple(sites), tuple(links))


def transit_stub_128(seed: int = 1) -> Topology:
    """128 sites: 4 in the backbone and 124 in 16 stub domains, 4 per backbone site (12 of 8 sites and 4 of 7).

    It is `transit_stub` without one leaf in each of 4 domains.
    """
    whole = transit_stub(seed=seed)
    degrees: dict[str, int] = dict.fromkeys(whole.names, 0)
    for link in whole.links:
        degrees[link.source] += 1
        degrees[link.target] += 1
    leaves: dict[str, str] = {}
    for site in whole.sites:
        if degrees[site.name] == 1:
            leaves.setdefault(str(site.properties.get("domain")), site.name)
    removed = set(list(leaves.values())[: len(whole.sites) - 128])
    return Topology(
        tuple(site for site in whole.sites if site.name not in removed),
        tuple(link for link in whole.links if not {link.source, link.target} & removed),
    )


def _domain(names: list[str], generator: np.random.Generator, extra: float) -> Iterator[tuple[str, str]]:
    """The links of a random tree over these nodes, and `extra` more links per node."""
    order = [names[position] for position in generator.permutation(len(names))]
    present: set[frozenset[str]] = set()
    for node in range(1, len(order)):
        pair = (order[int(generator.integers(node))], order[node])
        present.add(frozenset(pair))
        yield pair
    missing = [pair for pair in combinations(names, 2) if frozenset(pair) not in present]
    for position in generator.permutation(len(missing))[: round(extra * len(names))]:
        yield missing[position]


def random_geometric(nodes: int, *, radius: float | None = None, seed: int = 1) -> Topology:
    """Random sites in a unit square, linked if they are at most `radius` apart; latency is distance.

    The default radius gives each site about 8 links. A component that is not connected is linked to the largest one by
    their nearest sites, so the network is always connected.
    """
    _check_counts(1, nodes=nodes)
    _check_counts(0, seed=seed)
    import networkx as nx
    from scipy.spatial import cKDTree

    positions = np.random.default_rng(seed).random((nodes, 2))
    radius = radius or float(np.sqrt(8 / (np.pi * max(nodes, 2))))
    pairs = {(int(first), int(second)) for first, second in cKDTree(positions).query_pairs(radius)}
    graph: nx.Graph[int] = nx.Graph(sorted(pairs))
    graph.add_nodes_from(range(nodes))
    components = sorted(nx.connected_components(graph), key=lambda component: (-len(component), min(component)))
    largest = np.array(sorted(components[0]))
    tree_of_largest = cKDTree(positions[largest])
    for component in components[1:]:
        members = np.array(sorted(component))
        distances, nearest = map(np.asarray, tree_of_largest.query(positions[members]))
        closest = distances.argmin()
        pairs.add((int(largest[nearest[closest]]), int(members[closest])))
    sites = tuple(Site(f"n{node}", {"x": float(x), "y": float(y)}) for node, (x, y) in enumerate(positions))
    ends = np.array(sorted(pairs), np.int64).reshape(-1, 2)
    lengths = np.hypot(*(positions[ends[:, 0]] - positions[ends[:, 1]]).T)
    links = (
        Link(f"n{source}", f"n{target}", latency=length, cost_per_byte=length)
        for (source, target), length in zip(ends.tolist(), lengths.tolist(), strict=True)
    )
    return Topology(sites, tuple(links))


def star(leaves: int, *, latency: float = 1.0, bandwidth: float | None = None) -> Topology:
    """One hub, and leaves that are linked only with it."""
    _check_counts(0, leaves=leaves)
    links = [Link("hub", f"n{node}", latency, bandwidth, latency) for node in range(leaves)]
    return Topology(tuple(map(Site, ["hub", *(link.target for link in links)])), tuple(links))


def fully_connected(nodes: int, *, latency: float = 1.0, bandwidth: float | None = None) -> Topology:
    """Every site linked with every other."""
    _check_counts(1, nodes=nodes)
    names = [f"n{node}" for node in range(nodes)]
    links = tuple(Link(*pair, latency, bandwidth, latency) for pair in combinations(names, 2))
    return Topology(tuple(map(Site, names)), links)


def _check_counts(least: int, **counts: int) -> None:
    for name, count in counts.items():
        check(count, int, f"{name} of a network", TopologyError)
        if count < least:
            raise TopologyError(f"{name} of a network cannot be {count}; give {least} or more")


def cloud_regions() -> Topology:
    """Ten regions of a public cloud with approximate latencies and egress prices; see `cloud_regions.yaml`."""
    return Topology.load(Path(__file__).parent / "cloud_regions.yaml")
