"""What the options of all channels on a broker have in common: how they are checked."""

from __future__ import annotations

import re
from typing import Any

from braid.errors import ChannelError
from braid.model.checks import check, check_positive, is_figure, shown

PREFIX = re.compile(r"[A-Za-z0-9_-]{1,80}")


def addresses(given: Any, option: str, broker: str) -> tuple[Any, ...]:
    """The addresses of an option, which may be one text with commas between them, or a list."""
    if given is None:
        return ()
    if isinstance(given, str):
        return tuple(address.strip() for address in given.split(","))
    if not isinstance(given, list | tuple):
        raise ChannelError(f"'{option}' of {broker} channels must be a list of addresses, not {shown(given)}")
    return tuple(given)


def check_seconds(seconds: Any, option: str, broker: str) -> None:
    """A time to wait must be a finite number above 0."""
    if not (is_figure(seconds) and seconds > 0):
        raise ChannelError(f"{option} of {broker} channels must be a number greater than 0; {shown(seconds)} was given")


def check_replicas(replicas: Any, broker: str) -> None:
    check_positive(replicas, f"replicas of {broker} channels", ChannelError)


def check_prefix(prefix: Any, broker: str) -> None:
    check(prefix, str, f"the prefix of {broker} channels", ChannelError)
    if not PREFIX.fullmatch(prefix):
        raise ChannelError(f"the prefix '{prefix}' of {broker} channels must be 1 to 80 letters, digits, _ or -")
