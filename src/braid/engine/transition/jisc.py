"""Just-in-time state completion (JISC).

What the old plan keeps and the new one keeps too stays as it is, complete or not. Anything else starts out empty: new
rows add to it as ever, and what older rows would have made is found when somebody asks for it, once for each row.
There is no pause, and changes may follow each other before the last one is over.
"""

from __future__ import annotations

from braid.engine.join.track import Track
from braid.engine.transition.strategy import BuildTrack, reusable


def jisc(running: list[Track], build: BuildTrack) -> list[Track]:
    return [build(reusable(running))]
