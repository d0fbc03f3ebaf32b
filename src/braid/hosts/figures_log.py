"""What sites tell of their figures, as documents that all programs of a network share."""

from __future__ import annotations

import logging

from braid.adapt.network.figures import SiteFigures
from braid.channels.channels import Channels
from braid.errors import ModelError

logger = logging.getLogger(__name__)

FIGURES = "figures"
"""The kind of document that has the figures of a site."""

PINNED = "pinned"
"""The kind of document that says that the plan of a query stays as it is."""


class FiguresLog:
    """The last figures that each site has told of each query, and which queries keep their plan."""

    def __init__(self, channels: Channels) -> None:
        self._channels = channels

    def tell(self, query: str, figures: SiteFigures) -> None:
        """Tell the figures of a site in place of those that it has told before."""
        key = f"{query} #{figures.generation} at {figures.site}"
        self._channels.announce(FIGURES, key, {"query": query, "figures": figures.to_json()})

    def told(self, query: str) -> list[SiteFigures]:
        """What the sites have told of a query last. What cannot be read is left out, with a word in the log."""
        figures = []
        for key, document in self._channels.announced(FIGURES).items():
            if document.get("query") == query:
                try:
                    figures.append(SiteFigures.from_json(document["figures"]))
                except (ModelError, KeyError) as problem:
                    logger.warning("the figures '%s' are rejected: %s", key, problem)
        return figures

    def forget(self, query: str, generation: int | None = None) -> None:
        """Forget what was told of a query that is dropped, or of one generation of its plans."""
        for key, document in self._channels.announced(FIGURES).items():
            is_meant = generation is None or f"{query} #{generation} at " in key
            if document.get("query") == query and is_meant:
                self._channels.withdraw(FIGURES, key)
        if generation is None:
            self.unpin(query)

    def pin(self, query: str) -> None:
        """Have a query keep its plan, whichever program runs it."""
        self._channels.announce(PINNED, query, {"query": query})

    def unpin(self, query: str) -> None:
        self._channels.withdraw(PINNED, query)

    def is_pinned(self, query: str) -> bool:
        return query in self._channels.announced(PINNED)
