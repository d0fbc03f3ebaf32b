"""Reads and writes topologies as YAML or JSON files."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import yaml

from braid.errors import TopologyError, reason_of
from braid.model.network.sites import Link, Site
from braid.strict_yaml import Loader

Content = tuple[list[Any], list[Any] | None]
"""The links and the sites of a file, not parsed yet; the sites are None if the file has no list of them."""


def read(path: Path) -> Content:
    """The content of a YAML or JSON file. Error texts name the file."""
    is_json = path.suffix == ".json"
    try:
        text = path.read_text(encoding="utf-8")
        return _checked(_from_json(text) if is_json else _from_yaml(text))
    except (OSError, UnicodeDecodeError) as error:
        raise TopologyError(f"cannot read the topology file {path}: {reason_of(error)}") from error
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        raise TopologyError(f"{path} is not valid {'JSON' if is_json else 'YAML'}: {error}") from error
    except TopologyError as error:
        raise TopologyError(f"{path}: {error}") from error


def _from_json(text: str) -> object:
    return json.loads(text, object_pairs_hook=_mapping_without_duplicates)


def _mapping_without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    _check_no_duplicates([key for key, _ in pairs], f"in {pairs!r:.200}")
    return dict(pairs)


def _from_yaml(text: str) -> object:
    loader = _NoDuplicates(text)
    try:
        return loader.get_single_data()
    finally:
        loader.dispose()


class _NoDuplicates(Loader):
    """A YAML loader that refuses a mapping with two equal keys, since it is unclear which of them is meant."""

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        _check_no_duplicates(keys, f"in the mapping that begins in line {node.start_mark.line + 1}")
        return node


def _check_no_duplicates(keys: list[str], where: str) -> None:
    seen: set[str] = set()
    for key in keys:
        if key in seen:
            raise TopologyError(f"there are two keys '{key}' {where}; keep one of them")
        seen.add(key)


def write(sites: Sequence[Site], links: Sequence[Link], path: Path) -> None:
    """Write JSON if the path ends in `.json`, else YAML."""
    content = {
        "sites": [{"name": site.name, **site.properties} for site in sites],
        "links": [_link_fields(link) for link in links],
    }
    try:
        text = json.dumps(content, indent=1) if path.suffix == ".json" else yaml.safe_dump(content, sort_keys=False)
        path.write_text(text, encoding="utf-8")
    except (OSError, TypeError, yaml.YAMLError) as error:
        raise TopologyError(f"cannot write the topology to {path}: {reason_of(error)}") from error


def _link_fields(link: Link) -> dict[str, Any]:
    """The fields of a link that differ from their defaults."""
    return {name: value for name, value in asdict(link).items() if value is not None and value is not False}


def _checked(content: object) -> Content:
    if not isinstance(content, Mapping) or not isinstance(content.get("links"), list):
        raise TopologyError("a topology has a list of 'links' and, for properties of sites, a list of 'sites'")
    unknown = next((key for key in content if key not in ("sites", "links")), None)
    if unknown is not None:
        raise TopologyError(f"a topology has 'sites' and 'links', not '{unknown}'")
    if not isinstance(content.get("sites"), list | None):
        raise TopologyError(f"the 'sites' of a topology are a list of names or mappings, not {content['sites']!r:.80}")
    return content["links"], content.get("sites")
