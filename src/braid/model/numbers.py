"""Numbers as people read them."""

from __future__ import annotations

import math

WHOLE_FROM = 100
"""From here on, digits after the point say nothing."""

SMALLEST = 0.001
"""Smaller numbers are only said to be smaller."""


def readable(number: float) -> str:
    """A number with thousands apart and about three digits, and never with an exponent.

    >>> readable(18400.7), readable(3.14159), readable(0.00001), readable(-250.0)
    ('18,401', '3.14', '<0.001', '-250')
    """
    if isinstance(number, int) or not math.isfinite(number):
        return f"{number:,}"
    if number == 0 or abs(number) >= WHOLE_FROM:
        return f"{number:,.0f}"
    if abs(number) < SMALLEST:
        return f"<{SMALLEST}" if number > 0 else f">-{SMALLEST}"
    return f"{number:.3g}"
