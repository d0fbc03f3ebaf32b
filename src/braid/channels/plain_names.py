"""Names that file systems and brokers take."""

from __future__ import annotations

from hashlib import sha256
from urllib.parse import quote

LONGEST_NAME = 120
"""Longer names are cut: file systems and brokers take no more than 255 characters."""


def plain_name(name: str) -> str:
    """Any text as a name that file systems and brokers take: different names stay different.

    >>> plain_name("flights ⋈ bags")
    'flights=20=E2=8B=88=20bags'
    """
    plain = quote(name, safe="").replace(".", "%2E").replace("~", "%7E").replace("%", "=")
    if 0 < len(plain) <= LONGEST_NAME:
        return plain
    # No name of another text has two of these signs in a row.
    return f"{plain[: LONGEST_NAME - 34]}=={sha256(name.encode()).hexdigest()[:32]}"
