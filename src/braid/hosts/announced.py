"""The deployments that are announced in a network, as every program reads them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from braid.channels.channels import Channels
from braid.hosts.change_log import ChangeLog
from braid.runtime.sites.deployed import KIND, Deployed


def announced_deployments(channels: Channels, changes: ChangeLog) -> dict[str, Deployed]:
    """Every deployment by name, with the generation that a plan change has prepared for it.

    A change and its generation are announced by one document, so that there is never one without the other. The
    document of the deployment has the generation as well when somebody announces it again.
    """
    return _with_prepared(channels.announced(KIND), changes)


def announced_deployment(channels: Channels, changes: ChangeLog, name: str) -> Deployed | None:
    """One of them; None if there is none of this name."""
    document = channels.announced(KIND).get(name)
    return None if document is None else _with_prepared({name: document}, changes)[name]


def _with_prepared(documents: Mapping[str, Mapping[str, Any]], changes: ChangeLog) -> dict[str, Deployed]:
    deployments = {name: Deployed.from_json(document) for name, document in documents.items()}
    for change, document in changes.prepared():
        deployed = deployments.get(change.query)
        # A change that is over, or one of an earlier deployment, has nothing to say of this one.
        if deployed is not None and document.get("identity") == deployed.identity and change.new > deployed.newest:
            prepared = Deployed.from_json(document).generation(change.new)
            deployments[change.query] = deployed.with_generation(prepared)
    return deployments
