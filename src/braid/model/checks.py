"""Checks of the values that the classes of the model are made of.

Each check takes the value, the description of it for the error text, and the class of the error.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from numbers import Real
from typing import Any

from braid.errors import BraidError, ModelError

_READABLE_NAMES = {"str": "string", "int": "whole number", "Real": "number", "NoneType": "None"}


def check(value: object, kind: Any, description: str, error: type[BraidError] = ModelError) -> None:
    """The value must be an instance of `kind`: a class, a union or a tuple of classes. A bool is not an int here."""
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is int):
        raise error(f"{description} must be {_article(_name(kind))}, not {shown(value)}")


def check_name(value: object, description: str, error: type[BraidError] = ModelError) -> None:
    """The value must be a string that is not empty."""
    check(value, str, description, error)
    if not value:
        raise error(f"{description} must not be empty")


def check_each(value: object, kind: Any, description: str, error: type[BraidError] = ModelError) -> None:
    """The value must be a tuple of instances of `kind`."""
    check(value, tuple, description, error)
    assert isinstance(value, tuple)
    for element in value:
        check(element, kind, f"each of {description}", error)


def check_positive(value: object, description: str, error: type[BraidError] = ModelError) -> None:
    """The value must be an integer of 1 or more."""
    check(value, int, description, error)
    assert isinstance(value, int)
    if value < 1:
        raise error(f"{description} must be 1 or more, not {shown(value)}")


def is_figure(value: object) -> bool:
    """Whether a value is a finite number of 0 or more, of Python or of NumPy."""
    if not isinstance(value, Real) or isinstance(value, bool):
        return False
    try:
        return 0 <= float(value) < inf
    except OverflowError:
        return False


def shown(value: object, write: Callable[[object], str] = repr) -> str:
    """A value as error texts show it: at most 80 characters.

    >>> shown("a"), shown(10**5000)
    ("'a'", 'an int too long to print')
    """
    try:
        return write(value)[:80]
    except ValueError:
        # Python refuses to print integers of more than 4,300 digits.
        return f"{_article(type(value).__name__)} too long to print"


def _name(kind: Any) -> str:
    kinds = getattr(kind, "__args__", None) or (kind if isinstance(kind, tuple) else (kind,))
    return " or ".join(_READABLE_NAMES.get(one.__name__, one.__name__) for one in kinds)


def _article(name: str) -> str:
    return f"an {name}" if name[0] in "AEIOUaeiou" else f"a {name}"
