"""A network as a picture."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import networkx as nx
import numpy as np

from braid.model.network.sites import Attribute, Link, Site

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MANY = 40
"""With more sites than this, names are left out."""


def draw(
    sites: Sequence[Site],
    links: Sequence[Link],
    axes: Axes | None = None,
    *,
    attribute: Attribute = "latency",
    groups: Mapping[str, int] | None = None,
    marked: Iterable[str] = (),
) -> Axes:
    """Sites as dots, links as lines, short by `attribute` drawn dark; `groups` colours sites, `marked` rings them.

    Sites with numeric properties `x` and `y` are drawn there, the others where springs put them.
    """
    import matplotlib.pyplot as plt

    if axes is None:
        axes = plt.figure(figsize=(8, 6), layout="constrained").add_subplot()
    graph: nx.Graph[str] = nx.Graph()
    names = [site.name for site in sites]
    graph.add_nodes_from(names)
    graph.add_edges_from((link.source, link.target) for link in links)
    places = _places(sites, graph)
    lengths = np.array([getattr(link, attribute) or 0.0 for link in links])
    longest = lengths.max(initial=0.0) or 1.0
    for link, length in zip(links, lengths, strict=True):
        ends = np.array([places[link.source], places[link.target]])
        axes.plot(ends[:, 0], ends[:, 1], color="0.5", linewidth=0.8 + 1.2 * (1 - length / longest), zorder=1)
    dots = np.array([places[name] for name in names])
    colours = [0 if groups is None else groups.get(name, 0) for name in names]
    axes.scatter(dots[:, 0], dots[:, 1], c=colours, cmap="tab20", s=40 if len(dots) > MANY else 120, zorder=2)
    ringed = np.array([places[name] for name in marked]).reshape(-1, 2)
    axes.scatter(ringed[:, 0], ringed[:, 1], s=160, facecolors="none", edgecolors="black", zorder=3)
    if len(dots) <= MANY:
        for name in names:
            axes.annotate(name, places[name], xytext=(6, 6), textcoords="offset points", fontsize=8)
    axes.set_axis_off()
    return axes


def _places(sites: Sequence[Site], graph: nx.Graph[str]) -> dict[str, tuple[float, float]]:
    given = {site.name: (site.properties.get("x"), site.properties.get("y")) for site in sites}
    if all(isinstance(part, int | float) for place in given.values() for part in place):
        return {name: (float(str(x)), float(str(y))) for name, (x, y) in given.items()}
    laid_out = nx.kamada_kawai_layout(graph) if len(graph) <= 300 else nx.spring_layout(graph, seed=1)
    return {name: (float(place[0]), float(place[1])) for name, place in laid_out.items()}
