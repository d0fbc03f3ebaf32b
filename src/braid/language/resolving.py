"""Matching names as Spark does: exactly if possible, else ignoring case."""

from __future__ import annotations

from collections.abc import Iterable


def match_name(name: str, known: Iterable[str]) -> list[str]:
    """The known names that a name may mean: the same name, else those that differ in case only.

    >>> match_name("ID", ["id", "Id"]), match_name("id", ["id", "Id"]), match_name("x", ["id"])
    (['id', 'Id'], ['id'], [])
    """
    candidates = list(known)
    exact = [candidate for candidate in candidates if candidate == name]
    return exact or [candidate for candidate in candidates if candidate.casefold() == name.casefold()]
