"""Cost models: what shipping and joining cost per second, each in its own unit."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from braid.errors import PlanningError, did_you_mean
from braid.model.checks import is_figure, shown
from braid.model.network.sites import Attribute
from braid.model.network.topology import Topology
from braid.planning.cost.figures import Figures
from braid.planning.deadline import NO_DEADLINE, Deadline
from braid.planning.transport import Dense, Sparse, Transport, Uniform

Floats = NDArray[np.float64]
Figure = TypeVar("Figure", float, Floats)

MOST_DENSE = 2_048
"""The most sites for which all distances are computed and kept."""


class Probe(NamedTuple):
    """A step of a probe sequence: `rate` rows per second probe the window of a stream and find `matches` per second.

    `keyed` says whether an index finds the matches, by an equality or a band; otherwise each probe scans the window.
    """

    rate: float
    matches: float
    stream_rate: float
    stream_population: float
    keyed: bool


@runtime_checkable
class CostModel(Protocol):
    """What shipping and joining cost. The figures are single numbers, or arrays for many sets of streams at once."""

    @property
    def name(self) -> str: ...

    @property
    def unit(self) -> str: ...

    def check(self, figures: Figures) -> None:
        """Raise a `PlanningError` if a figure that the model needs is not known."""
        ...

    def transport(self, topology: Topology, deadline: Deadline = NO_DEADLINE) -> Transport:
        """What shipping costs between the sites of a topology."""
        ...

    def lengths(self, topology: Topology, volume: float) -> Floats:
        """How long each link is for a stream of this volume, which takes the shortest path."""
        ...

    def volume(self, rate: Figure, size: Figure) -> Figure:
        """The volume per second that is charged for shipping a stream of this rate and row size: its bytes, or rows."""
        ...

    def work(self, left_rate: Figure, left_population: Figure, right_rate: Figure, right_population: Figure) -> Figure:
        """The cost per second of joining two streams at one site."""
        ...

    def probing(self, probe: Probe) -> float:
        """The cost per second of keeping the window of a stream and probing it with other rows."""
        ...


class OnlyTransport:
    """What cost models of transport alone have in common: bytes cost something, joins and probes nothing."""

    def volume(self, rate: Figure, size: Figure) -> Figure:
        return rate * size

    def work(self, left_rate: Figure, left_population: Figure, right_rate: Figure, right_population: Figure) -> Figure:
        return left_rate * 0.0

    def probing(self, probe: Probe) -> float:
        return 0.0


@dataclass(frozen=True)
class LinkModel(OnlyTransport):
    """Bytes per second (rows, if sizes are not known) times one figure of each link on the path."""

    name: str
    unit: str
    attribute: Attribute
    factor: float = 1.0
    needs_sizes: bool = False

    def __post_init__(self) -> None:
        _check_figures(self.name, factor=self.factor)

    def check(self, figures: Figures) -> None:
        if self.needs_sizes:
            _check_sizes(self.name, figures)

    def transport(self, topology: Topology, deadline: Deadline = NO_DEADLINE) -> Transport:
        key = ("transport", self.attribute, self.factor)
        return topology.remember(key, lambda: _linear(topology, self.attribute, self.factor, deadline))

    def lengths(self, topology: Topology, volume: float) -> Floats:
        return topology.lengths(self.attribute)


@dataclass(frozen=True)
class Communication(OnlyTransport):
    """Bytes (or rows) per second that one site sends to another, on any path: it takes that of least latency."""

    name: str = "communication"
    unit: str = "bytes/s"

    def check(self, figures: Figures) -> None:
        return None

    def transport(self, topology: Topology, deadline: Deadline = NO_DEADLINE) -> Transport:
        return Uniform(len(topology.sites))

    def lengths(self, topology: Topology, volume: float) -> Floats:
        return _latencies(topology)


@dataclass(frozen=True)
class UnitTime:
    """Seconds of work and of sending, per second: each shipped stream costs its latency plus bytes over bandwidth.

    A new row is put into its window (`update` seconds) and probes the other window (`probe` seconds per row there).
    """

    update: float = 1e-6
    probe: float = 1e-7
    name: str = "unit_time"
    unit: str = "s/s"

    def __post_init__(self) -> None:
        _check_figures(self.name, update=self.update, probe=self.probe)

    def check(self, figures: Figures) -> None:
        _check_sizes(self.name, figures)

    def transport(self, topology: Topology, deadline: Deadline = NO_DEADLINE) -> Transport:
        def make() -> Transport:
            with np.errstate(over="ignore"):
                # An infinite cost per byte is refused later, by `check_range`.
                per_byte = topology.graph(1.0 / topology.lengths("bandwidth"))
            return Sparse(per_byte, topology.graph(topology.lengths("latency")))

        return topology.remember(("transport", "unit_time"), make)

    def lengths(self, topology: Topology, volume: float) -> Floats:
        return topology.lengths("latency") + volume / topology.lengths("bandwidth")

    def volume(self, rate: Figure, size: Figure) -> Figure:
        return rate * size

    def work(self, left_rate: Figure, left_population: Figure, right_rate: Figure, right_population: Figure) -> Figure:
        updates = (left_rate + right_rate) * self.update
        return updates + (left_rate * right_population + right_rate * left_population) * self.probe

    def probing(self, probe: Probe) -> float:
        return probe.stream_rate * self.update + probe.rate * probe.stream_population * self.probe


@dataclass(frozen=True)
class EngineTime:
    """Seconds of work per second in Braid's engine, with all windows at one site and hash indexes on the keys.

    This is the unit-time model of the NOS paper for a hash index instead of a nested loop. A probe costs one `lookup`
    and one `match` for each match; without an index it costs a `scan` per row of the window. Every plan keeps the same
    windows, so their cost is left out. A join that keeps its result (`work`) puts each new row of either side into a
    join state (`update`) and looks it up once in the other. All are in seconds on one core, measured with windows of
    500,000 rows.
    """

    lookup: float = 4.5e-8
    match: float = 3e-8
    scan: float = 1.4e-8
    update: float = 1e-7
    name: str = "engine_time"
    unit: str = "s/s"

    def __post_init__(self) -> None:
        _check_figures(self.name, lookup=self.lookup, match=self.match, scan=self.scan, update=self.update)

    def check(self, figures: Figures) -> None:
        return None

    def transport(self, topology: Topology, deadline: Deadline = NO_DEADLINE) -> Transport:
        return Uniform(len(topology.sites))

    def lengths(self, topology: Topology, volume: float) -> Floats:
        return _latencies(topology)

    def volume(self, rate: Figure, size: Figure) -> Figure:
        return rate * size * 0.0

    def work(self, left_rate: Figure, left_population: Figure, right_rate: Figure, right_population: Figure) -> Figure:
        return (left_rate + right_rate) * (self.update + self.lookup)

    def probing(self, probe: Probe) -> float:
        per_probe = self.lookup if probe.keyed else self.scan * probe.stream_population
        return probe.rate * per_probe + probe.matches * self.match


def _linear(topology: Topology, attribute: Attribute, factor: float, deadline: Deadline) -> Transport:
    if len(topology.sites) <= MOST_DENSE:
        distances = topology.distances(attribute, pause=deadline.check)
        return Dense(distances if factor == 1 else distances * factor)
    return Sparse(topology.graph(topology.lengths(attribute) * factor))


def _latencies(topology: Topology) -> Floats:
    """The latencies of links; one that has none takes no time."""
    return np.array([link.latency or 0.0 for link in topology.links])


def _check_figures(model: str, **figures: float) -> None:
    """Refuse figures that are not numbers of 0 or more: with a negative cost, no plan would be the cheapest."""
    for name, figure in figures.items():
        if not is_figure(figure):
            raise PlanningError(f"{name} of cost model '{model}' cannot be {shown(figure)}; give a number of 0 or more")


def _check_sizes(model: str, figures: Figures) -> None:
    if figures.sizes is None:
        raise PlanningError(f"cost model '{model}' needs row sizes; give Statistics(sizes={{stream: bytes, ..}})")


MODELS: dict[str, CostModel] = {
    model.name: model
    for model in (
        LinkModel("network_usage", "bytes in transit", "latency"),
        LinkModel("link_cost", "cost/s", "cost_per_byte"),
        LinkModel("money", "USD/hour", "price_per_gb", factor=3_600 / 1e9, needs_sizes=True),
        Communication(),
        UnitTime(),
    )
}
"""The cost models by name. `EngineTime` is not among them: adaptation uses it, for plans at one site."""


def cost_model(model: str | CostModel) -> CostModel:
    """The cost model with a given name; a cost model is returned as it is."""
    if isinstance(model, type) or not isinstance(model, str | CostModel):
        raise PlanningError(f"a cost model must be a name such as 'network_usage' or a CostModel, not {model!r:.80}")
    if not isinstance(model, str):
        if not isinstance(model, Hashable):
            # A topology caches what planners compute for it, such as distances and hierarchies, by cost model.
            raise PlanningError(f"a cost model must be immutable and hashable: make {type(model).__name__} frozen")
        return model
    if model not in MODELS:
        raise PlanningError(f"there is no cost model '{model}'; {did_you_mean(model, MODELS)}")
    return MODELS[model]
