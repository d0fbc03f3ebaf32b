"""How a query is to be deployed over a network."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256

from braid.model.statistics import Statistics
from braid.model.window import FOREVER
from braid.planning.assumed import WITHOUT_STATISTICS
from braid.planning.cost.models import CostModel
from braid.planning.deployment import Deployment
from braid.planning.planners import Planner


@dataclass(frozen=True)
class DeploymentRequest:
    """How a query is to be deployed.

    `sink` is the site where the results are wanted; by default they stay where they are made. Without `statistics` all
    streams go to the sink and are joined there. `plan` is a deployment that was planned before. Each join is split into
    `shards` parts. With `reuse` the query reads joins of others where that is cheaper, and publishes its own for them.
    All rows of its combinations start at or after `since`, in microseconds of event time.
    """

    text: str
    name: str | None = None
    sink: str | None = None
    planner: str | Planner | None = None
    cost: str | CostModel = "network_usage"
    statistics: Statistics | None = None
    plan: Deployment | None = None
    shards: int = 1
    reuse: bool = False
    since: int = -FOREVER

    @property
    def adapting_planner(self) -> str:
        """The name of the planner that plans the query anew when something is known of its streams."""
        planner = self.planner if isinstance(self.planner, str) else None
        return "exact" if planner in (None, WITHOUT_STATISTICS) else planner

    @property
    def deployment_name(self) -> str:
        """Its name, by default one that is made from the text."""
        return self.name or f"query_{sha256(self.text.encode()).hexdigest()[:8]}"
