"""Parallel Track: old and new plan run side by side until no row is left that was there before the change.

The new plan sees new rows alone. The old one goes on with all rows, so results of new rows alone are found twice; the
old plan's are left out. A further change in the meantime makes it three plans.
"""

from __future__ import annotations

from braid.engine.track import Track
from braid.engine.transition.strategy import Assemble


def parallel_track(running: list[Track], assemble: Assemble) -> list[Track]:
    track = assemble({})
    heads = {alias: inlet.window.head for alias, inlet in track.assembly.inlets.items()}
    if running:
        running[-1].until = dict(heads)
        track.see_from(heads)
    return [*running, track]
