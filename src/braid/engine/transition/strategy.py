"""What every strategy of changing a plan looks like."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from braid.engine.kept import Kept
from braid.engine.track import Track

Assemble = Callable[[Mapping[frozenset[str], Kept]], Track]
"""Puts the new plan together, with those of the given combinations that it keeps as well."""

Strategy = Callable[[list[Track], Assemble], list[Track]]


def reusable(running: list[Track]) -> Mapping[frozenset[str], Kept]:
    """The combinations kept by the plan in use; none if there is none, or if it has not yet taken over all the work."""
    return running[-1].kept if len(running) == 1 else {}
