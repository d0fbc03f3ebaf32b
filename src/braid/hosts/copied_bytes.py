"""How many bytes a plan change ships to fill the windows of new sites."""

from __future__ import annotations

from itertools import takewhile

import numpy as np

from braid.channels.batch import NONE, NOTHING, Carried
from braid.channels.channel import Channel
from braid.channels.channels import Channels
from braid.runtime.migration.change import Change
from braid.runtime.sites.deployed import Deployed
from braid.runtime.sites.generation import Generation
from braid.runtime.sites.wire import WireStream


def carried_before(deployed: Deployed, new: Generation, channels: Channels) -> dict[str, dict[str, Carried]]:
    """What the channels that new sites read, and that are there already, had carried before what they hold."""
    there = new.outside | deployed.published
    return {
        site: {name: _before(channels.open(name)) for name in spec.work.arriving if name in there}
        for site, spec in new.started.items()
    }


def copied_to_new_sites(deployed: Deployed, new: Generation, channels: Channels) -> int:
    """The bytes of streams and joins that were there, shipped to sites which have not read them before."""
    publishers = {outlet.channel: spec.site for spec in deployed.specs for outlet in spec.work.outlets}
    read = {(channel, spec.site) for spec in deployed.specs for channel in spec.work.arriving}
    copied = 0
    for site in new.started:
        for channel, before in new.began[site].items():
            last = channels.open(channel).last()
            if last is not None and publishers.get(channel) != site and (channel, site) not in read:
                copied += last.carried.bytes - Carried(*before).bytes
    return copied


def copied_by_new_joins(deployed: Deployed, change: Change, channels: Channels) -> int:
    """The bytes that the joins of a new plan have shipped of the time before the change was asked for.

    They are known when the change is over.
    """
    new = deployed.generation(change.new)
    publishers = {outlet.channel: (site, outlet) for site, spec in new.started.items() for outlet in spec.work.outlets}
    copied = 0
    for site, spec in new.started.items():
        for name in spec.work.arriving:
            publisher, outlet = publishers.get(name, (site, None))
            if publisher != site and outlet is not None:
                stream = new.started[publisher].work.fragments[outlet.fragment].output
                assert stream is not None  # Results do not arrive at a site.
                copied += _carried_until(channels.open(name), stream, change.since)
    return copied


def _carried_until(channel: Channel, stream: WireStream, moment: int) -> int:
    """The bytes of the first batches of a channel whose rows start before a moment.

    The batch with which a site fills its windows has rows from before and after; it counts by the share of these.
    """
    entries, last = channel.entries(NONE), channel.last()
    if not entries:
        return 0 if last is None else last.carried.bytes
    earlier = list(takewhile(lambda entry: entry.newest < moment, entries))
    copied = earlier[-1].carried.bytes if earlier else entries[0].before.bytes
    filling = [entry for entry in entries[len(earlier) :] if entry.rows][:1]
    for entry in filling:
        starts = [stream.lifetimes(segment.rows)[0] for segment in channel.read(entry.number).segments]
        copied += round(entry.bytes * float((np.concatenate(starts) < moment).mean()))
    return copied


def _before(channel: Channel) -> Carried:
    """What a channel had carried before the batches that it holds."""
    oldest, last = channel.entries(NONE, most_bytes=1), channel.last()
    if oldest:
        return oldest[0].before
    return NOTHING if last is None else last.carried
