"""What a simulation is told: the queries to run, and how to run them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from braid.adapt.controller import Policy
from braid.hosts.simulated.faults import Faults
from braid.model.network.topology import Topology
from braid.model.query import Query
from braid.model.window import FOREVER
from braid.planning.deployment import Deployment
from braid.planning.planners import Planner
from braid.runtime.sites.deployed import Deployed
from braid.runtime.sites.offer import OfferedStream
from braid.runtime.sites.weaker_join import SharedJoin


@dataclass(frozen=True)
class Settings:
    """How a simulation runs.

    `controller` says how sites agree on plan changes: "central" or "distributed". With a policy to `adapt`, it also
    says who decides on them. `rewirings` are networks with other links, each with the second from which on they hold.
    """

    batch_rows: int | None = None
    seed: int = 0
    faults: Faults = field(default_factory=Faults)
    shards: int = 1
    controller: str = "central"
    adapt: Policy | None = None
    rewirings: Sequence[tuple[float, Topology]] = ()


@dataclass(frozen=True)
class PlannedQuery:
    """A query to be run: its first plan, its plan changes, the rows of its streams, and where these start by alias.

    `changes` has pairs of a moment, in seconds since the first row, and the plan to change to. `planner` makes the
    plans that controllers compare the running one with. The query `starts` so many seconds after the first row. Its
    plan reads some of the `offers`, and `joins` with weaker filters that it shares with other queries; `alone` is the
    query with a plan that reads none of these.
    """

    deployment: Deployment
    deployed: Deployed
    rows: Mapping[str, pa.RecordBatch]
    origins: Mapping[str, str]
    changes: Sequence[tuple[float, Deployment]] = ()
    planner: str | Planner = "exact"
    starts: float = 0.0
    since: int = -FOREVER
    offers: Sequence[OfferedStream] = ()
    joins: Sequence[SharedJoin] = ()
    alone: PlannedQuery | None = None

    @property
    def query(self) -> Query:
        return self.deployment.query
