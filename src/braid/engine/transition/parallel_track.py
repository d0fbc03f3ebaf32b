"""Parallel Track: the old and the new plan run side by side until all rows from before the change have expired.

The new plan sees only new rows. The old plan still sees all rows, so both find the combinations of new rows only; the
old plan does not emit these. If another plan change comes meanwhile, three plans run.
"""

from __future__ import annotations

from braid.engine.join.track import Track
from braid.engine.transition.strategy import BuildTrack


def parallel_track(running: list[Track], build: BuildTrack) -> list[Track]:
    track = build({})
    heads = {alias: inlet.window.next_id for alias, inlet in track.lanes.inlets.items()}
    if running:
        running[-1].until = dict(heads)
        track.see_from(heads)
    return [*running, track]
