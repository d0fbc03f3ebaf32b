"""YAML files whose every value knows its place, so that what is wrong with one can be pointed at."""

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
    """A value of a file: a mapping of names to values, a list of values, or a plain one, also as it is written."""

    file: Path
    name: str
    line: int
    content: Any
    written: str = ""

    def wrong(self, problem: str) -> FileError:
        """An error that begins with the place of this value."""
        return FileError(f"{self.file}, line {self.line}: {problem}")

    def expected(self, what: str) -> FileError:
        return self.wrong(f"{self.name or 'the file'} must be {what}, not {self._shown()}")

    def mapping(self, what: str = "a mapping of names to values") -> Mapping[str, Located]:
        if not isinstance(self.content, dict):
            raise self.expected(what)
        return self.content

    def fields(self, *known: str, required: tuple[str, ...] = ()) -> Mapping[str, Located]:
        """A mapping that has no other keys than those known, and all that are required."""
        found = self.mapping()
        for key, value in found.items():
            if key not in known:
                raise value.wrong(f"{self.name or 'the file'} has no key '{key}'; {did_you_mean(key, known)}")
        for key in required:
            if key not in found:
                raise self.wrong(f"{self.name or 'the file'} needs the key '{key}'")
        return found

    def text(self) -> str:
        if not isinstance(self.content, str) or not self.content.strip():
            raise self.expected("a text")
        return self.content

    def setting(self) -> str:
        """What options take: a text, a number, true or false.

        A number stays as it is written: what looks like one may be a password or a version, and YAML reads 0123456 as
        42798 and 1.10 as 1.1.
        """
        if isinstance(self.content, bool):
            return str(self.content).lower()
        if isinstance(self.content, int | float):
            return self.written
        if isinstance(self.content, str):
            return self.content
        raise self.expected("a text, a number, true or false")

    def settings(self) -> dict[str, str]:
        return {key: value.setting() for key, value in self.mapping().items()}

    def count(self) -> int:
        if not isinstance(self.content, int) or isinstance(self.content, bool) or self.content < 1:
            raise self.expected("a whole number from 1 on")
        return self.content

    def figure(self) -> float:
        if not isinstance(self.content, int | float) or isinstance(self.content, bool):
            raise self.expected("a number")
        try:
            return float(self.content)
        except OverflowError as error:
            raise self.wrong(f"{self.name} is too large for a number; check it") from error

    def texts(self) -> list[str]:
        if not isinstance(self.content, list):
            raise self.expected("a list of texts")
        return [value.text() for value in self.content]

    def _shown(self) -> str:
        if self.content is None:
            return "empty"
        if isinstance(self.content, dict):
            return "a mapping"
        return "a list" if isinstance(self.content, list) else repr(self.content)


def read(file: Path) -> Located:
    """The content of a YAML file."""
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
        place = f", line {mark.line + 1}" if mark else ""
        raise FileError(f"{file}{place}: this is no valid YAML: {_problem(error)}") from error
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise FileError(f"{file}: this is no valid YAML: {error}") from error


def _problem(error: yaml.MarkedYAMLError) -> str:
    return "a tab, where only spaces may indent" if "'\\t'" in str(error.problem) else str(error.problem)


def _located(file: Path, loader: Loader, node: yaml.Node, name: str, above: frozenset[int]) -> Located:
    line = node.start_mark.line + 1
    if id(node) in above:
        raise FileError(f"{file}, line {line}: {name} contains itself")
    above = above | {id(node)}
    if isinstance(node, yaml.MappingNode):
        content: dict[str, Located] = {}
        for key_node, value_node in node.value:
            key = loader.construct_object(key_node)
            if not isinstance(key, str):
                raise FileError(f"{file}, line {key_node.start_mark.line + 1}: a key is a text, not {key!r}; quote it")
            if key in content:
                raise FileError(f"{file}, line {key_node.start_mark.line + 1}: there are two keys '{key}'")
            inner = f"{name}.{key}" if name else key
            value = _located(file, loader, value_node, inner, above)
            content[key] = replace(value, line=key_node.start_mark.line + 1)
        return Located(file, name, line, content)
    if isinstance(node, yaml.SequenceNode):
        parts = [_located(file, loader, part, f"{name}[{number}]", above) for number, part in enumerate(node.value)]
        return Located(file, name, line, parts)
    return Located(file, name, line, loader.construct_object(node), node.value)
