"""What a query of a simulation can read of others when it starts."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from braid.channels.channel import Channel, complete_from, holds
from braid.hosts.simulated.settings import PlannedQuery
from braid.runtime.sites.deployed import Deployed
from braid.runtime.sites.weaker_join import SharedJoin


def as_it_starts(
    query: PlannedQuery, channels: Mapping[str, Channel], stays: Callable[[str], bool]
) -> tuple[PlannedQuery, list[tuple[SharedJoin, Deployed]]]:
    """The query as it can be deployed now, and the joins with weaker filters that are deployed with it.

    A query reads nothing of others if a channel has lost rows that it needs, or does not stay: its publisher changes
    its plan, or has done so.
    """
    firsts = [complete_from(channels[name] for name in join.reads.values() if name in channels) for join in query.joins]
    read_by_query = {channel for channel, _ in query.deployed.subscriptions()}
    is_whole = all(first <= query.since for first in firsts) and all(
        offer.channel not in channels
        or (stays(offer.channel) and holds(channels[offer.channel], offer.keep, query.since))
        for offer in query.offers
        if offer.channel in read_by_query
    )
    if is_whole or query.alone is None:
        return query, [(join, join.deployed(first)) for join, first in zip(query.joins, firsts, strict=True)]
    return query.alone, []
