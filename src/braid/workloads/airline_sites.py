"""The airline at five sites: where its streams start, the links between them, and where its results are wanted.

The tower, the check-in desks and the baggage belts are at one airport; the weather service and the sales office are far
away.
"""

from __future__ import annotations

from braid.model.network.topology import Topology

SITES = {"FLIGHTS": "tower", "CHECKINS": "desks", "BAGGAGE": "belts", "WEATHER": "weather", "SALES": "office"}
SINKS = {"gate agent": "desks", "terminal": "desks", "monitoring": "office"}


def airline_network() -> Topology:
    """Links with their latencies in seconds."""
    return Topology.from_links(
        [
            ("desks", "tower", 0.001),
            ("belts", "tower", 0.001),
            ("desks", "belts", 0.001),
            ("tower", "weather", 0.02),
            ("tower", "office", 0.03),
            ("weather", "office", 0.025),
        ]
    )
