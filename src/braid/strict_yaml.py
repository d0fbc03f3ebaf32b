"""Plain YAML, read so that a value which is not of its type is an error with its place."""

from __future__ import annotations

from typing import Any

import yaml
from yaml.constructor import ConstructorError


class Loader(yaml.SafeLoader):
    """Plain YAML, whose every error is one of YAML."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except (AttributeError, LookupError, ValueError) as error:
            # What is not of the type that it has, or looks like, breaks the parser in many ways.
            kind = node.tag.rpartition(":")[2]
            raise ConstructorError(None, None, f"{node.value!r:.80} is no {kind}", node.start_mark) from error
