"""Documents of deployments in the formats of earlier releases, as documents of the present format."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from braid.errors import BraidError

FORMAT = 6
"""The format in which deployments are announced."""

OLDEST_FORMAT = 4
"""The oldest format that can be read."""


def in_present_format(content: Mapping[str, Any]) -> Mapping[str, Any]:
    """The document of a deployment as one of format `FORMAT`; `BraidError` if its format cannot be read."""
    match content.get("format"):
        case 4:
            return _from_format_5(_from_format_4(content))
        case 5:
            return _from_format_5(content)
        case 6:
            return content
        case other:
            raise BraidError(
                f"a deployment was announced in format {other}, and this is a Braid that reads formats {OLDEST_FORMAT} "
                f"to {FORMAT}; run it with the Braid that deployed it, or deploy it under another name"
            )


def _from_format_5(content: Mapping[str, Any]) -> dict[str, Any]:
    """A deployment had no identity. What is stored of it has its name alone."""
    return {**content, "format": FORMAT, "identity": ""}


def _from_format_4(content: Mapping[str, Any]) -> dict[str, Any]:
    """A site did not tell the plan that it was started for: it was the one whose sites it was among."""
    intakes = {site: _started_for(spec, 0) for site, spec in content["intakes"].items()}
    generations = [_generation_of_format_4(generation) for generation in content["generations"]]
    return {**content, "format": 5, "intakes": intakes, "generations": generations}


def _generation_of_format_4(content: Mapping[str, Any]) -> dict[str, Any]:
    """What channels had carried was the same for all sites of a generation; for the first one nothing was told."""
    sites = {site: _started_for(spec, content["number"]) for site, spec in content["sites"].items()}
    carried = content["began"]
    began = {
        site: {channel: carried[channel] for channel in _arriving(spec) if channel in carried}
        for site, spec in sites.items()
    }
    return {**content, "sites": sites, "began": began if carried else {}}


def _started_for(spec: str, generation: int) -> str:
    return json.dumps({**json.loads(spec), "generation": generation})


def _arriving(spec: str) -> list[str]:
    return list(json.loads(spec)["work"]["arriving"])
