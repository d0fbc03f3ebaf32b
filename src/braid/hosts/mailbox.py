"""Messages between the controllers of a query, as documents beside the channels.

A message waits until its site has taken it, whichever program runs the site then. Of those with the same source and
subject only the newest waits, so that messages to a site that is away do not pile up.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from braid.channels.channels import Channels


class Mailbox:
    """The messages of one query."""

    def __init__(self, query: str, channels: Channels) -> None:
        self._query = query
        self._channels = channels

    def send(self, source: str, target: str, subject: str, content: Mapping[str, Any]) -> None:
        document = {"query": self._query, "content": content}
        self._channels.announce(_mail(target), f"{self._query}: {subject} from {source}", document)

    def take(self, site: str) -> list[Any]:
        """The messages for a site. They are removed: whoever dies with one has lost it."""
        taken = []
        for key, document in self._channels.announced(_mail(site)).items():
            if document.get("query") == self._query:
                self._channels.withdraw(_mail(site), key)
                taken.append(document.get("content"))
        return taken


def _mail(site: str) -> str:
    return f"messages to {site}"
