"""Topologies as files, and as the plain values that people and files give."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import yaml

from braid.errors import TopologyError, did_you_mean
from braid.model.topology import Link, Site, Topology

LINK_FIELDS = tuple(field.name for field in fields(Link))


def load(path: Path) -> Topology:
    """The topology of a YAML or JSON file; what is wrong with it is said with the name of the file."""
    try:
        text = path.read_text(encoding="utf-8")
        content = json.loads(text) if path.suffix == ".json" else yaml.safe_load(text)
    except (OSError, UnicodeDecodeError) as error:
        raise TopologyError(f"cannot read the topology file {path}: {error}") from error
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        raise TopologyError(f"{path} is no valid {'JSON' if path.suffix == '.json' else 'YAML'}: {error}") from error
    try:
        return parse(content)
    except TopologyError as error:
        raise TopologyError(f"{path}: {error}") from error


def save(topology: Topology, path: Path) -> None:
    content = {
        "sites": [{"name": site.name, **site.properties} for site in topology.sites],
        "links": [
            {name: figure for name, figure in asdict(link).items() if figure is not None and figure is not False}
            for link in topology.links
        ],
    }
    try:
        text = json.dumps(content, indent=1) if path.suffix == ".json" else yaml.safe_dump(content, sort_keys=False)
        path.write_text(text, encoding="utf-8")
    except (OSError, TypeError, yaml.YAMLError) as error:
        raise TopologyError(f"cannot write the topology to {path}: {error}") from error


def parse(content: object) -> Topology:
    if not isinstance(content, Mapping) or not isinstance(content.get("links"), list):
        raise TopologyError("a topology has a list of 'links' and, for properties of sites, a list of 'sites'")
    unknown = next((key for key in content if key not in ("sites", "links")), None)
    if unknown is not None:
        raise TopologyError(f"a topology has 'sites' and 'links', not '{unknown}'")
    if not isinstance(content.get("sites"), list | None):
        raise TopologyError(f"the 'sites' of a topology are a list of names or mappings, not {content['sites']!r:.80}")
    return Topology.from_links(content["links"], sites=content.get("sites"))


def parse_site(given: object) -> Site:
    if isinstance(given, Site):
        return given
    if isinstance(given, str):
        return Site(given)
    if isinstance(given, Mapping) and isinstance(given.get("name"), str):
        return Site(given["name"], {key: value for key, value in given.items() if key != "name"})
    raise TopologyError(f"a site is a name, or a mapping with a 'name' and properties, not {given!r}")


def parse_link(given: object) -> Link:
    if isinstance(given, Link):
        return given
    if isinstance(given, Mapping):
        return _from_fields(given)
    if isinstance(given, tuple | list) and 2 <= len(given) <= 3:
        rest: Any = given[2] if len(given) == 3 else {}
        return _from_fields({"source": given[0], "target": given[1], **_figures(rest)})
    raise TopologyError(f"a link is (source, target, latency) or a mapping of its fields, not {given!r}")


def _figures(rest: object) -> Mapping[str, Any]:
    return rest if isinstance(rest, Mapping) else {"latency": rest}


def _from_fields(given: Mapping[str, Any]) -> Link:
    for name in given:
        if name not in LINK_FIELDS:
            raise TopologyError(f"a link has no field '{name}'; {did_you_mean(str(name), LINK_FIELDS)}")
    for end in ("source", "target"):
        if not isinstance(given.get(end), str):
            raise TopologyError(f"a link needs the name of its {end}, not {given.get(end)!r}")
    return Link(**given)
