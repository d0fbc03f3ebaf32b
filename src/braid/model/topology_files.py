"""Topologies as files, and as the plain values that people and files give."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import yaml

from braid.errors import TopologyError, did_you_mean, reason_of
from braid.model.topology import Link, Site, Topology
from braid.model.yaml_loader import Loader

LINK_FIELDS = tuple(field.name for field in fields(Link))


def load(path: Path) -> Topology:
    """The topology of a YAML or JSON file; what is wrong with it is said with the name of the file."""
    try:
        text = path.read_text(encoding="utf-8")
        content = _from_json(text) if path.suffix == ".json" else _from_yaml(text)
    except (OSError, UnicodeDecodeError) as error:
        raise TopologyError(f"cannot read the topology file {path}: {reason_of(error)}") from error
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        raise TopologyError(f"{path} is no valid {'JSON' if path.suffix == '.json' else 'YAML'}: {error}") from error
    except TopologyError as error:
        raise TopologyError(f"{path}: {error}") from error
    try:
        return parse(content)
    except TopologyError as error:
        raise TopologyError(f"{path}: {error}") from error


def _from_json(text: str) -> object:
    return json.loads(text, object_pairs_hook=_mapping)


def _mapping(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    _check_once([key for key, _ in pairs], f"in {pairs!r:.200}")
    return dict(pairs)


def _from_yaml(text: str) -> object:
    loader = _Once(text)
    try:
        return loader.get_single_data()
    finally:
        loader.dispose()


class _Once(Loader):
    """Plain YAML, but a mapping that has a key twice is an error: which of both is meant, nobody knows."""

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        _check_once(keys, f"in the mapping that begins in line {node.start_mark.line + 1}")
        return node


def _check_once(keys: list[str], where: str) -> None:
    if len(set(keys)) < len(keys):
        twice = next(key for number, key in enumerate(keys) if key in keys[:number])
        raise TopologyError(f"there are two keys '{twice}' {where}; keep one of them")


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
        raise TopologyError(f"cannot write the topology to {path}: {reason_of(error)}") from error


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
