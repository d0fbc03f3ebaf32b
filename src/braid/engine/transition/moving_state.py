"""Moving State: everything that the new plan keeps is there before it takes its first row.

The work of a whole window is done at once, and rows wait for it.
"""

from __future__ import annotations

from braid.engine.join.track import Track
from braid.engine.transition.strategy import BuildTrack, reusable


def moving_state(running: list[Track], build: BuildTrack) -> list[Track]:
    track = build(reusable(running))
    track.completer.everything()
    return [track]
