"""YAML values that know their position in the file, so that an error can name the file and the line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from braid.errors import FileError, did_you_mean, reason_of
from braid.strict_yaml import Loader


@dataclass(frozen=True)
class Located:
    """A YAML value with its position in the file.

    `name` is the path of keys to the value, such as `queries.gates.sink`; it is empty for the whole file. `content` is
    a mapping of keys to `Located`, a list of `Located`, or a scalar. `source` is a scalar as the file spells it.
    """

    file: Path
    name: str
    line: int
    content: Any
    source: str = ""

    def error(self, problem: str) -> FileError:
        """An error that begins with the file and the line of this value."""
        return FileError(f"{self.file}, line {self.line}: {problem}")

    def expected(self, description: str) -> FileError:
        """An error that says what this value must be and what it is."""
        return self.error(f"{self._title()} must be {description}, not {self._shown()}")

    def mapping(self, description: str = "a mapping of names to values") -> Mapping[str, Located]:
        """This value as a mapping; `description` says in the error which mapping is expected."""
        if not isinstance(self.content, dict):
            raise self.expected(description)
        return self.content

    def fields(self, *known: str, required: tuple[str, ...] = ()) -> Mapping[str, Located]:
        """This value as a mapping that has only known keys, and all required keys."""
        fields = self.mapping()
        for key, value in fields.items():
            if key not in known:
                raise value.error(f"{self._title()} has no key '{key}'; {did_you_mean(key, known)}")
        for key in required:
            if key not in fields:
                raise self.error(f"{self._title()} needs the key '{key}'")
        return fields

    def elements(self, description: str = "a list") -> list[Located]:
        """This value as a list; `description` says in the error which list is expected."""
        if not isinstance(self.content, list):
            raise self.expected(description)
        return self.content

    def text(self) -> str:
        """This value as a string that is not blank."""
        if not isinstance(self.content, str) or not self.content.strip():
            raise self.expected("a string")
        return self.content

    def option(self) -> str:
        """This value as Spark takes options: a string, also for numbers and booleans.

        A number stays as the file spells it. It may be a password or a version, and YAML reads 0123456 as 42798 and
        1.10 as 1.1.
        """
        if isinstance(self.content, bool):
            return str(self.content).lower()
        if isinstance(self.content, int | float):
            return self.source
        if isinstance(self.content, str):
            return self.content
        raise self.expected("a string, a number, true or false")

    def options(self) -> dict[str, str]:
        return {key: value.option() for key, value in self.mapping().items()}

    def boolean(self) -> bool:
        if not isinstance(self.content, bool):
            raise self.expected("true or false")
        return self.content

    def positive_integer(self) -> int:
        if not _is_integer(self.content) or self.content < 1:
            raise self.expected("a whole number of at least 1")
        return int(self.content)

    def integer(self) -> int:
        if not _is_integer(self.content):
            raise self.expected("a whole number")
        return int(self.content)

    def number(self) -> float:
        if not isinstance(self.content, float) and not _is_integer(self.content):
            raise self.expected("a number")
        try:
            return float(self.content)
        except OverflowError as error:
            raise self.error(f"{self.name} is too large for a number; check it") from error

    def _title(self) -> str:
        return self.name or "the file"

    def _shown(self) -> str:
        if self.content is None:
            return "empty"
        if isinstance(self.content, dict):
            return "a mapping"
        return "a list" if isinstance(self.content, list) else repr(self.content)


def _is_integer(content: object) -> bool:
    """Python counts booleans as integers; YAML does not."""
    return isinstance(content, int) and not isinstance(content, bool)


def read_yaml(file: Path) -> Located:
    """The content of a YAML file; `FileError` if the file cannot be read or is not valid YAML."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(f"cannot read {file}: {reason_of(error)}") from error
    try:
        loader = Loader(text)
        node = loader.get_single_node()
        if node is None:
            raise FileError(f"{file} is empty")
        return _located(file, loader, node, "", frozenset())
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        position = f", line {mark.line + 1}" if mark else ""
        raise FileError(f"{file}{position}: not valid YAML: {_problem(error)}") from error
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise FileError(f"{file}: not valid YAML: {error}") from error


def _problem(error: yaml.MarkedYAMLError) -> str:
    return "indent with spaces, not with a tab" if "'\\t'" in str(error.problem) else str(error.problem)


def _located(file: Path, loader: Loader, node: yaml.Node, name: str, ancestors: frozenset[int]) -> Located:
    """The value of a YAML node. `ancestors` are the ids of the nodes around it: an alias may refer to one of them."""
    line = node.start_mark.line + 1
    if id(node) in ancestors:
        raise FileError(f"{file}, line {line}: {name} contains itself")
    ancestors = ancestors | {id(node)}
    if isinstance(node, yaml.MappingNode):
        return Located(file, name, line, _located_mapping(file, loader, node, name, ancestors))
    if isinstance(node, yaml.SequenceNode):
        elements = [
            _located(file, loader, element, f"{name}[{position}]", ancestors)
            for position, element in enumerate(node.value)
        ]
        return Located(file, name, line, elements)
    return Located(file, name, line, loader.construct_object(node), node.value)


def _located_mapping(
    file: Path, loader: Loader, node: yaml.MappingNode, name: str, ancestors: frozenset[int]
) -> dict[str, Located]:
    """The values of a mapping. The line of each is the line of its key: a block value begins only on the next line."""
    values: dict[str, Located] = {}
    for key_node, value_node in node.value:
        line = key_node.start_mark.line + 1
        key = loader.construct_object(key_node)
        if not isinstance(key, str):
            raise FileError(f"{file}, line {line}: a key must be a string, not {key!r}; quote it")
        if key in values:
            raise FileError(f"{file}, line {line}: there are two keys '{key}'; keep one of them")
        value = _located(file, loader, value_node, f"{name}.{key}" if name else key, ancestors)
        values[key] = replace(value, line=line)
    return values
