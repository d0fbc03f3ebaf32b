"""CACQ: no combinations are kept, so that there is nothing to bring from one plan to another.

Each stream has its window (a SteM); an eddy sends each row, and whatever it has been combined with, to one window
after the other. The routes are the probe sequences of the plan: one for each stream, or one for each part of its keys,
so that every row finds its own way; a change of plan changes the routes. Rows of one stream that have the same way go
together. They are not asked first whether they can get through at all, as those of Braid's own probe sequences are.
"""

from __future__ import annotations

from braid.engine.join.track import Track
from braid.engine.transition.strategy import BuildTrack
from braid.errors import PlanError


def cacq(running: list[Track], build: BuildTrack) -> list[Track]:
    track = build({})
    if track.kept:
        raise PlanError("cacq keeps no combinations; give it a plan of probe sequences")
    track.looks_ahead = False
    return [track]
