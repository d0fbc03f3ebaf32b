"""Networks to plan on: generated from a seed, or known."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import numpy as np

from braid.errors import TopologyError
from braid.model.checks import check
from braid.model.network.sites import Link, Site
from braid.model.network.topology import Topology

Range = tuple[float, float]


def transit_stub(
    *,
    transit_nodes: int = 4,
    stubs_per_transit: int = 4,
    stub_nodes: int = 8,
    transit_cost: Range = (10.0, 20.0),
    uplink_cost: Range = (5.0, 10.0),
    stub_cost: Range = (1.0, 3.0),
    extra_links: float = 0.3,
    seed: int = 1,
) -> Topology:
    """An internet in small, after GT-ITM: a backbone, and stub domains that hang on it with cheaper links inside.

    The backbone is a ring with chords; each domain is a random tree with a share of `extra_links` more links than
    that. Costs are drawn uniformly, and serve as latency and as cost per byte. The defaults give 132 sites;
    `transit_stub_128` has exactly 128.
    """
    _check_counts(1, transit_nodes=transit_nodes, stub_nodes=stub_nodes)
    _check_counts(0, stubs_per_transit=stubs_per_transit, seed=seed)
    generator = np.random.default_rng(seed)
    sites: list[Site] = []
    links: list[Link] = []

    def link(source: str, target: str, costs: Range) -> None:
        cost = float(generator.uniform(*costs))
        links.append(Link(source, target, latency=cost, cost_per_byte=cost))

    backbone = [f"t{number}" for number in range(transit_nodes)]
    sites += [Site(name, {"kind": "transit"}) for name in backbone]
    for source, target in _domain(backbone, generator, extra=1.0):
        link(source, target, transit_cost)
    for transit in backbone:
        for stub in range(stubs_per_transit):
            names = [f"{transit}s{stub}n{number}" for number in range(stub_nodes)]
            sites += [Site(name, {"kind": "stub", "domain": f"{transit}s{stub}"}) for name in names]
            link(transit, names[int(generator.integers(stub_nodes))], uplink_cost)
            for source, target in _domain(names, generator, extra_links):
                link(source, target, stub_cost)
    return Topology(tuple(sites), tuple(links))


def transit_stub_128(seed: int = 1) -> Topology:
    """128 sites: 4 of the backbone, and 4 stub domains on each with 124 sites between them (12 of 8 and 4 of 7)."""
    whole = transit_stub(seed=seed)
    degrees: dict[str, int] = dict.fromkeys(whole.names, 0)
    for link in whole.links:
        degrees[link.source] += 1
        degrees[link.target] += 1
    leaves: dict[str, str] = {}
    for site in whole.sites:
        if degrees[site.name] == 1:
            leaves.setdefault(str(site.properties.get("domain")), site.name)
    gone = set(list(leaves.values())[: len(whole.sites) - 128])
    return Topology(
        tuple(site for site in whole.sites if site.name not in gone),
        tuple(link for link in whole.links if not {link.source, link.target} & gone),
    )


def _domain(names: list[str], generator: np.random.Generator, extra: float) -> Iterator[tuple[str, str]]:
    """A random tree over these nodes, and some more links."""
    order = [names[number] for number in generator.permutation(len(names))]
    present: set[frozenset[str]] = set()
    for number in range(1, len(order)):
        pair = (order[int(generator.integers(number))], order[number])
        present.add(frozenset(pair))
        yield pair
    missing = [pair for pair in combinations(names, 2) if frozenset(pair) not in present]
    for number in generator.permutation(len(missing))[: round(extra * len(names))]:
        yield missing[number]


def random_geometric(nodes: int, *, radius: float | None = None, seed: int = 1) -> Topology:
    """Sites scattered over a unit square, linked with those near by; latency is distance. Always connected.

    `radius` defaults to one that gives each site about 8 links; parts that stay apart are tied to the largest one by
    their nearest sites.
    """
    _check_counts(1, nodes=nodes)
    _check_counts(0, seed=seed)
    import networkx as nx
    from scipy.spatial import cKDTree

    places = np.random.default_rng(seed).random((nodes, 2))
    tree = cKDTree(places)
    pairs = {(int(a), int(b)) for a, b in tree.query_pairs(radius or float(np.sqrt(8 / (np.pi * max(nodes, 2)))))}
    graph: nx.Graph[int] = nx.Graph(sorted(pairs))
    graph.add_nodes_from(range(nodes))
    parts = sorted(nx.connected_components(graph), key=lambda part: (-len(part), min(part)))
    largest = np.array(sorted(parts[0]))
    of_largest = cKDTree(places[largest])
    for part in parts[1:]:
        members = np.array(sorted(part))
        found = of_largest.query(places[members])
        distance, nearest = np.asarray(found[0]), np.asarray(found[1])
        pairs.add((int(largest[nearest[distance.argmin()]]), int(members[distance.argmin()])))
    sites = tuple(Site(f"n{number}", {"x": float(x), "y": float(y)}) for number, (x, y) in enumerate(places))
    ends = np.array(sorted(pairs), np.int64).reshape(-1, 2)
    lengths = np.hypot(*(places[ends[:, 0]] - places[ends[:, 1]]).T)
    links = (
        Link(f"n{source}", f"n{target}", latency=length, cost_per_byte=length)
        for (source, target), length in zip(ends.tolist(), lengths.tolist(), strict=True)
    )
    return Topology(sites, tuple(links))


def star(leaves: int, *, latency: float = 1.0, bandwidth: float | None = None) -> Topology:
    """One hub, and leaves that reach each other through it."""
    _check_counts(0, leaves=leaves)
    links = [Link("hub", f"n{number}", latency, bandwidth, latency) for number in range(leaves)]
    return Topology(tuple(map(Site, ["hub", *(link.target for link in links)])), tuple(links))


def fully_connected(nodes: int, *, latency: float = 1.0, bandwidth: float | None = None) -> Topology:
    """Every site linked with every other."""
    _check_counts(1, nodes=nodes)
    names = [f"n{number}" for number in range(nodes)]
    links = tuple(Link(*pair, latency, bandwidth, latency) for pair in combinations(names, 2))
    return Topology(tuple(map(Site, names)), links)


def _check_counts(least: int, **counts: int) -> None:
    for name, count in counts.items():
        check(count, int, f"{name} of a network", TopologyError)
        if count < least:
            raise TopologyError(f"{name} of a network cannot be {count}; give {least} or more")


def cloud_regions() -> Topology:
    """Ten regions of a public cloud with what is published of their latencies and egress prices (rounded)."""
    return Topology.load(Path(__file__).parent / "cloud_regions.yaml")
