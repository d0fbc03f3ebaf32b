"""The bill of a deployment: every charge that makes up its cost."""

from __future__ import annotations

from dataclasses import dataclass

from braid.model.numbers import readable


@dataclass(frozen=True, slots=True)
class Charge:
    """One charge: for shipping a stream from one site to another, or for joining at one site.

    `volume` is the bytes shipped per second; rows per second if row sizes are unknown. `shipped` names the stream;
    several heads of probe sequences may each be charged for the same one.
    """

    what: str
    streams: frozenset[str]
    source: str
    target: str
    volume: float
    amount: float
    shipped: str = ""

    @property
    def route(self) -> str:
        return self.source if self.source == self.target else f"{self.source} -> {self.target}"


@dataclass(frozen=True, slots=True)
class Bill:
    """All charges of a deployment, per second (or per hour, for money); `total` is their sum.

    If it `counts_bytes`, volumes are bytes per second; otherwise they are rows.
    """

    unit: str
    charges: tuple[Charge, ...]
    counts_bytes: bool = False

    @property
    def total(self) -> float:
        return sum(charge.amount for charge in self.charges)

    @property
    def shipments(self) -> dict[tuple[str, str, str], float]:
        """The volume of each stream that is shipped, with the site it leaves and the site it goes to."""
        shipped = [charge for charge in self.charges if charge.volume and charge.source != charge.target]
        return {(charge.shipped, charge.source, charge.target): charge.volume for charge in shipped}

    def __str__(self) -> str:
        rows = [(charge.what, charge.route, readable(charge.amount)) for charge in self.charges if charge.amount]
        rows.append(("total", "", f"{readable(self.total)} {self.unit}"))
        widths = [max(len(row[column]) for row in rows) for column in range(2)]
        return "\n".join(f"{what:<{widths[0]}}  {route:<{widths[1]}}  {amount}" for what, route, amount in rows)
