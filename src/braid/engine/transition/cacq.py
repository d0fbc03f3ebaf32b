"""CACQ: there are no join states, so a plan change has nothing to carry over.

Each stream has its window (in the papers: a SteM). An eddy routes each row, and the combinations it becomes part of, to
one window after the other. The routes are the probe sequences of the plan: one for each stream, or one for each
partition of its keys. A plan change changes the routes. Rows of one stream with the same route go together. There is no
prefilter, which Braid's own probe sequences have.
"""

from __future__ import annotations

from braid.engine.join.track import Track
from braid.engine.transition.strategy import BuildTrack
from braid.errors import PlanError


def cacq(running: list[Track], build: BuildTrack) -> list[Track]:
    track = build({})
    if track.join_states:
        raise PlanError("the strategy cacq keeps no combinations; give it a plan of probe sequences")
    track.uses_prefilter = False
    return [track]
