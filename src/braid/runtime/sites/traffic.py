"""What has crossed links or channels, and what a plan expected to cross them."""

from __future__ import annotations

from dataclasses import dataclass

from braid.model.network.routes import Routes
from braid.planning.cost.bill import Bill


@dataclass
class Traffic:
    """Bytes, rows and batches; of a link in both directions together.

    `planned` is how many bytes per second of event time the plan expected; None if it knew no sizes of rows.
    """

    bytes: int = 0
    rows: int = 0
    batches: int = 0
    planned: float | None = None

    def add(self, size: int, rows: int, batches: int = 1) -> None:
        self.bytes += size
        self.rows += rows
        self.batches += batches

    def expect(self, rate: float) -> None:
        """Add to the bytes per second that are expected."""
        self.planned = (self.planned or 0.0) + rate


def planned_traffic(bill: Bill, routes: Routes) -> dict[str, Traffic]:
    """The links that a plan ships over, with the bytes per second that it expects on each."""
    links: dict[str, Traffic] = {}
    for (_, source, target), volume in bill.shipments.items():
        for _, link in routes.between(source, target):
            traffic = links.setdefault(str(link), Traffic())
            if bill.counts_bytes:
                traffic.expect(volume)
    return links
