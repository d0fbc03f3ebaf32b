"""What every part of the model asks of what it is made of."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from numbers import Real
from typing import Any

from braid.errors import BraidError, ModelError


def check(given: object, kind: Any, what: str, error: type[BraidError] = ModelError) -> None:
    """Refuse what is not of a kind; True and False are no whole numbers."""
    if not isinstance(given, kind) or (isinstance(given, bool) and kind is int):
        raise error(f"{what} must be {_article(_name(kind))}, not {shown(given)}")


def check_name(given: object, what: str, error: type[BraidError] = ModelError) -> None:
    """Refuse what is no text, and a text without a letter."""
    check(given, str, what, error)
    if not given:
        raise error(f"{what} must not be empty")


def check_each(given: object, kind: Any, what: str, error: type[BraidError] = ModelError) -> None:
    """Refuse what is no tuple, and a tuple of anything else."""
    check(given, tuple, what, error)
    assert isinstance(given, tuple)
    for part in given:
        check(part, kind, f"each of {what}", error)


def check_positive(given: object, what: str, error: type[BraidError] = ModelError) -> None:
    """Refuse what is no whole number of 1 or more."""
    check(given, int, what, error)
    assert isinstance(given, int)
    if given < 1:
        raise error(f"{what} must be 1 or more, not {shown(given)}")


def is_figure(given: object) -> bool:
    """Whether something is a number that can be measured, 0 or more and finite; NumPy's numbers are."""
    if not isinstance(given, Real) or isinstance(given, bool):
        return False
    try:
        return 0 <= float(given) < inf
    except OverflowError:
        return False


def shown(given: object, write: Callable[[object], str] = repr) -> str:
    """What was given, as an error tells it: cut where it is long.

    >>> shown("a"), shown(10**5000)
    ("'a'", 'an int too long to be written')
    """
    try:
        return write(given)[:80]
    except ValueError:
        # Python writes no whole numbers of more than 4,300 digits.
        return f"{_article(type(given).__name__)} too long to be written"


def _name(kind: Any) -> str:
    kinds = getattr(kind, "__args__", None) or (kind if isinstance(kind, tuple) else (kind,))
    return " or ".join(
        {"str": "text", "int": "whole number", "Real": "number"}.get(one.__name__, one.__name__) for one in kinds
    )


def _article(name: str) -> str:
    return f"an {name}" if name[0] in "AEIOUaeiou" else f"a {name}"
