"""Moving State: everything that the new plan keeps is there before it takes its first row.

The work of a whole window is done at once, and rows wait for it.
"""

from __future__ import annotations

from braid.engine.track import Track
from braid.engine.transition.strategy import Assemble, reusable


def moving_state(running: list[Track], assemble: Assemble) -> list[Track]:
    track = assemble(reusable(running))
    track.completer.everything()
    return [track]
