"""Topologies: invalid ones, distances, files, generators."""

from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from braid.errors import TopologyError
from braid.model.network.generators import (
    cloud_regions,
    fully_connected,
    random_geometric,
    star,
    transit_stub,
    transit_stub_128,
)
from braid.model.network.sites import Link, Site
from braid.model.network.topology import Topology


def test_all_ways_to_write_a_link() -> None:
    expected = Topology((Site("a"), Site("b")), (Link("a", "b", latency=2.0),))
    assert Topology.from_links([Link("a", "b", 2.0)]) == expected
    assert Topology.from_links([("a", "b", 2.0)]) == expected
    assert Topology.from_links([("a", "b", {"latency": 2.0})]) == expected
    assert Topology.from_links([{"source": "a", "target": "b", "latency": 2.0}]) == expected
    assert Topology.from_links({("a", "b"): 2.0}) == expected


def test_distances_are_shortest_paths() -> None:
    topology = random_geometric(40, seed=3)
    graph = nx.Graph()
    graph.add_weighted_edges_from((link.source, link.target, link.latency) for link in topology.links)
    for source, lengths in nx.all_pairs_dijkstra_path_length(graph):
        for target, length in lengths.items():
            assert topology.distance(source, target) == pytest.approx(length)
            assert topology.distances()[topology.position(source), topology.position(target)] == pytest.approx(length)


def test_a_one_way_link_has_one_direction() -> None:
    ring = [("a", "b"), ("b", "c"), ("c", "a")]
    topology = Topology.from_links([Link(*ends, latency=1.0, one_way=True) for ends in ring])
    assert topology.distance("a", "b") == 1
    assert topology.distance("b", "a") == 2


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Topology.from_links([("a", "b", 1)], sites=["a", "bb"]), "unknown site 'b'; did you mean 'bb'"),
        (
            lambda: Topology.from_links([("a", "b", -1)]),
            "latency of link a - b cannot be -1; give a number of 0 or more",
        ),
        (lambda: Topology.from_links([("a", "b", float("nan"))]), "cannot be nan"),
        (lambda: Topology.from_links([("a", "b", "far")]), "cannot be 'far'"),
        (lambda: Topology.from_links([("a", "a", 1)]), "connects 'a' with itself"),
        (lambda: Topology.from_links([("a", "b", 1), ("b", "a", 2)]), "b - a is given twice"),
        (lambda: Topology.from_links([("a", "b", 1), ("c", "d", 1)]), "no path leads from 'a' to 'c' and back"),
        (lambda: Topology.from_links([Link("a", "b", 1.0, one_way=True)]), "no path leads from 'a' to 'b' and back"),
        (lambda: Topology.from_links([{"source": "a", "target": "b", "speed": 1}]), "no field 'speed'"),
        (lambda: Topology.from_links([("a",)]), r"a link is \(source, target, latency\)"),
        (lambda: Topology.from_links([{"source": "a"}]), "needs the name of its target, not None"),
        (lambda: Topology.from_links([]), "at least one site"),
        (lambda: Topology((Site("a"), Site("a")), ()), "two sites are called 'a'"),
        (lambda: star(2).position("nub"), "no site 'nub'; did you mean 'hub'"),
        (lambda: star(2).lengths("price_per_gb"), "link hub - n0 has no price_per_gb"),
        (lambda: star(2).distance("hub", "n0", "speed"), "links have no figure 'speed'; known: latency, bandwidth"),
        (lambda: star(2).position(3), "the name of a site must be a string, not 3"),
        (
            lambda: Topology.from_links([("a", "b", 1)], sites="ab"),
            "the sites of a topology are a list of names, not the",
        ),
        (lambda: Topology.from_links(None), "the links of a topology must be an Iterable, not None"),
        (lambda: Topology.from_links({"ab": 1.0}), "the ends of a link must be a tuple, not 'ab'"),
        (lambda: Topology.from_links([("a", "b", True)]), "cannot be True"),
        (lambda: Topology.from_links([("a", "b", 10**5000)]), "cannot be an int too long to print; give a number"),
        (lambda: Topology.from_links([Link("a", "b", 1.0, one_way="no")]), "is one_way must be a bool, not 'no'"),
        (lambda: Topology.load(3), "the path of a topology must be a string or Path, not 3"),
        (lambda: star(2).save("/nowhere/n.yaml"), "cannot write the topology to /nowhere/n.yaml"),
        (lambda: random_geometric(3, seed=-1), "seed of a network cannot be -1; give 0 or more"),
        (lambda: transit_stub(seed="x"), "seed of a network must be a whole number, not 'x'"),
        (
            lambda: Topology.from_links([("a", "b", 1)]).save(3),
            "the path of a topology must be a string or Path, not 3",
        ),
        (lambda: star(-1), "leaves of a network cannot be -1; give 0 or more"),
        (lambda: random_geometric(2.5), "nodes of a network must be a whole number, not 2.5"),
        (lambda: transit_stub(stub_nodes=0), "stub_nodes of a network cannot be 0; give 1 or more"),
    ],
)
def test_invalid_topologies_are_refused(make: object, message: str) -> None:
    with pytest.raises(TopologyError, match=message):
        make()  # type: ignore[operator]


