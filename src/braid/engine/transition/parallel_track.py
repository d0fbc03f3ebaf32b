"""Parallel Track: old and new plan run side by side until no row is left that was there before the change.

The new plan sees new rows alone. The old one goes on with all rows, so results of new rows alone are found twice; the
old plan's are left out. A further change in the meantime makes it three plans.
"""

from __future__ import annotations

from braid.engine.join.track import Track
from braid.engine.transition.strategy import BuildTrack


def parallel_track(running: list[Track], build: BuildTrack) -> list[Track]:
    track = build({})
    heads = {alias: inlet.window.head for alias, inlet in track.dataflow.inlets.items()}
    if running:
        running[-1].until = dict(heads)
        track.see_from(heads)
    return [*running, track]
