"""What has crossed a link, or what a channel has carried."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Traffic:
    """Bytes, rows and batches; of a link in both directions together."""

    bytes: int = 0
    rows: int = 0
    batches: int = 0

    def add(self, size: int, rows: int, batches: int = 1) -> None:
        self.bytes += size
        self.rows += rows
        self.batches += batches
