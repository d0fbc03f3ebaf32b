"""The kinds of control over the plan of a query between sites."""

from __future__ import annotations

from braid.errors import PlanError, did_you_mean
from braid.model.checks import shown

CONTROLLERS = ("central", "distributed")
"""Who may decide: one site that all others report to, or the sites among themselves."""


def check_controller(kind: str) -> None:
    """Refuse a kind of control that there is not."""
    if kind not in CONTROLLERS:
        raise PlanError(f"there is no controller {shown(kind)}; {did_you_mean(str(kind), CONTROLLERS)}")
