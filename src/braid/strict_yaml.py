"""A YAML loader that reports every malformed value as a YAML error with its line and column."""

from __future__ import annotations

from typing import Any

import yaml
from yaml.constructor import ConstructorError


class Loader(yaml.SafeLoader):
    """PyYAML's safe loader, except that every error it raises is a `YAMLError`."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except (AttributeError, LookupError, ValueError) as error:
            # PyYAML raises any of these for a value that does not parse as its tag, such as `!!int ''` or 2001-13-45.
            type_name = node.tag.rpartition(":")[2]
            problem = f"{node.value!r:.80} is not a valid {type_name}"
            raise ConstructorError(None, None, problem, node.start_mark) from error
