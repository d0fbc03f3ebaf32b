"""How large figures may be: costs are floating-point numbers, and those that overflow can no longer be compared."""

from __future__ import annotations

from braid.errors import PlanningError
from braid.planning.cost.figures import Figures
from braid.planning.cost.models import CostModel, Probe
from braid.planning.transport import Transport

MOST = 1e300
"""No item of a bill may come to more, so that the sum of all of them is still a number."""


def check_range(figures: Figures, model: CostModel, network: Transport) -> None:
    """Raise an error if what the joins of these streams yield, ship or cost could be too large for a number.

    Shares of combinations are left out, because products of populations are formed before they are applied.
    """
    streams = range(len(figures.streams))
    rate, population = 0.0, 1.0
    for stream in streams:
        held = max(1.0, figures.population(1 << stream))
        rate = rate * held + population * figures.flow(stream, 1 << stream)
        population *= held
    volume = model.volume(rate, figures.size((1 << len(streams)) - 1))
    # Rates of a part and populations of the others are factors of the rate already.
    costs = network.most(volume), model.work(rate, 1.0, rate, 1.0), model.probing(Probe(rate, rate, rate, 1.0, False))
    # Where places are points in space, distances are squared.
    squared = network.most(1.0) * network.most(1.0)
    if not all(figure <= MOST for figure in (rate, population, volume, squared, *costs)):
        raise PlanningError(
            f"rates or costs of joining {', '.join(figures.streams)} may pass {MOST:g}, too large to reckon with; "
            f"given were rates up to {max(figures.flow(stream, 1 << stream) for stream in streams):g}, "
            f"populations up to {max(figures.population(1 << stream) for stream in streams):g}, "
            f"tuple sizes up to {max(figures.size(1 << stream) for stream in streams):g} "
            f"and ways that cost up to {network.most(1.0):g} ({model.name}); check which of them is too large"
        )
