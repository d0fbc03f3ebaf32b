"""Random plans of every kind, and random plan changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from braid.language import parse
from braid.testing.case import Case
from braid.testing.choices import Choices, SeededChoices

MOST_CHANGES = 4
"""The most plan changes of a case."""


@dataclass(frozen=True)
class PlannedChanges:
    """The first plan of a case, and the plans it changes to, by step."""

    plan: Any
    switches: Mapping[int, Any]


def random_changes(case: Case, seed: int) -> PlannedChanges:
    """Plan changes for a case, the same for the same seed. Successive plans often have subtrees in common."""
    choices = SeededChoices(seed)
    aliases = parse(case.text).aliases
    plan = latest = random_plan(choices, aliases)
    switches = {}
    for step in sorted({choices.integer(0, 6) for _ in range(choices.integer(1, MOST_CHANGES))}):
        similar = isinstance(latest, tuple) and not choices.once_in(3)
        latest = swapped(choices, latest, aliases) if similar else random_plan(choices, aliases)
        switches[step] = latest
    return PlannedChanges(plan, switches)


def random_plan(choices: Choices, aliases: Sequence[str]) -> Any:
    """Usually a join tree: left-deep, bushy, or with joins of three inputs. Sometimes probe sequences."""
    if len(aliases) < 2 or choices.once_in(5):
        return random_sequences(choices, aliases)
    return _tree(choices, choices.shuffle(aliases))


def random_sequences(choices: Choices, aliases: Sequence[str]) -> dict[str, list[str]]:
    """A probe sequence for each head."""
    return {head: choices.shuffle([alias for alias in aliases if alias != head]) for head in aliases}


def _tree(choices: Choices, aliases: Sequence[str]) -> Any:
    if len(aliases) == 1:
        return aliases[0]
    if choices.once_in(4) and len(aliases) > 2:
        first, second = sorted(choices.shuffle(range(1, len(aliases)))[:2])
        inputs = [aliases[:first], aliases[first:second], aliases[second:]]
    else:
        cut = choices.pick([len(aliases) - 1, *range(1, len(aliases))])
        inputs = [aliases[:cut], aliases[cut:]]
    return tuple(_tree(choices, subset) for subset in inputs)


def swapped(choices: Choices, tree: Any, aliases: Sequence[str]) -> Any:
    """The tree with two random streams exchanged."""
    one, other = choices.shuffle(aliases)[:2]
    return _renamed(tree, {one: other, other: one})


def _renamed(tree: Any, names: Mapping[str, str]) -> Any:
    return names.get(tree, tree) if isinstance(tree, str) else tuple(_renamed(subtree, names) for subtree in tree)
