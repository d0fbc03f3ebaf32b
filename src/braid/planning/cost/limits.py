"""The largest figures that planners accept: costs that overflow to infinity can no longer be compared."""

from __future__ import annotations

from braid.errors import PlanningError
from braid.planning.cost.figures import Figures
from braid.planning.cost.models import CostModel, Probe
from braid.planning.transport import Transport

MOST = 1e300
"""The most that one charge may amount to, so that the sum of all charges does not overflow."""


def check_range(figures: Figures, model: CostModel, transport: Transport) -> None:
    """Raise a `PlanningError` if a rate, volume or cost of joining these streams could overflow.

    Shares of combinations are left out, because products of populations are computed before they are applied.
    """
    streams = range(len(figures.streams))
    rate, population = 0.0, 1.0
    for stream in streams:
        window = max(1.0, figures.population(1 << stream))
        rate = rate * window + population * figures.flow(stream, 1 << stream)
        population *= window
    volume = model.volume(rate, figures.size((1 << len(streams)) - 1))
    # The rate of the whole join has the rates of its parts and the populations of the others as factors.
    costs = transport.most(volume), model.work(rate, 1.0, rate, 1.0), model.probing(Probe(rate, rate, rate, 1.0, False))
    # The relaxation planner and k-means square distances.
    squared = transport.most(1.0) * transport.most(1.0)
    if not all(figure <= MOST for figure in (rate, population, volume, squared, *costs)):
        raise PlanningError(
            f"rates or costs of joining {', '.join(figures.streams)} may exceed {MOST:g}, too large to compute with; "
            f"there are rates up to {max(figures.flow(stream, 1 << stream) for stream in streams):g}, "
            f"populations up to {max(figures.population(1 << stream) for stream in streams):g}, "
            f"row sizes up to {max(figures.size(1 << stream) for stream in streams):g} "
            f"and paths that cost up to {transport.most(1.0):g} ({model.name}); check which of them is too large"
        )
