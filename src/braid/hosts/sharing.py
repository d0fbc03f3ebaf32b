"""Joins with weaker filters between the queries of a network: which are needed, and who else should read them."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from braid.channels.channel import complete_from
from braid.channels.channels import Channels
from braid.errors import BraidError
from braid.planning.deployment import Deployment
from braid.runtime.sites.deployed import Deployed
from braid.runtime.sites.offer import OfferedStream
from braid.runtime.sites.weaker_join import RunningPlan, SharedJoin

logger = logging.getLogger(__name__)

BeginChange = Callable[[str, Deployment, str, float, Sequence[OfferedStream]], object]
"""Begins to change the plan of a query: its name, the plan, the reason, the time, and the joins that the plan reads."""


def begun(joins: Iterable[SharedJoin], channels: Channels, since: int) -> list[Deployed] | None:
    """Joins as they begin now; None if one of them would lack rows that a query since this moment needs.

    They must have subscribed to the channels that they read.
    """
    deployed = []
    for join in joins:
        first = complete_from(map(channels.open, join.reads.values()))
        if first > since:
            return None
        deployed.append(join.deployed(first))
    return deployed


def share(
    read: Collection[str], deployments: Mapping[str, Deployed], running: Iterable[RunningPlan], begin: BeginChange
) -> None:
    """Have queries read the joins that were made for them and a new one, which reads some channels.

    A query that cannot change its plan keeps its own join: that costs more, and its results are the same.
    """
    joins = [one for one in deployments.values() if one.is_dropped and not one.published.isdisjoint(read)]
    for query in running:
        reads = {channel for channel, _ in query.deployed.subscriptions()}
        for join in joins:
            is_from_query = any(channel in query.intakes for channel, _ in join.subscriptions())
            plan = query.reading(join.offers)
            if is_from_query and join.published.isdisjoint(reads) and plan is not None:
                try:
                    begin(query.deployed.name, plan, "another query needs weaker filters", time.time(), join.offers)
                except BraidError as reason:
                    logger.info("query '%s' keeps its own join: %s", query.deployed.name, reason)
                break
