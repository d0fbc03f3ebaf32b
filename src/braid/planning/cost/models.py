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
"""All distances are kept for networks of at most this many sites."""


class Probe(NamedTuple):
    """A step of a sequence: rows that come at `rate` probe the window of a stream and give `matches`, all per second.

    `keyed` says whether an equality or a band finds the matches, or every row of the window must be looked at.
    """

    rate: float
    matches: float
    stream_rate: float
    stream_population: float
    keyed: bool


@runtime_checkable
class CostModel(Protocol):
    """What a deployment costs: shipping over a network, and joining. Figures may be single or arrays of many."""

    @property
    def name(self) -> str: ...

    @property
    def unit(self) -> str: ...

    def check(self, figures: Figures) -> None:
        """Raise a clear error if a figure that the model needs is not known."""
        ...

    def network(self, topology: Topology, deadline: Deadline = NO_DEADLINE) -> Transport: ...

    def volume(self, rate: Figure, size: Figure) -> Figure:
        """What the network is charged for, per second, when a stream of this rate and tuple size is shipped."""
        ...

    def work(self, left_rate: Figure, left_population: Figure, right_rate: Figure, right_population: Figure) -> Figure:
        """What it costs per second to join two streams at one site."""
        ...

    def probing(self, probe: Probe) -> float:
        """What it costs per second to keep the window of a stream and to probe it with the rows of another."""
        ...


@dataclass(frozen=True)
class LinkModel:
    """Bytes (or tuples, where sizes are not known) per second times one figure of each link on the way."""

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

    def network(self, topology: Topology, deadline: Deadline = NO_DEADLINE) -> Transport:
        return topology.remember(("network", self.attribute), lambda: _linear(topology, self.attribute, deadline))

    def volume(self, rate: Figure, size: Figure) -> Figure:
        return rate * size * self.factor

    def work(self, left_rate: Figure, left_population: Figure, right_rate: Figure, right_population: Figure) -> Figure:
        return left_rate * 0.0

    def probing(self, probe: Probe) -> float:
        return 0.0


@dataclass(frozen=True)
class Communication:
    """Bytes (or tuples) per second that leave a site for another, whichever way they go."""

    name: str = "communication"
    unit: str = "bytes/s"

    def check(self, figures: Figures) -> None:
        return None

    def network(self, topology: Topology, deadline: Deadline = NO_DEADLINE) -> Transport:
        return Uniform(len(topology.sites))

    def volume(self, rate: Figure, size: Figure) -> Figure:
        return rate * size

    def work(self, left_rate: Figure, left_population: Figure, right_rate: Figure, right_population: Figure) -> Figure:
        return left_rate * 0.0

    def probing(self, probe: Probe) -> float:
        return 0.0


@dataclass(frozen=True)
class UnitTime:
    """Seconds of work and of sending per second: each shipped stream costs latency plus bytes over bandwidth.

    A new tuple is put in its own window (`update` seconds) and probes the other one (`probe` seconds per tuple there).
    """

    update: float = 1e-6
    probe: float = 1e-7
    name: str = "unit_time"
    unit: str = "s/s"

    def __post_init__(self) -> None:
        _check_figures(self.name, update=self.update, probe=self.probe)

    def check(self, figures: Figures) -> None:
        _check_sizes(self.name, figures)

    def network(self, topology: Topology, deadline: Deadline = NO_DEADLINE) -> Transport:
        def make() -> Transport:
            with np.errstate(over="ignore"):
                # What is too slow to be told from standing still is refused where costs are looked at.
                per_byte = topology.graph(1.0 / topology.lengths("bandwidth"))
            return Sparse(per_byte, topology.graph(topology.lengths("latency")))

        return topology.remember(("network", "unit_time"), make)

    def volume(self, rate: Figure, size: Figure) -> Figure:
        return rate * size

    def work(self, left_rate: Figure, left_population: Figure, right_rate: Figure, right_population: Figure) -> Figure:
        updates = (left_rate + right_rate) * self.update
        return updates + (left_rate * right_population + right_rate * left_population) * self.probe

    def probing(self, probe: Probe) -> float:
        return probe.stream_rate * self.update + probe.rate * probe.stream_population * self.probe


@dataclass(frozen=True)
class EngineTime:
    """Seconds of work per second in an engine that has all windows at one site and finds equal keys by hash.

    The unit-time model of the same paper, for a hash index instead of a nested loop: a probe costs one look (`lookup`)
    and so much for each match; without an equality it costs a `scan` of the window. Windows are kept whatever the
    sequences are, so that keeping them costs nothing more. A join that keeps its result (`work`) puts each new row of
    either side in its own state (`update`) and looks once in the other. The seconds are those of one core, measured
    with windows of 500,000 rows.
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

    def network(self, topology: Topology, deadline: Deadline = NO_DEADLINE) -> Transport:
        return Uniform(len(topology.sites))

    def volume(self, rate: Figure, size: Figure) -> Figure:
        return rate * size * 0.0

    def work(self, left_rate: Figure, left_population: Figure, right_rate: Figure, right_population: Figure) -> Figure:
        return (left_rate + right_rate) * (self.update + self.lookup)

    def probing(self, probe: Probe) -> float:
        looking = self.lookup if probe.keyed else self.scan * probe.stream_population
        return probe.rate * looking + probe.matches * self.match


def _linear(topology: Topology, attribute: Attribute, deadline: Deadline) -> Transport:
    if len(topology.sites) <= MOST_DENSE:
        return Dense(topology.distances(attribute, pause=deadline.check))
    return Sparse(topology.graph(topology.lengths(attribute)))


def _check_figures(model: str, **figures: float) -> None:
    """Refuse what no planner can reckon with: where something costs less than nothing, more of it is better."""
    for name, figure in figures.items():
        if not is_figure(figure):
            raise PlanningError(f"{name} of cost model '{model}' cannot be {shown(figure)}; give a number of 0 or more")


def _check_sizes(model: str, figures: Figures) -> None:
    if not figures.sized:
        raise PlanningError(f"cost model '{model}' needs tuple sizes; give Statistics(sizes={{stream: bytes, ..}})")


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
"""The cost models that have a name."""


def cost_model(given: str | CostModel) -> CostModel:
    """A cost model by its name, or itself."""
    if isinstance(given, type) or not isinstance(given, str | CostModel):
        raise PlanningError(f"a cost model is one by name, such as 'network_usage', or a CostModel, not {given!r:.80}")
    if not isinstance(given, str):
        if not isinstance(given, Hashable):
            # What follows from a network under a model is kept with the network, by model.
            raise PlanningError(f"a cost model must not change, and be hashable: make {type(given).__name__} frozen")
        return given
    if given not in MODELS:
        raise PlanningError(f"there is no cost model '{given}'; {did_you_mean(given, MODELS)}")
    return MODELS[given]
