"""This release reads the deployments that the releases before it have announced."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from braid.errors import BraidError
from braid.runtime.sites.deployed import Deployed
from braid.runtime.sites.earlier_formats import FORMAT, OLDEST_FORMAT

DEPLOYMENTS = Path(__file__).with_name("deployments")


def stored(number: int) -> dict[str, Any]:
    """The stored deployment of a format; `stored_deployments.py` writes that of this release."""
    content: dict[str, Any] = json.loads((DEPLOYMENTS / f"format-{number}.json").read_text())
    return content


def without_identity(deployed: Deployed) -> Deployed:
    """The same deployment without an identity. Its batches are larger by that: each has the name of its channel."""
    if not deployed.identity:
        return deployed
    text, more = json.dumps(deployed.to_json()), len(f" {deployed.identity}")
    anonymous = Deployed.from_json({**json.loads(text.replace(f" {deployed.identity}", "")), "identity": ""})
    generations = [
        replace(
            generation,
            began={
                site: {
                    channel: (batches, rows, size - batches * more)
                    for channel, (batches, rows, size) in carried.items()
                }
                for site, carried in generation.began.items()
            },
        )
        for generation in anonymous.generations
    ]
    return anonymous.with_generation(*generations)


@pytest.mark.parametrize("number", range(OLDEST_FORMAT, FORMAT + 1))
def test_a_stored_deployment_is_read_as_if_it_had_been_announced_today(number: int) -> None:
    content = stored(number)
    assert content["format"] == number
    deployed = Deployed.from_json(content)
    assert without_identity(deployed) == without_identity(Deployed.from_json(stored(FORMAT)))
    assert Deployed.from_json(deployed.to_json()) == deployed
    assert [(one.number, list(one.started)) for one in deployed.generations] == [(1, ["lyon"]), (2, ["nice"])]
    name = deployed.unique_name
    assert deployed.generation(2).began["nice"].keys() == {f"{name}: a at paris", f"{name}: b at lyon"}
    assert (name == "pairs") is (number < 6), "earlier releases gave deployments no identity"


@pytest.mark.parametrize("number", [None, OLDEST_FORMAT - 1, FORMAT + 1])
def test_a_deployment_of_another_format_is_refused(number: int | None) -> None:
    with pytest.raises(BraidError, match=f"in format {number}, and this is a Braid that reads formats 4 to 6; run it"):
        Deployed.from_json({"format": number})
