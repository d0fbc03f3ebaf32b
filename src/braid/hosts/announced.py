"""The deployments that are announced in a network, as every program reads them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from braid.channels.channels import Channels
from braid.channels.plain_names import plain_name
from braid.errors import BraidError, ModelError
from braid.hosts.change_log import ChangeLog
from braid.runtime.sites.deployed import KIND, Deployed


class Deployments(dict[str, Deployed]):
    """Deployments by name.

    Of some only the name is known, because their documents are damaged. They are not dropped: what runs of them goes
    on, and nothing of them is removed.
    """

    def __init__(self) -> None:
        super().__init__()
        self.unreadable: set[str] = set()
        """The names of those, as plain names."""

    def is_unreadable(self, name: str) -> bool:
        return plain_name(name) in self.unreadable

    def is_gone(self, deployed: Deployed) -> bool:
        """Whether a deployment is not announced any more. Another one may have its name."""
        if self.is_unreadable(deployed.name):
            return False
        return deployed.name not in self or self[deployed.name].identity != deployed.identity


def announced_deployments(channels: Channels, changes: ChangeLog) -> Deployments:
    """Every deployment by name, with the generation that a plan change has prepared for it.

    A change and its generation are announced by one document, so that there is never one without the other. The
    document of the deployment has the generation as well when somebody announces it again.
    """
    documents = channels.announced(KIND)
    deployments = Deployments()
    deployments.unreadable |= documents.damaged
    for name, document in documents.items():
        try:
            deployments[name] = deployed_of(document, name)
        except BraidError as error:
            deployments.unreadable.add(plain_name(name))
            changes.rejections.add(KIND, name, document, f"the announced deployment '{name}' is left alone: {error}")
    _add_prepared(deployments, changes)
    return deployments


def announced_deployment(channels: Channels, changes: ChangeLog, name: str) -> Deployed | None:
    """One of them; None if there is none of this name, and `BraidError` if its document cannot be read."""
    deployments = announced_deployments(channels, changes)
    if deployments.is_unreadable(name):
        raise BraidError(
            f"the document that announces query '{name}' cannot be read; restore it. What runs of the query goes on "
            "meanwhile; without the document, the query counts as dropped"
        )
    return deployments.get(name)


def deployed_of(document: Mapping[str, Any], name: str) -> Deployed:
    """The deployment of a name that a document tells of; `BraidError` if it tells of none."""
    try:
        deployed = Deployed.from_json(document)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise ModelError(f"it cannot be read ({type(error).__name__}: {error}); restore it") from error
    if deployed.name != name:
        raise ModelError(f"it announces '{deployed.name}'; restore it")
    return deployed


def _add_prepared(deployments: Deployments, changes: ChangeLog) -> None:
    for change, document in changes.prepared():
        deployed = deployments.get(change.query)
        # A change that is over, or one of an earlier deployment, has nothing to say of this one.
        if deployed is not None and document.get("identity") == deployed.identity and change.new > deployed.newest:
            try:
                prepared = deployed_of(document, change.query)
            except BraidError as error:
                changes.reject(change, document, error)
                continue
            if any(generation.number == change.new for generation in prepared.generations):
                deployments[change.query] = deployed.with_generation(prepared.generation(change.new))
