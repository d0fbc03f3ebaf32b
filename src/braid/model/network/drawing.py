"""Draws a network with matplotlib."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import networkx as nx
import numpy as np

from braid.model.network.sites import Attribute, Link, Site

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MANY = 40
"""With more sites than this, dots are smaller and have no names."""

LARGEST_EXACT_LAYOUT = 300
"""With more sites than this, a faster and less regular layout is used."""


def draw(
    sites: Sequence[Site],
    links: Sequence[Link],
    axes: Axes | None = None,
    *,
    attribute: Attribute = "latency",
    groups: Mapping[str, int] | None = None,
    marked: Iterable[str] = (),
) -> Axes:
    """Draw sites as dots and links as lines, thicker the smaller their `attribute`.

    `groups` colours the sites; `marked` sites get a ring. If every site has numeric properties `x` and `y`, these are
    the positions; otherwise a layout algorithm places the sites.
    """
    import matplotlib.pyplot as plt

    if axes is None:
        axes = plt.figure(figsize=(8, 6), layout="constrained").add_subplot()
    graph: nx.Graph[str] = nx.Graph()
    names = [site.name for site in sites]
    graph.add_nodes_from(names)
    graph.add_edges_from((link.source, link.target) for link in links)
    positions = _positions(sites, graph)
    lengths = np.array([getattr(link, attribute) or 0.0 for link in links])
    longest = lengths.max(initial=0.0) or 1.0
    for link, length in zip(links, lengths, strict=True):
        ends = np.array([positions[link.source], positions[link.target]])
        width = 0.8 + 1.2 * (1 - length / longest)
        axes.plot(ends[:, 0], ends[:, 1], color="0.5", linewidth=width, zorder=1)
    dots = np.array([positions[name] for name in names])
    colours = [0 if groups is None else groups.get(name, 0) for name in names]
    axes.scatter(dots[:, 0], dots[:, 1], c=colours, cmap="tab20", s=40 if len(dots) > MANY else 120, zorder=2)
    ringed = np.array([positions[name] for name in marked]).reshape(-1, 2)
    axes.scatter(ringed[:, 0], ringed[:, 1], s=160, facecolors="none", edgecolors="black", zorder=3)
    if len(dots) <= MANY:
        for name in names:
            axes.annotate(name, positions[name], xytext=(6, 6), textcoords="offset points", fontsize=8)
    axes.set_axis_off()
    return axes


def _positions(sites: Sequence[Site], graph: nx.Graph[str]) -> dict[str, tuple[float, float]]:
    declared: dict[str, tuple[float, float]] = {}
    for site in sites:
        x, y = site.properties.get("x"), site.properties.get("y")
        if isinstance(x, int | float) and isinstance(y, int | float):
            declared[site.name] = (float(x), float(y))
    if len(declared) == len(sites):
        return declared
    exact = len(graph) <= LARGEST_EXACT_LAYOUT
    layout = nx.kamada_kawai_layout(graph) if exact else nx.spring_layout(graph, seed=1)
    return {name: (float(position[0]), float(position[1])) for name, position in layout.items()}
