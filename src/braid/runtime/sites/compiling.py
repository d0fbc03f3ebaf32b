"""From the site programs of a deployment to what runs at each site: fragments, and the channels between them.

Fragments are independent: a fragment reads the output of another one from a channel, even at the same site. Base
streams come on the channels of their intakes. A query that reuses a derived stream reads a channel of another
deployment, at the site that makes the stream.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from braid.errors import PlanError
from braid.model.program import ALWAYS, Guard
from braid.model.window import FOREVER
from braid.planning.deployment import Deployment
from braid.runtime.sites.deployed_streams import DeployedStreams
from braid.runtime.sites.offer import OfferedStream, channel_of
from braid.runtime.sites.site_compiler import SiteCompiler
from braid.runtime.sites.work import Outlet, SiteWork

NO_STREAMS: Mapping[str, str] = MappingProxyType({})


def compile_deployment(
    name: str,
    deployment: Deployment,
    intakes: Mapping[str, str],
    *,
    since: int = -FOREVER,
    offers: Sequence[OfferedStream] = (),
    shared: bool = False,
    first: int = -FOREVER,
    unfiltered: Mapping[str, str] = NO_STREAMS,
) -> dict[str, SiteWork]:
    """The work of every site that joins something. The names of all channels begin with the name of the deployment.

    `intakes` has the channel by which each stream of the query comes, by alias. `offers` are the streams that the
    deployment may reuse. If it is `shared`, it publishes the joins that it makes for later queries. Its results begin
    with the event time `first`. Some streams come `unfiltered`, by alias with their site: it checks the conditions on
    them.
    """
    _check(deployment)
    query, programs = deployment.query, deployment.programs
    streams = DeployedStreams(query, programs)
    sites = {}
    for site, program in programs.items():
        joins = [frozenset(offer.query.aliases) for offer in deployment.advertised if offer.site == site]
        filtered = [alias for alias, origin in unfiltered.items() if origin == site]
        sites[site] = SiteCompiler(program, streams, since, joins, shared=shared, alive_at=first, filtered=filtered)
    outlets = {site: list(_outlets(name, site, compiled, first)) for site, compiled in sites.items()}
    published = [outlet for made in outlets.values() for outlet in made]
    work = {}
    for site, compiled in sites.items():
        arriving = {
            outlet.channel: (compiled.read_as[outlet.fragment],) for outlet in published if site in outlet.readers
        }
        for channel, stream in (*_base(compiled, arriving, intakes), *_reused(compiled, offers)):
            arriving[channel] = (*arriving.get(channel, ()), stream)
        if compiled.fragments:
            work[site] = SiteWork(query, (), compiled.fragments, arriving, tuple(outlets[site]), since)
    return work


def _base(
    compiled: SiteCompiler, arriving: Mapping[str, tuple[str, ...]], intakes: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """The intakes that a site reads, and their streams: not those that other sites ship to it part by part."""
    shipped = {stream for streams in arriving.values() for stream in streams}
    for stream in dict.fromkeys(name for fragment in compiled.fragments.values() for name in fragment.reads):
        if stream in intakes and stream not in shipped:
            yield intakes[stream], stream


def _check(deployment: Deployment) -> None:
    if not deployment.query.ends_at_joins:
        raise PlanError(f"a query with {deployment.query.later_parts} runs at one site; leave it out, or run it there")
    for derived, condition in deployment.weakened:
        raise PlanError(
            f"the plan needs {derived} to let more through than {condition}, and no query that runs can; deploy both "
            "queries with reuse=True and without a plan, or plan with advertise() instead of advertise(weaken=True)"
        )


def _reused(compiled: SiteCompiler, offers: Sequence[OfferedStream]) -> Iterator[tuple[str, str]]:
    """The channels of other deployments that a site reads, and what their streams are called here."""
    for stream, step in compiled.reused.items():
        channel = channel_of(step.advertisement, offers)
        if channel is None:
            raise PlanError(f"the plan reuses {step.advertisement}, and no deployment that runs offers it; plan again")
        yield channel, stream


def _outlets(deployment: str, site: str, compiled: SiteCompiler, first: int) -> Iterator[Outlet]:
    """The channels of a site: one for each stream and guard, for all its readers, and one for each of its results.

    If a shared join has more columns than its own readers need, it has a second channel with all columns. Only the site
    itself reads that one, so these columns cross no link until a later query asks for them.
    """
    readers: dict[tuple[str, Guard, bool], list[str]] = defaultdict(list)
    for ship in compiled.ships:
        readers[ship.stream, ship.guard, False].append(ship.site)
    for stream, fragment in compiled.fragments.items():
        is_wide = compiled.has_more_columns(stream)
        if stream in compiled.read_as and not fragment.relays:
            readers[stream, ALWAYS, is_wide].append(site)
        elif is_wide:
            readers[stream, ALWAYS, is_wide] = []
    for position, ((stream, guard, is_wide), subscribed) in enumerate(readers.items()):
        part = "" if guard == ALWAYS else f", part {position}"
        is_narrowed = compiled.has_more_columns(stream) and not is_wide
        is_offered = guard == ALWAYS and not is_narrowed and compiled.is_offered(stream)
        yield Outlet(
            f"{deployment}: {stream} at {site}{part}{', all columns' if is_wide else ''}",
            stream,
            tuple(dict.fromkeys(subscribed)),
            guard,
            compiled.fields_needed(stream) if is_narrowed else None,
            is_offered,
            compiled.kept(stream),
        )
    for stream, fragment in compiled.fragments.items():
        if fragment.output is None:
            yield Outlet(f"{deployment}: {stream} at {site}", stream, guard=Guard(since=first))