@pytest.mark.parametrize("suffix", ["yaml", "json"])
def test_files_keep_everything(tmp_path: Path, suffix: str) -> None:
    topology = Topology.from_links(
        [Link("a", "b", 0.5, 1e6, 2.0, 0.02), Link("b", "c", 1.5, one_way=True), Link("c", "a", 0.25, one_way=True)],
        sites=[Site("a", {"cores": 8, "zone": "west"}), "b", "c"],
    )
    topology.save(tmp_path / f"network.{suffix}")
    assert Topology.load(tmp_path / f"network.{suffix}") == topology


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("n.yaml", "links: [{source: a, target: b, latency: -2}]", r"n\.yaml: the latency of link a - b cannot be -2"),
        ("n.yaml", "links: [", "is not valid YAML"),
        ("n.json", "{", "is not valid JSON"),
        (
            "n.yaml",
            "links: [[a, b, !!float '']]",
            r"n\.yaml is not valid YAML: '' is not a valid float\n.* line 1, column 16",
        ),
        ("n.yaml", "links: [[a, b, !!int '']]", "'' is not a valid int"),
        ("n.yaml", "links: [[a, b, !!bool often]]", "'often' is not a valid bool"),
        ("n.yaml", "links: [[a, b, !!timestamp soon]]", "'soon' is not a valid timestamp"),
        ("n.yaml", "links: [[a, b, 2001-13-45]]", "'2001-13-45' is not a valid timestamp"),
        ("n.yaml", "nodes: []", "a list of 'links'"),
        ("n.yaml", "links: []\nnodes: []", "not 'nodes'"),
        ("n.yaml", "links: []\nsites: [3]", "a site is a name"),
        ("n.yaml", "links: []\nsites: {a: 3}", "the 'sites' of a topology are a list of names or mappings"),
        (
            "n.yaml",
            "links:\n- {source: a, target: b, latency: 2}\n- source: b\n  target: c\n  latency: 1\n  latency: 9",
            r"n\.yaml: there are two keys 'latency' in the mapping that begins in line 3; keep one of them",
        ),
        ("n.yaml", "links: []\nlinks: []", "there are two keys 'links' in the mapping that begins in line 1"),
        ("n.yaml", "links: []\nsites: [{name: a, zone: 1, zone: 2}]", "there are two keys 'zone'"),
        (
            "n.json",
            '{"links": [{"source": "a", "target": "b", "source": "c"}]}',
            r"n\.json: there are two keys 'source'",
        ),
    ],
)
def test_an_invalid_file_is_an_error_with_its_position(tmp_path: Path, name: str, text: str, message: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(TopologyError, match=message):
        Topology.load(tmp_path / name)


def test_figures_may_be_numpy_numbers(tmp_path: Path) -> None:
    measured = np.array([0.5], np.float32)
    topology = Topology.from_links([("a", "b", measured[0]), ("b", "c", np.int64(2))])
    topology.save(tmp_path / "network.yaml")
    assert Topology.load(tmp_path / "network.yaml") == topology
    assert topology.distance("a", "c") == 2.5


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(TopologyError, match=r"cannot read the topology file .*none\.yaml: there is no such file"):
        Topology.load(tmp_path / "none.yaml")


def test_a_yaml_mapping_may_merge_another_one(tmp_path: Path) -> None:
    fast = "links:\n- &fast {source: a, target: b, latency: 1}\n- {<<: *fast, target: c, latency: 2}\n"
    (tmp_path / "n.yaml").write_text(fast)
    assert Topology.load(tmp_path / "n.yaml").distance("b", "c") == 3.0


def test_transit_stub_128_has_128_sites() -> None:
    topology = transit_stub_128(seed=5)
    kinds = [site.properties["kind"] for site in topology.sites]
    assert len(kinds) == 128
    assert kinds.count("transit") == 4
    domains = {site.properties.get("domain") for site in topology.sites} - {None}
    assert len(domains) == 16
    inside = [link.latency for link in topology.links if link.source[:4] == link.target[:4] and "s" in link.source]
    backbone = [link.latency for link in topology.links if "s" not in link.source + link.target]
    assert max(inside) < min(backbone)
    assert transit_stub_128(seed=5) == topology
    assert transit_stub_128(seed=6) != topology


def test_generators_make_networks_of_the_requested_size() -> None:
    assert len(transit_stub(transit_nodes=2, stubs_per_transit=3, stub_nodes=5).sites) == 2 + 2 * 3 * 5
    assert len(random_geometric(200, radius=0.01, seed=2).sites) == 200
    assert np.array_equal(np.unique(fully_connected(6).distances()), [0.0, 1.0])
    assert star(4).distance("n0", "n3") == 2.0


def test_cloud_regions_have_latencies_and_prices() -> None:
    regions = cloud_regions()
    assert len(regions.sites) == 10
    assert regions.distance("eu-west-1", "eu-central-1") < regions.distance("eu-west-1", "ap-southeast-2")
    assert regions.distance("us-east-1", "sa-east-1", "price_per_gb") == 0.02
    assert regions.distance("sa-east-1", "us-east-1", "price_per_gb") > 0.1


def test_a_drawing_shows_every_site() -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    for topology in (star(5), cloud_regions()):
        axes = topology.draw(marked=[topology.names[0]])
        assert {text.get_text() for text in axes.texts} == set(topology.names)
        plt.close(axes.figure)
