"""Just-in-time state completion (JISC).

Join states that both plans have stay as they are, complete or not. The other join states of the new plan start out
empty. New rows add to them as usual; combinations of older rows are found when a row is about to probe them, once for
each older row. Rows never pause, and a plan change may come before the last one is over.
"""

from __future__ import annotations

from braid.engine.join.track import Track
from braid.engine.transition.strategy import BuildTrack, reusable


def jisc(running: list[Track], build: BuildTrack) -> list[Track]:
    return [build(reusable(running))]
