"""What is subscribed to before it is announced, so that nothing is removed that it needs.

A program may die after it has subscribed, and what subscribes and never reads keeps all batches for ever. So it writes
down first what it will subscribe to: a draft. Whoever announces something under the same name ends the drafts that came
to nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from hashlib import sha256

from braid.channels.channels import Channels
from braid.errors import BraidError
from braid.hosts.announced import deployed_of
from braid.hosts.rejections import Rejections
from braid.runtime.sites.deployed import Deployed

DRAFT = "draft"
"""The kind of document that has a deployment which subscribes, and may never be announced."""


class Drafts:
    """The drafts of one network, and the subscriptions of what is deployed there."""

    def __init__(self, channels: Channels, rejections: Rejections | None = None) -> None:
        self._channels = channels
        self._rejections = rejections or Rejections()

    def subscribe(self, draft: Deployed) -> None:
        """Subscribe all readers, before anything is published: batches without subscribers may be removed."""
        self._channels.announce(DRAFT, _key(draft), draft.to_json())
        for spec in draft.specs:
            for outlet in spec.work.outlets:
                self._channels.open(outlet.channel, outlet.keep)
        for channel, subscriber in draft.subscriptions():
            self._channels.open(channel).subscribe(subscriber)

    def end(self, draft: Deployed, announced: Deployed | None) -> None:
        """Release what a draft has subscribed to, except for what is announced."""
        self._end(_key(draft), draft, announced)

    def _end(self, key: str, draft: Deployed, announced: Deployed | None) -> None:
        self.release(draft, announced)
        self._channels.withdraw(DRAFT, key)

    def end_others(self, announced: Deployed) -> None:
        """End the drafts that can no longer be announced: the name is taken, or the number of the generation."""
        for key, draft in self._drafts(announced.name):
            if draft.identity != announced.identity or draft.newest <= announced.newest:
                self._end(key, draft, announced)

    def forget(self, dropped: Deployed, remaining: Deployed | None) -> None:
        """End all drafts of a deployment that is dropped."""
        for key, draft in self._drafts(dropped.name):
            if draft.identity == dropped.identity:
                self._end(key, draft, remaining)

    def release(self, deployed: Deployed, remaining: Deployed | None = None) -> None:
        """Remove the channels and subscriptions of a deployment, except those of what remains of it."""
        removed = deployed.published - (remaining.published if remaining is not None else frozenset())
        subscriptions = set(deployed.subscriptions()) - set(remaining.subscriptions() if remaining is not None else ())
        for channel, subscriber in subscriptions:
            if channel not in removed:
                self._channels.open(channel).unsubscribe(subscriber)
        for channel in removed:
            self._channels.remove(channel)

    def all(self) -> list[Deployed]:
        """All drafts, also those that came to nothing and that nobody has ended yet."""
        return [draft for _, draft in self._drafts()]

    def _drafts(self, name: str | None = None) -> Iterator[tuple[str, Deployed]]:
        """The drafts of a name, or all."""
        for key, document in self._channels.announced(DRAFT).items():
            try:
                draft = deployed_of(document, document.get("name", ""))
            except BraidError as error:
                self._rejections.add(DRAFT, key, document, f"the draft '{key}' is rejected: {error}")
            else:
                if name in (None, draft.name):
                    yield key, draft


def _key(draft: Deployed) -> str:
    """Two drafts of one generation may differ: the next program plans anew."""
    content = json.dumps(draft.to_json(), sort_keys=True)
    return f"{draft.unique_name} #{draft.newest} {sha256(content.encode()).hexdigest()[:8]}"
