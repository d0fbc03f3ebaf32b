"""What two plans of a query have in common, site by site.

A site that does the same for both plans, with the same inputs, is not started again: the new plan takes over what runs
there, with its windows and its channels. The sites that are new read these channels, which hold what is still alive.
So a join that both plans make at the same site is neither made nor shipped twice.

A site that gives results is never taken over: its results belong to the plan that began them, up to the moment at which
the plans change.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from braid.model.window import FOREVER
from braid.runtime.sites.fragment import Fragment
from braid.runtime.sites.site_spec import SiteSpec
from braid.runtime.sites.work import Outlet, SiteWork


def take_over(
    work: Mapping[str, SiteWork], running: Mapping[str, SiteSpec]
) -> tuple[dict[str, SiteSpec], dict[str, SiteWork]]:
    """The sites of a running plan that a new one takes over, and the work of its other sites, with their channels."""
    taken: dict[str, SiteSpec] = {}
    channels: dict[str, str] = {}
    """The channels that sites which are taken over have instead of those that the new plan has named."""
    while True:
        more = [
            site
            for site in work.keys() & running.keys() - taken.keys()
            if _is_same(_reading(work[site], channels), running[site].work)
        ]
        if not more:
            break
        for site in more:
            taken[site] = running[site]
            published = _by_content(running[site].work.outlets)
            channels |= {
                outlet.channel: published[content].channel
                for content, outlet in _by_content(work[site].outlets).items()
            }
    return taken, {site: _reading(part, channels) for site, part in work.items() if site not in taken}


def _reading(work: SiteWork, channels: Mapping[str, str]) -> SiteWork:
    """The work of a site that reads other channels."""
    return replace(work, arriving={channels.get(name, name): streams for name, streams in work.arriving.items()})


def _is_same(new: SiteWork, running: SiteWork) -> bool:
    if new.finals or any(not outlet.keep for outlet in running.outlets):
        return False
    return (
        new.arriving == running.arriving
        and _by_content(new.outlets).keys() == _by_content(running.outlets).keys()
        and _from_the_start(new.fragments) == _from_the_start(running.fragments)
    )


def _by_content(outlets: Iterable[Outlet]) -> dict[Outlet, Outlet]:
    """Outlets by what they publish, whatever their channels are called and whoever may read these."""
    return {Outlet("", outlet.fragment, guard=outlet.guard, fields=outlet.fields): outlet for outlet in outlets}


def _from_the_start(fragments: Mapping[str, Fragment]) -> dict[str, Fragment]:
    """Fragments that leave out no rows that had ended when their plan began: a new plan needs none of these anyway."""
    return {
        name: replace(fragment, inputs=tuple(replace(stream, alive_at=-FOREVER) for stream in fragment.inputs))
        for name, fragment in fragments.items()
    }
