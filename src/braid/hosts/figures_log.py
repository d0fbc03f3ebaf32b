"""The figures of sites, as documents that all programs of a network share."""

from __future__ import annotations

from braid.adapt.network.figures import SiteFigures
from braid.channels.channels import Channels
from braid.errors import ModelError
from braid.hosts.rejections import Rejections

FIGURES = "figures"
"""The kind of document that has the figures of a site."""

PINNED = "pinned"
"""The kind of document that pins the plan of a query."""


class FiguresLog:
    """The last figures of each query at each site, and which queries keep their plan."""

    def __init__(self, channels: Channels, rejections: Rejections | None = None) -> None:
        self._channels = channels
        self._rejections = rejections or Rejections()

    def tell(self, query: str, figures: SiteFigures) -> None:
        """Announce the figures of a site. They replace those that it announced before."""
        key = f"{query} #{figures.generation} at {figures.site}"
        self._channels.announce(FIGURES, key, {"query": query, "figures": figures.to_json()})

    def told(self, query: str, site: str | None = None) -> list[SiteFigures]:
        """The last figures of a query, of one site or of all. What cannot be read is left out, with one warning."""
        figures = []
        for key, document in self._channels.announced(FIGURES).items():
            if document.get("query") == query:
                try:
                    told = SiteFigures.from_json(document["figures"])
                    if site in (None, told.site):
                        figures.append(told)
                except (ModelError, KeyError) as problem:
                    why = f"the announced figures '{key}' are ignored: {problem}"
                    self._rejections.add(FIGURES, key, document, why)
        return figures

    def forget(self, query: str, generation: int | None = None) -> None:
        """Forget the figures of a query that is dropped, or of one of its generations."""
        for key, document in self._channels.announced(FIGURES).items():
            is_of_generation = generation is None or f"{query} #{generation} at " in key
            if document.get("query") == query and is_of_generation:
                self._channels.withdraw(FIGURES, key)
        if generation is None:
            self.unpin(query)

    def pin(self, query: str) -> None:
        """Let a query keep its plan, whichever program runs it."""
        self._channels.announce(PINNED, query, {"query": query})

    def unpin(self, query: str) -> None:
        self._channels.withdraw(PINNED, query)

    def is_pinned(self, query: str) -> bool:
        pinned = self._channels.announced(PINNED)
        return query in pinned or pinned.is_damaged(query)
