"""Which sites of a network run: each says so again and again, in a document that all programs share.

Times are seconds since 1970. The clocks of machines may differ: a document that changes also tells that its site runs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from braid.channels.channels import Channels

RUNNING = "running"
"""The kind of document by which a site says that it runs."""

ANSWER_SECONDS = 5.0
"""Seconds between two answers of a site, and between two looks at those of others."""

SILENT_SECONDS = 3 * ANSWER_SECONDS
"""A site that has not answered for this long counts as one that does not run."""


class RollCall:
    """The answers of the sites of one network, as one program gives and hears them."""

    def __init__(self, channels: Channels) -> None:
        self._channels = channels
        self._answered: dict[str, float] = {}
        self._looked = float("-inf")
        self._heard: dict[str, tuple[dict[str, Any], float]] = {}
        """The last answer of each site, and when it was given."""

    def answer(self, sites: Iterable[str], time: float) -> None:
        """Say that the sites of this program run, unless they have just said so."""
        for site in sites:
            if time - self._answered.get(site, float("-inf")) >= ANSWER_SECONDS:
                self._channels.announce(RUNNING, site, {"time": time})
                self._answered[site] = time

    def silent(self, sites: Collection[str], time: float) -> tuple[str, ...]:
        """Those of some sites that do not run, as far as this program has heard, in the order of their names."""
        if time - self._looked >= ANSWER_SECONDS:
            self._look(time)
        return tuple(site for site in sorted(sites) if time - self._last(site) > SILENT_SECONDS)

    def _look(self, time: float) -> None:
        self._looked = time
        for site, document in self._channels.announced(RUNNING).items():
            if site not in self._heard:
                # It may be old: only its own time tells.
                answered = document.get("time")
                heard = min(answered, time) if isinstance(answered, int | float) else float("-inf")
                self._heard[site] = document, heard
            elif self._heard[site][0] != document:
                self._heard[site] = document, time

    def _last(self, site: str) -> float:
        """When a site answered for the last time, here or elsewhere."""
        heard = self._heard.get(site, ({}, float("-inf")))[1]
        return max(heard, self._answered.get(site, float("-inf")))
