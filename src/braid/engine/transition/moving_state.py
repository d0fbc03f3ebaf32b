"""Moving State: all join states of the new plan are complete before it takes its first row.

Rows wait while the combinations of whole windows are found at once.
"""

from __future__ import annotations

from braid.engine.join.track import Track
from braid.engine.transition.strategy import BuildTrack, reusable


def moving_state(running: list[Track], build: BuildTrack) -> list[Track]:
    track = build(reusable(running))
    track.complete_everything()
    return [track]
